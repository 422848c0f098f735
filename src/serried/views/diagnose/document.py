"""A diagnosis as JSON, ``serried.diagnosis/1``: the first cause on top, then every finding."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from serried.diagnose.diagnosis import Cause, CauseClass, Diagnosis
from serried.finding import Sentence, said
from serried.views.sentences import say

SCHEMA = "serried.diagnosis/1"
NOTHING_FOUND = said("nothing wrong was found in what was read")
NOTHING_TOLD = said(
    "what was read does not tell whether this job hangs, or who is at fault; what would tell is "
    "named below"
)
NOTHING_READ = said("nothing could be read: there is no line of a log, no dump and no record")


def no_cause(diagnosis: Diagnosis) -> Sentence:
    """Returns what is said where no cause was found: whether there was enough to find one in."""
    if not diagnosis.was_read:
        return NOTHING_READ
    return NOTHING_TOLD if diagnosis.missing else NOTHING_FOUND


def diagnosis_document(diagnosis: Diagnosis, lang: str = "en") -> dict[str, Any]:
    """Returns a diagnosis as JSON values.

    ``ranks`` is null where no culprit can be told and [] where no rank is at fault; the top level
    repeats the first finding, with the collective in which others waited for it.
    """
    findings = [_finding(cause, lang) for cause in diagnosis.causes]
    top = dict(findings[0]) if findings else _no_fault(diagnosis, lang)
    told = [cause.collective for cause in diagnosis.causes if cause.collective]
    top["collective"] = asdict(told[0].filled(told[1:])) if told else None
    return {
        "schema": SCHEMA,
        **top,
        "missing_evidence": [say(each, lang) for each in diagnosis.missing],
        "notes": [say(each, lang) for each in diagnosis.notes],
        "ranks_heard": list(diagnosis.ranks_heard),
        "world_size": diagnosis.world_size,
        "findings": findings,
    }


def _finding(cause: Cause, lang: str) -> dict[str, Any]:
    return {
        "verdict": say(cause.verdict, lang),
        "class": cause.cause_class.value,
        "kind": cause.kind,
        "ranks": None if cause.ranks is None else list(cause.ranks),
        "groups": list(cause.groups),
        "collective": asdict(cause.collective) if cause.collective else None,
        "waiting": [
            {
                "rank": each.rank,
                "waits_for": list(each.waits_for),
                "what": say(each.what, lang),
                "directly": each.directly,
            }
            for each in cause.waiting
        ],
        "chain": [say(each, lang) for each in cause.chain],
        "cures": [say(each, lang) for each in cause.cures],
        "evidence": [asdict(quote) for quote in cause.quotes],
        "confidence": cause.confidence,
        "cost": cause.cost,
    }


def _no_fault(diagnosis: Diagnosis, lang: str) -> dict[str, Any]:
    is_open = bool(diagnosis.missing)
    return {
        "verdict": say(no_cause(diagnosis), lang),
        "class": CauseClass.NO_FAULT.value,
        "kind": CauseClass.NO_FAULT.value,
        "ranks": None if is_open else [],
        "groups": [],
        "collective": None,
        "waiting": [],
        "chain": [],
        "cures": [],
        "evidence": [],
        "confidence": 0.5,
        "cost": None,
    }
