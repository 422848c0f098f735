"""What a rank gathered and reduced in a recorded step under ZeRO, beside what was planned."""

from __future__ import annotations

from typing import Any

from serried.errors import InputError
from serried.plan.recorded_step import read_rank_steps
from serried.views.trace.recorded_step import RecordedStep
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.wire.query import Words, read_count, read_language, read_rank


def sharding_of_trace(named: NamedTrace, words: Words) -> dict[str, Any]:
    """Returns the ``serried.recorded-step/1`` document of one rank, of ``step`` where it is given.

    Raises InputError where the records or their plan are not there, and as their reader does.
    """
    if named.place is None or not named.place.is_dir():
        raise InputError("trace '{name}' does not lie in a folder of records", name=named.name)
    found = read_rank_steps(named.place, read_rank(words))
    return RecordedStep.of(*found, read_count(words, "step")).document(read_language(words))
