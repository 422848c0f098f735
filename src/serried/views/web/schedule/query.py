"""What the Schedule view asks for, read from the words of an address: one schedule and its times.

Times are of one stage, as on the command line, or of a whole rank: then each of its v stages takes
1/v of them, and of an activation, so that schedules of one and of several stages a rank do the same
work on the same model and can stand on one time axis.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from serried.errors import InputError, SerriedError
from serried.pipeline import ENTRIES, Costs, Links, Memory, Request, Schedule, generate
from serried.pipeline.costs import Duration, Number
from serried.views.job.exact_number import read_numbers
from serried.views.web.wire.query import Words, read_count, read_word

MOST_CELLS = 1 << 19
"""Microbatches times stages that the page draws, 64 ranks x 1,024 x 8: a million actions."""
SLOW = {"auto": 1 << 11, "v-half": 1 << 15, "v-min": 1 << 15, "1f1b-v": 1 << 15}
"""Fewer of schedules that are searched for, which takes seconds beyond."""
_TIMES = {"forward": "1", "input_grad": "1", "weight_grad": "1", "latency": "0"}
_OF = ("rank", "stage")


@dataclass(frozen=True)
class ScheduleQuery:
    """Holds one question of the view, every word of it already checked for form."""

    name: str
    asked: Request
    costs: Costs
    """Times as they were given."""
    memory_limit: int | None
    is_of_rank: bool
    """Whether times and the limit are of a whole rank's layers."""

    @property
    def latency(self) -> float:
        """The latency of a message, the same between all ranks."""
        latency = self.costs.links.latency
        assert isinstance(latency, int | float | Fraction)
        return float(latency)

    def schedule(self) -> Schedule:
        """Generates it; raises InputError for sizes it cannot have, or too many to draw."""
        _hold(self)
        return generate(self.name, self.asked)

    def parts(self, schedule: Schedule) -> int:
        """Returns into how many parts its stages cut what one rank has of the model.

        Of a schedule that flows both ways a rank holds two stages, but two copies of them.
        """
        placement = schedule.placement
        return max(1, placement.num_stages // placement.num_ranks) if self.is_of_rank else 1

    def costs_of(self, schedule: Schedule) -> Costs:
        """Returns the times of one of its stages."""
        return _shared(self.costs, self.parts(schedule))

    def limit_of(self, schedule: Schedule) -> int | None:
        """Returns how many activations of one of its stages fit."""
        return None if self.memory_limit is None else self.memory_limit * self.parts(schedule)

    def options(self, schedule: Schedule) -> str:
        """Returns the options of ``serried schedule`` that give the same answer."""
        asked, costs = self.asked, self.costs_of(schedule)
        words = ["--stages", str(asked.num_ranks), "--microbatches", str(asked.num_microbatches)]
        if asked.chunks is not None:
            words += ["--chunks", str(asked.chunks)]
        if asked.group is not None:
            words += ["--group", str(asked.group)]
        # Only what differs from the command's own defaults is written.
        times = {name: getattr(costs, name) for name in _TIMES if name != "latency"}
        for name, time in (times | {"latency": costs.links.latency}).items():
            if (text := _text(time)) != _TIMES[name]:
                words += [f"--{name.replace('_', '-')}", text]
        if (limit := self.limit_of(schedule)) is not None:
            words += ["--memory-limit", str(limit)]
        return shlex.join(words)


def read_schedule_query(words: Words) -> ScheduleQuery:
    """Reads a question; raises InputError for a word that is not of its form."""
    name = read_word(words, "name") or "1f1b"
    given = _Given(words)
    costs = Costs(
        given.duration("forward"),
        given.duration("input_grad"),
        given.duration("weight_grad"),
        links=Links(given.number("latency")),
    )
    limit = read_count(words, "memory_limit")
    if limit is not None and limit < 1:
        raise InputError(
            "{name}={limit} holds no activation; a schedule needs room for at least 1",
            name="memory_limit",
            limit=limit,
        )
    # What a schedule leaves no choice of, chunks or groups, is not read: the page may still have
    # the words of the schedule that was shown before.
    entry = ENTRIES.get(name)
    asked = Request(
        _size(words, "stages", 4),
        _size(words, "microbatches", 8),
        read_count(words, "chunks") if entry is None or entry.chunks is None else None,
        read_count(words, "group") if entry is None or entry.takes_group else None,
        costs=costs,
        memory=Memory(limit),
    )
    of = read_word(words, "of") or _OF[0]
    if of not in _OF:
        raise InputError("of={of} is not known; times are of a rank or of a stage", of=of[:40])
    return ScheduleQuery(name, asked, costs, limit, of == _OF[0])


FIELDS = ("stages", "microbatches", "chunks", "group", *_TIMES, "memory_limit", "of")


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


@dataclass(frozen=True)
class _Given:
    """Reads times: one number, or one for each stage."""

    words: Mapping[str, Sequence[str]]

    def duration(self, name: str) -> Duration:
        numbers = self._numbers(name)
        return numbers[0] if len(numbers) == 1 else numbers

    def number(self, name: str) -> Number:
        numbers = self._numbers(name)
        if len(numbers) > 1:
            raise InputError(
                "--{option} takes one number; it got {count}", option=name, count=len(numbers)
            )
        return numbers[0]

    def _numbers(self, name: str) -> tuple[Number, ...]:
        text = read_word(self.words, name) or _TIMES[name]
        return read_numbers(f"--{name.replace('_', '-')}", text)


def _size(words: Words, name: str, default: int) -> int:
    size = read_count(words, name)
    return default if size is None else size


def _hold(query: ScheduleQuery) -> None:
    """Refuses what would take the page, or the server, too long."""
    asked = query.asked
    entry = ENTRIES.get(query.name)
    # Chunks that nobody tells count as 2, the default of schedules that can have several.
    chunks = (entry.chunks if entry else None) or asked.chunks or 2
    cells = asked.num_ranks * asked.num_microbatches * chunks
    most = SLOW.get(query.name, MOST_CELLS)
    if cells > most:
        raise InputError(
            "{name} with {ranks} ranks, {microbatches} microbatches and {chunks} chunks is more "
            "than this page draws; the product of the three is at most {most}, and 'serried "
            "schedule' has no such bound",
            name=query.name,
            ranks=asked.num_ranks,
            microbatches=asked.num_microbatches,
            chunks=chunks,
            most=most,
        )


def _shared(costs: Costs, parts: int) -> Costs:
    if parts == 1:
        return costs
    times: dict[str, Any] = {
        name: _divided(getattr(costs, name), parts)
        for name in ("forward", "input_grad", "weight_grad")
    }
    return replace(costs, **times)


def _divided(time: Duration, parts: int) -> Any:
    if isinstance(time, Sequence):
        return tuple(_divided(each, parts) for each in time)
    # A float here is nan or an infinity, which the costs refuse by their own name.
    return time if isinstance(time, float) else Fraction(time) / parts


def _text(time: object) -> str:
    return ",".join(map(str, time)) if isinstance(time, Sequence) else str(time)
