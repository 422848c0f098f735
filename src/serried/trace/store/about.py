"""Store about: what a store says of its run beside the tables, in ``_serried.json``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from serried.action import ActionKind, Spans
from serried.errors import InputError, Listed, SerriedError, listed
from serried.finding import Finding, Sentence, said
from serried.limits import ABOUT_BYTES
from serried.trace.model.record import TracedJob
from serried.trace.model.replay import Replay
from serried.trace.model.span_groups import SpanGroup
from serried.trace.model.trace import AlignedClock, Host, Trace, layout_of
from serried.user_file import read_bytes

SCHEMA = "serried.trace/2"
_READ = (SCHEMA, "serried.trace/1")
"""The schemas that are read; the first edition's tables hold -1 where this one's are NULL."""

ABOUT = "_serried.json"
_LONGEST_SCHEMA = 80
_WHAT = said("what a store says of its run")


def write_about(trace: Trace, folder: Path, *, num_spans: int) -> None:
    """Writes into ``folder`` all that ``trace`` says but its spans, which number ``num_spans``."""
    text = json.dumps(
        {**about_document(trace), "num_spans": num_spans}, indent=1, ensure_ascii=False
    )
    (folder / ABOUT).write_text(text, encoding="utf-8")


def read_about(folder: Path) -> dict[str, Any]:
    """Returns what a store says of itself.

    Raises InputError for one of another schema, and what reading JSON does where it is none.
    """
    about: dict[str, Any] = json.loads(read_bytes(folder / ABOUT, ABOUT_BYTES.most, _WHAT))
    if about["schema"] not in _READ:
        raise InputError(
            "{path} is a store of {schema}; this serried reads {known}",
            path=folder,
            schema=str(about["schema"])[:_LONGEST_SCHEMA],
            known=listed(_READ, last="and"),
        )
    return about


def trace_of(about: dict[str, Any], spans: Spans, replay: Replay | None = None) -> Trace:
    """Returns the trace of ``spans``; raises what shows that ``about`` is none of a store's."""
    _require_typed(about)
    job = TracedJob(**about["job"])
    found = np.unique(spans.rank).tolist()
    # Any folder may call itself a store: what its parts say of one another has to agree
    # before anything else counts on it.
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
        clocks=tuple(_clock_of(each) for each in about["clocks"]),
        waits_inside=about["waits_inside"],
        replay=replay,
        names=tuple(about["names"]),
        resolution_ns=about.get("resolution_ns", 1),
        groups=tuple(_group_of(each, job.world_size) for each in about.get("groups", ())),
    )


def about_document(trace: Trace) -> dict[str, Any]:
    """Returns all that a trace says but its spans, as ``trace_of`` reads it."""
    return {
        "schema": SCHEMA,
        "run": trace.run,
        "job": asdict(trace.job),
        "base_ns": trace.base_ns,
        "hosts": [asdict(host) for host in trace.hosts],
        "clocks": [_clock(each) for each in trace.clocks],
        "ranks": trace.ranks,
        "torn": trace.torn,
        "missing": trace.missing,
        "names": trace.names,
        "waits_inside": trace.waits_inside,
        "has_replay": trace.replay is not None,
        "resolution_ns": trace.resolution_ns,
        "groups": [_group(each) for each in trace.groups],
        "warnings": [_finding(each) for each in trace.warnings],
    }


def _group(group: SpanGroup) -> dict[str, Any]:
    return {"collective": group.kind.name, "ranks": group.ranks, "count": group.count}


def _group_of(written: dict[str, Any], world_size: int) -> SpanGroup:
    """Returns a group of spans; raises what shows that it is none of a job of that many ranks."""
    ranks = tuple(written["ranks"])
    if not all(type(each) is int for each in (*ranks, written["count"])):
        raise TypeError("groups")
    if not 0 <= min(ranks) <= max(ranks) < world_size or written["count"] < 1:
        raise ValueError("a group has ranks outside the job")
    return SpanGroup(ActionKind[written["collective"]], ranks, written["count"])


def _clock(clock: AlignedClock) -> dict[str, Any]:
    """Returns a clock by the names that the first schema gave its parts."""
    written = asdict(clock)
    return {"even_ns": written.pop("symmetric_ns"), **written}


def _clock_of(written: dict[str, Any]) -> AlignedClock:
    known = {name: value for name, value in written.items() if name != "even_ns"}
    return AlignedClock(**known, symmetric_ns=written.get("even_ns"))


def _finding(finding: Finding) -> dict[str, Any]:
    """Returns a finding by its templates, so that any language can say it again."""
    return {
        "kind": finding.kind,
        "ranks": finding.ranks,
        "groups": finding.groups,
        "evidence": [_written(each) for each in finding.evidence],
        "cure": finding.cure and _written(finding.cure),
        "confidence": finding.confidence,
    }


def _written(value: object) -> Any:
    """Returns a value of a sentence as JSON: sentences and lists in it keep their parts."""
    # An error stands in a sentence as its reason: it has a template and values as well.
    if isinstance(value, Sentence | SerriedError):
        values = {name: _written(each) for name, each in value.values.items()}
        return {"template": value.template, "values": values}
    if isinstance(value, Listed):
        return {"items": [_written(each) for each in value.items], "last": value.last}
    if isinstance(value, np.number):
        return value.item()
    return value if isinstance(value, int | float) else str(value)


def _said(written: dict[str, Any]) -> Finding:
    found = Finding(
        written["kind"],
        tuple(_sentence(each) for each in written["evidence"]),
        tuple(written["ranks"]),
        tuple(written.get("groups", ())),
        cure=_sentence(written["cure"]) if written["cure"] else None,
        confidence=written.get("confidence", 1.0),
    )
    str(found)  # raises where a sentence lacks one of its values
    return found


def _sentence(written: dict[str, Any]) -> Sentence:
    values = {name: _value(each) for name, each in written["values"].items()}
    return Sentence(written["template"], values)


def _value(written: Any) -> object:
    if not isinstance(written, dict):
        return written
    if "template" in written:
        return _sentence(written)
    return Listed(tuple(_value(each) for each in written["items"]), written["last"])


_TEXT, _NUMBER, _WHOLE = (str,), (int, float), (int,)
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("run", "name", "host", "source", "framework", "order", "schedule"), _TEXT),
    **dict.fromkeys(("compute", "backend", "device", "training"), _TEXT),
    **dict.fromkeys(("world_size", "num_microbatches", "gpus_per_node", "base_ns"), _WHOLE),
    **dict.fromkeys(("model", "cores", "threads"), _WHOLE),
    "resolution_ns": _WHOLE,
    **dict.fromkeys(("ranks", "torn", "missing", "sizes"), _WHOLE),
    **dict.fromkeys(("offset_ns", "drift"), _NUMBER),
    **dict.fromkeys(("names", "options"), _TEXT),
    **dict.fromkeys(("uncertainty_ns", "even_ns"), (*_NUMBER, type(None))),
}
"""What each key holds, or each of its entries where it is a list or an object."""


def _require_typed(about: dict[str, Any]) -> None:
    """Raises TypeError for a value of another type than was written."""
    # A key means the same in all of these, so one table of types serves them.
    for each in (about, about["job"], *about["hosts"], *about["clocks"]):
        for name, value in each.items():
            parts = value.values() if isinstance(value, dict) else value
            for part in parts if isinstance(value, list | dict) else [value]:
                if name in _TYPES and (type(part) not in _TYPES[name]):
                    raise TypeError(name)
                if isinstance(part, str):
                    part.encode()  # raises for what could not be written again
