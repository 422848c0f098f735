"""Real runs with one injected fault each: the root is named, and nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import benchmarks.diagnosis
from benchmarks.diagnosis.frtrace import named_ranks
from benchmarks.diagnosis.runs import Run, lines
from serried.diagnose.diagnosis import Diagnosis
from serried.diagnose.evidence.file_rank import file_rank
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

HANGS = Path(benchmarks.diagnosis.__file__).parent / "hangs"
TRUTH = json.loads((HANGS / "cases.json").read_text(encoding="utf-8"))
STOPPED = [name for name, truth in TRUTH.items() if truth["class"] != "straggler"]


def diagnosis_of(name: str) -> Diagnosis:
    return diagnosed(gather([HANGS / name]))


@pytest.mark.parametrize("name", STOPPED)
def test_the_root_of_a_run_is_named_and_nobody_else(name: str) -> None:
    truth, found = TRUTH[name], diagnosis_of(name)
    assert tuple(found.causes[0].ranks or () if found.causes else ()) == tuple(truth["root_ranks"])
    assert truth["class"] in (None, found.cause_class.value)
    accused = {rank for cause in found.causes for rank in cause.ranks or ()}
    assert accused <= set(truth["root_ranks"])


@pytest.mark.parametrize("kept", ["no logs", "only dumps", "only stacks", "none of the root"])
@pytest.mark.parametrize("name", ["skip_dp_a", "wrong_peer_33", "wrong_group_102", "no_recv_25"])
def test_evidence_that_is_missing_makes_nobody_guilty(name: str, kept: str, tmp_path: Path) -> None:
    [root] = TRUTH[name]["root_ranks"]
    for file in (each for each in (HANGS / name).rglob("*") if each.is_file()):
        is_there = {
            "no logs": file.suffix != ".log",
            "only dumps": file.parent.name == "fr" or file.name == "layout.json",
            "only stacks": file.parent.name == "stacks" or file.name == "layout.json",
            "none of the root": file_rank(file.name) != root,
        }
        if is_there[kept]:
            place = tmp_path / file.relative_to(HANGS / name)
            place.parent.mkdir(exist_ok=True)
            place.symlink_to(file)
    found = diagnosed(gather([tmp_path]))
    first = found.causes[0] if found.causes else None
    assert set(first.ranks or () if first else ()) <= {root}
    if first is not None and first.ranks is None:
        assert found.missing


@pytest.mark.parametrize(
    ("name", "op", "seq", "group"),
    [
        ("skip_dp_a", "all_reduce", 6, "dp_3"),
        ("dtype_d", "all_reduce", 4, "dp_0"),
        ("rank0_log_u", "all_gather", 1, "default_pg"),
        ("op_detail_w", "ALLREDUCE|BROADCAST", 2, "dp_1"),
        ("size_15", "all_reduce", 4, "dp_0"),
    ],
)
def test_the_collective_is_told_with_its_group(name: str, op: str, seq: int, group: str) -> None:
    facts = diagnosis_of(name).causes[0].collective
    assert facts is not None
    assert (facts.op, facts.seq, facts.group) == (op, seq, group)


def test_the_chain_leads_from_the_root_to_those_who_wait_at_last() -> None:
    [cause, *_] = diagnosis_of("skip_dp_a").causes
    assert [str(link) for link in cause.chain] == [
        "rank 7 waits in all_reduce 6 of dp_3 for rank 5",
        "ranks 0, 1, 4 and 5 wait in barrier 1 of default_pg for ranks 2, 3, 6 and 7",
        "ranks 2, 3 and 6 wait in all_reduce 6 of mp_1 for rank 7",
    ]
    assert {each.rank for each in cause.waiting} == {0, 1, 2, 3, 4, 6, 7}
    assert [each.rank for each in cause.waiting if each.directly] == [7]


def test_who_is_seen_to_wait_is_not_accused_by_the_log() -> None:
    """torch's barrier says that rank 1 did not come: it waits for rank 3's collective."""
    said = [(cause.kind, cause.ranks) for cause in diagnosis_of("size_23").causes]
    assert said[0] == ("mismatch_size", (3,))
    assert ("never_arrived", (1,)) not in said


def test_stacks_in_torchruns_logs_tell_where_a_rank_stands() -> None:
    [cause, *_] = diagnosis_of("ddp_worker_stuck").causes
    assert cause.kind == "stuck_in_user_code"
    assert "torch's data loader" in str(cause.chain[0])


def test_the_only_rank_that_ran_is_told_to_work() -> None:
    [cause, *_] = diagnosis_of("ring_spin").causes
    assert str(cause.chain[0]).startswith("it ran on a processor while all others were idle")


def test_a_score_counts_roots_and_innocents() -> None:
    right = Run("a", (3,), "hang", {"class": "hang", "kind": "k", "ranks": [3]}, None, "", (2,))
    wrong = Run("b", (3,), "hang", {"class": "hang", "kind": "k", "ranks": [2]}, (3,), "", (3,))
    quiet = Run("c", (), None, {"class": "no_fault", "kind": "k", "ranks": []}, None, "", None)
    *_, score, accused = lines([right, wrong, quiet])
    assert "serried 1 of 2, torchrun's first failure 1 (ranks alone), torchfrtrace 1" in score
    assert "serried: 1 of 3" in accused
    assert named_ranks("Not all ranks joining\nmissing ranks: {2, 7}") == (2, 7)
