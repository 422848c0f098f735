"""A diagnosis that ``serried diagnose`` wrote as JSON, read back for the page.

Its sentences are in the language that it was written in, and stay so whatever the page speaks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from serried import user_file
from serried.diagnose.diagnosis import Cause, CauseClass, Diagnosis, Waiting
from serried.diagnose.evidence.quote import Quote
from serried.errors import InputError
from serried.finding import Sentence, said
from serried.limits import STEP_PLAN_BYTES
from serried.trace.model.record import TracedJob
from serried.views.diagnose.document import SCHEMA
from serried.views.web.diagnose.cases import NamedCase
from serried.views.web.trace.payload import question_of
from serried.views.web.wire.query import MAX_WORLD_SIZE


def read_written(path: Path, name: str) -> NamedCase:
    """Returns the diagnosis in a ``serried.diagnosis/1`` document, called ``name``.

    Raises InputError for anything else.
    """
    text = user_file.read_text(path, STEP_PLAN_BYTES.most, said("a diagnosis"))
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise ValueError(f"schema {document['schema']}")
        diagnosis = _diagnosis(document)
        world = _world(diagnosis)
    # JSON may be nested deeper than Python recurses; a damaged document holds what it should not.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            "{file} is a diagnosis, but damaged: {reason}; serried diagnose LOGS -o {file} writes "
            "it anew",
            file=path.name,
            reason=error,
        ) from error
    question = question_of(TracedJob("megatron", world, {"dp": world}, "", "", 0))
    return NamedCase(name, diagnosis, question, world)


def _diagnosis(document: Mapping[str, Any]) -> Diagnosis:
    return Diagnosis(
        tuple(_cause(each) for each in document["findings"]),
        missing=_all_told(document["missing_evidence"]),
        notes=_all_told(document["notes"]),
        ranks_heard=_ranks(document["ranks_heard"]),
        world_size=None if document["world_size"] is None else int(document["world_size"]),
    )


def _cause(found: Mapping[str, Any]) -> Cause:
    told = cache(_told)  # thousands of ranks wait in the same
    return Cause(
        CauseClass(found["class"]),
        str(found["kind"]),
        None if found["ranks"] is None else _ranks(found["ranks"]),
        _told(found["verdict"]),
        float(found["confidence"]),
        chain=_all_told(found["chain"]),
        quotes=tuple(
            Quote(str(each["source"]), int(each["line"]), str(each["text"]))
            for each in found["evidence"]
        ),
        cures=_all_told(found["cures"]),
        groups=tuple(map(str, found["groups"])),
        waiting=tuple(
            Waiting(
                _rank(each["rank"]),
                _ranks(each["waits_for"]),
                told(each["what"]),
                bool(each["directly"]),
            )
            for each in found["waiting"]
        ),
        cost=None if found["cost"] is None else float(found["cost"]),
    )


def _world(diagnosis: Diagnosis) -> int:
    causes = diagnosis.causes
    named = {rank for cause in causes for rank in cause.ranks or ()} | {*diagnosis.ranks_heard}
    named |= {each.rank for cause in causes for each in cause.waiting}
    world = max(diagnosis.world_size or 1, *(rank + 1 for rank in named), 1)
    if world > MAX_WORLD_SIZE:
        raise ValueError(f"world_size={world}")
    return world


def _ranks(ranks: object) -> tuple[int, ...]:
    if not isinstance(ranks, list):
        raise TypeError(f"ranks={str(ranks)[:40]}")
    return tuple(map(_rank, ranks))


def _rank(rank: object) -> int:
    if not isinstance(rank, int) or not 0 <= rank < MAX_WORLD_SIZE:
        raise ValueError(f"rank={str(rank)[:40]}")
    return rank


def _all_told(texts: list[object]) -> tuple[Sentence, ...]:
    return tuple(map(_told, texts))


def _told(text: object) -> Sentence:
    return said("{text}", text=str(text))
