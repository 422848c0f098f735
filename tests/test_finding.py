"""A finding speaks in templates and values, and reads as its sentences in a row."""

from __future__ import annotations

from serried.finding import Finding, said


def test_a_finding_reads_as_its_evidence_and_its_cure() -> None:
    finding = Finding(
        "overlap",
        evidence=(said("{kind} groups overlap", kind="gqa"), said("rank {rank} is in two", rank=3)),
        cure=said("set tp={tp}", tp=32),
    )
    assert str(finding) == "gqa groups overlap; rank 3 is in two; set tp=32"
    assert finding.evidence[0].template == "{kind} groups overlap"
    assert finding.evidence[0].values == {"kind": "gqa"}


def test_a_finding_without_a_cure_is_its_evidence() -> None:
    assert str(Finding("odd", evidence=(said("three ranks"),))) == "three ranks"
