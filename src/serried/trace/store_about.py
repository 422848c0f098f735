"""Store about: what a store says of its run beside the tables, in ``_serried.json``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from serried.errors import InputError
from serried.finding import Finding, Sentence
from serried.span import Spans
from serried.trace.merged import Host, HostClock, Trace, layout_of
from serried.trace.record import Job

SCHEMA = "serried.trace/1"
ABOUT = "_serried.json"


def write_about(trace: Trace, folder: Path, *, num_spans: int) -> None:
    """Writes into ``folder`` all that ``trace`` says but its spans, which number ``num_spans``."""
    text = json.dumps({**_about(trace), "num_spans": num_spans}, indent=1, ensure_ascii=False)
    (folder / ABOUT).write_text(text, encoding="utf-8")


def read_about(folder: Path) -> dict[str, Any]:
    """Returns what a store says of itself.

    Raises InputError for one of another schema, and what reading JSON does where it is none.
    """
    about: dict[str, Any] = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    if about["schema"] != SCHEMA:
        raise InputError(
            "{path} is a store of {schema}; this serried reads {known}",
            path=folder,
            schema=about["schema"],
            known=SCHEMA,
        )
    return about


def trace_of(about: dict[str, Any], spans: Spans) -> Trace:
    """Returns the trace of ``spans``; raises what shows that ``about`` is none of a store's."""
    _require_typed(about)
    job = Job(**about["job"])
    found = np.unique(spans.rank).tolist()
    if len(spans) != about["num_spans"] or not {*found} <= {*about["ranks"]}:
        raise ValueError("spans are missing, or of other ranks")
    if not 0 <= min(about["ranks"]) <= max(about["ranks"]) < job.world_size:
        raise ValueError("ranks are outside the job")
    if job.num_microbatches < 1 or job.gpus_per_node < 1 or not about["hosts"]:
        raise ValueError("the job is not one")
    return Trace(
        run=about["run"],
        job=job,
        spans=spans,
        base_ns=about["base_ns"],
        hosts=tuple(
            Host(each["name"], tuple(each["ranks"]), each["offset_ns"]) for each in about["hosts"]
        ),
        ranks=tuple(about["ranks"]),
        torn=tuple(about["torn"]),
        missing=tuple(about["missing"]),
        warnings=tuple(_said(each) for each in about["warnings"]),
        layout=layout_of(job)[0],
        clocks=tuple(HostClock(**each) for each in about["clocks"]),
        waits_inside=about["waits_inside"],
        names=tuple(about["names"]),
    )


def _about(trace: Trace) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "run": trace.run,
        "job": asdict(trace.job),
        "base_ns": trace.base_ns,
        "hosts": [asdict(host) for host in trace.hosts],
        "clocks": [asdict(clock) for clock in trace.clocks],
        "ranks": trace.ranks,
        "torn": trace.torn,
        "missing": trace.missing,
        "names": trace.names,
        "waits_inside": trace.waits_inside,
        "warnings": [_finding(each) for each in trace.warnings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    """Returns a finding by its templates, so that any language can say it again."""

    def words(sentence: Sentence) -> dict[str, Any]:
        values = {name: str(value) for name, value in sentence.values.items()}
        return {"template": sentence.template, "values": values}

    return {
        "kind": finding.kind,
        "ranks": finding.ranks,
        "evidence": [words(each) for each in finding.evidence],
        "cure": finding.cure and words(finding.cure),
    }


def _said(written: dict[str, Any]) -> Finding:
    def sentence(words: dict[str, Any]) -> Sentence:
        return Sentence(words["template"], words["values"])

    return Finding(
        written["kind"],
        tuple(sentence(each) for each in written["evidence"]),
        tuple(written["ranks"]),
        cure=sentence(written["cure"]) if written["cure"] else None,
    )


_TEXT, _NUMBER, _WHOLE = (str,), (int, float), (int,)
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("run", "name", "host", "source", "framework", "order", "schedule"), _TEXT),
    **dict.fromkeys(("compute", "backend"), _TEXT),
    **dict.fromkeys(("world_size", "num_microbatches", "gpus_per_node", "base_ns"), _WHOLE),
    **dict.fromkeys(("ranks", "torn", "missing", "sizes"), _WHOLE),
    **dict.fromkeys(("offset_ns", "drift"), _NUMBER),
    **dict.fromkeys(("names", "options"), _TEXT),
    **dict.fromkeys(("uncertainty_ns", "even_ns"), (*_NUMBER, type(None))),
}
"""What each key holds, or each of its entries where it is a list or an object."""


def _require_typed(about: dict[str, Any]) -> None:
    """Raises TypeError for a value of another type than was written."""
    for each in (about, about["job"], *about["hosts"], *about["clocks"]):
        for name, value in each.items():
            parts = value.values() if isinstance(value, dict) else value
            for part in parts if isinstance(value, list | dict) else [value]:
                if name in _TYPES and (type(part) not in _TYPES[name]):
                    raise TypeError(name)
