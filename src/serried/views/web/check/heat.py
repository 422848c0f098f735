"""A check's report for the cluster map: how each rank's links compare with their like."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serried import user_file
from serried.errors import InputError, listed
from serried.finding import said
from serried.limits import CHECK_BYTES
from serried.runtime.check.link_speed import Speeds
from serried.trace.model.record import TracedJob
from serried.views.runs.link_figures import link_figures
from serried.views.web.trace.payload import question_of
from serried.views.web.wire.payload import pack
from serried.views.web.wire.query import MAX_WORLD_SIZE, Words, read_count, read_word
from serried.views.web.wire.scale import summary_of

SCHEMA = "serried.check/1"


@dataclass(frozen=True, eq=False)
class NamedCheck:
    """Holds what the page shows of one report."""

    name: str
    question: Mapping[str, Any]
    """The words that ask for the layout that was checked."""
    figures: Mapping[str, Speeds]
    """One value a rank: 1 for a link as fast as the median of its like; NaN without one."""
    findings: tuple[Mapping[str, Any], ...]


def read_check(path: Path, name: str = "") -> NamedCheck:
    """Reads a ``serried.check/1`` document; raises InputError for anything else."""
    try:
        text = user_file.read_text(path, CHECK_BYTES.most, said("a report of a check"))
        document = json.loads(text)
    # JSON may be nested deeper than Python recurses.
    except (ValueError, RecursionError) as error:
        raise InputError("{file} is no JSON: {reason}", file=path.name, reason=error) from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InputError(
            "{file} is no report of a check: its schema is not {schema}; serried check -o "
            "{file} writes one",
            file=path.name,
            schema=SCHEMA,
        )
    try:
        return _named(name or path.stem, document)
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise InputError(
            "{file} is a report of a check, but damaged: {reason}", file=path.name, reason=error
        ) from error


def checks_answer(checks: Sequence[NamedCheck]) -> dict[str, Any]:
    """Returns what the page needs to offer the reports."""
    return {
        "schema": "serried.checks/1",
        "checks": [
            {
                "name": each.name,
                "question": each.question,
                "figures": list(each.figures),
                "findings": each.findings,
            }
            for each in checks
        ],
    }


def check_heat_payload(checks: Sequence[NamedCheck], words: Words) -> bytes:
    """Returns a figure of every rank, in the form of a trace's; raises InputError for no such."""
    number = read_count(words, "check") or 0
    if number >= len(checks):
        raise InputError(
            "there is no check {number} here; {count} are open, numbered from 0",
            number=number,
            count=len(checks),
        )
    check = checks[number]
    name = read_word(words, "figure") or next(iter(check.figures), "")
    if name not in check.figures:
        raise InputError(
            "'{name}' is no figure of this check; it has {figures}",
            name=name[:40],
            figures=listed(check.figures) or "-",
        )
    values = check.figures[name]
    header = {
        "kind": "heat",
        "figure": name,
        "figures": list(check.figures),
        "unit": "ratio",
        # 1 is a link as fast as its like.
        "scale": "median",
        **summary_of(values),
    }
    return pack(header, {"value": values})


def _named(name: str, document: Mapping[str, Any]) -> NamedCheck:
    # The file may come from anywhere: numbers are converted and bounded here, so that damage ends
    # in one of the errors that read_check tells.
    world = int(document["world_size"])
    if not 0 < world <= MAX_WORLD_SIZE:
        raise ValueError(f"world_size={world}")
    seats = [len(node["ranks"]) for node in document["map"]["nodes"]]
    job = TracedJob(
        framework=str(document["framework"]),
        world_size=world,
        sizes={str(axis): int(size) for axis, size in document["sizes"].items()},
        order=str(document.get("order", "")),
        schedule="",
        num_microbatches=0,
        gpus_per_node=max(seats),
        options={str(key): str(value) for key, value in document.get("options", {}).items()},
    )
    findings = tuple(_finding(each, world) for each in document["findings"])
    return NamedCheck(name, question_of(job), link_figures(document["links"], world), findings)


def _finding(found: Mapping[str, Any], world: int) -> dict[str, Any]:
    ranks = [int(rank) for rank in found["ranks"]]
    # A rank outside the world would be looked for on the map in vain.
    if any(not 0 <= rank < world for rank in ranks):
        raise ValueError(f"ranks={ranks}")
    told = {lang: _told(found["in"][lang]) for lang in ("en", "zh")}
    return {"kind": str(found["kind"]), "ranks": ranks, "in": told}


def _told(said: Mapping[str, Any]) -> dict[str, Any]:
    cure = said["cure"]
    return {
        "evidence": [str(line) for line in said["evidence"]],
        "cure": None if cure is None else str(cure),
    }
