"""What the Schedule view asks for, read from the words of an address: one schedule and its times.

The words are the options of ``serried schedule``, and mean the same; but for what is left out the
page has other defaults, and it draws no more than a screen can show.
"""

from __future__ import annotations

from serried.errors import InputError, SerriedError
from serried.pipeline import ENTRIES, known
from serried.pipeline.request import ScheduleRequest
from serried.views.web.wire.query import Words, read_word

MOST_CELLS = 1 << 19
"""Microbatches times stages that the page draws, 64 ranks x 1,024 x 8: a million actions."""
SLOW = {"auto": 1 << 11, "v-half": 1 << 15, "v-min": 1 << 15, "1f1b-v": 1 << 15}
"""Fewer of schedules that are searched for, which takes seconds beyond."""
DEFAULTS = {"name": "1f1b", "stages": "4", "microbatches": "8", "of": "rank"}
"""What a question asks that leaves a word out."""


def read_schedule_query(words: Words) -> ScheduleRequest:
    """Reads a question; raises InputError for a word that cannot be, or too much to draw."""
    given = {**DEFAULTS, **{name: text for name in words if (text := read_word(words, name))}}
    request = ScheduleRequest.of(given["name"], given)
    known(request.name)  # no address opens a file of actions
    _hold(request)
    return request


FIELDS = (
    *("stages", "microbatches", "chunks", "group"),
    *("forward", "input_grad", "weight_grad", "latency", "memory_limit", "of"),
)
"""Words that the form of the page has a field for; an address may hold any other option too."""


def field_of(error: SerriedError) -> str:
    """Returns the field that a refused size or time was typed into, "" where it is none."""
    values = error.values
    # Sentences name sizes as the command line does: --input-grad is the field input_grad, and
    # 'ranks' is the field stages.
    said = [str(values.get(key, "")) for key in ("name", "option", "what")]
    words = [word.removeprefix("--").replace("-", "_") for word in said]
    words = [{"ranks": "stages"}.get(word, word) for word in words]
    if "groups of" in error.template:
        words.append("group")
    return next((word for word in words if word in FIELDS), "")


def _hold(asked: ScheduleRequest) -> None:
    """Refuses what would take the page, or the server, too long."""
    # Chunks that nobody tells count as 2, the default of schedules that can have several.
    chunks = ENTRIES[asked.name].chunks or asked.chunks or 2
    ranks, microbatches = asked.stages or 0, asked.microbatches or 0
    most = SLOW.get(asked.name, MOST_CELLS)
    if ranks * microbatches * chunks > most:
        raise InputError(
            "{name} with {ranks} ranks, {microbatches} microbatches and {chunks} chunks is more "
            "than this page draws; the product of the three is at most {most}, and 'serried "
            "schedule' has no such bound",
            name=asked.name,
            ranks=ranks,
            microbatches=microbatches,
            chunks=chunks,
            most=most,
        )
