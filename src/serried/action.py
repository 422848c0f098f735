"""Action and Span: what one rank does to one microbatch, and when.

An action is written as PyTorch's pipelining writes it, ``<stage><kind><microbatch>``:

    3F2        forward of stage 3, microbatch 2
    3B2        full backward;  3I2 and 3W2 its input-gradient and weight-gradient halves
    3SEND_F2   sends stage 3's output on;          3RECV_F2  waits for stage 3's input
    3SEND_B2   sends the gradient of its input;    3RECV_B2  waits for the gradient of its output
    3REDUCE_GRAD  reduces stage 3's gradients over data parallel ranks
    3UNSHARD and 3RESHARD  gather stage 3's parameters and let them go again
    3RING2  waits inside a computation for the next keys of a context parallel ring, or the
            gradients that come home by it;  3ALL_TO_ALL2, 3ALL_GATHER2 and 3REDUCE_SCATTER2
            are such exchanges of the other forms, and of experts;  3ALL_REDUCE2 and
            3BROADCAST2 those of tensor parallel ranks
    3IN_FLIGHT2  an exchange on its way behind a computation, from its issue to the wait for
            it; that wait is a span of the exchange's own kind
    OPTIMIZER  the optimizer step, of no stage and no microbatch
    SPAN       what a user named; its name stands in the trace, numbered by the span's peer
    (3F2;0B0)OVERLAP_F_B  a forward and a backward run as one, hiding each other's messages
    1:3F2      of direction 1, where microbatches flow both ways and a stage has two ranks

A stage is a virtual pipeline stage, numbered globally. Schedules (planned) and traces
(recorded) both speak in these, so one timeline shows either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError


class ActionKind(IntEnum):
    """Says what kind of work an action is; the numbers stand in trace files and never change."""

    F = 1
    B = 2
    I = 3  # noqa: E741  the field's own letter
    W = 4
    SEND_F = 5
    RECV_F = 6
    SEND_B = 7
    RECV_B = 8
    REDUCE_GRAD = 9
    OPTIMIZER = 10
    OVERLAP_F_B = 11
    UNSHARD = 12
    RESHARD = 13
    RING = 14
    ALL_TO_ALL = 15
    ALL_GATHER = 16
    REDUCE_SCATTER = 17
    SPAN = 18
    ALL_REDUCE = 19
    BROADCAST = 20
    IN_FLIGHT = 21


COMPUTE = frozenset(
    {ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W, ActionKind.OVERLAP_F_B}
)
"""Kinds that are a stage's own computation; the rest is waiting, sending or the step's tail."""

EXCHANGES = frozenset(
    {
        ActionKind.RING,
        ActionKind.ALL_TO_ALL,
        ActionKind.ALL_GATHER,
        ActionKind.REDUCE_SCATTER,
        ActionKind.ALL_REDUCE,
        ActionKind.BROADCAST,
    }
)
"""Kinds that lie within the span of a computation, whose time they are a part of."""

# 0F1, 3SEND_F2, 2UNSHARD, and 1:0F3, in which microbatch 3 flows in direction 1.
_PATTERN = re.compile(
    r"(?:(?P<direction>[01]):)?(?P<stage>\d{1,18})?"
    r"(?P<kind>[A-Z][A-Z_]*[A-Z]|[FBIW])(?P<microbatch>\d{1,18})?"
)
_PAIR = re.compile(r"\((?P<forward>[^;()]+);(?P<backward>[^;()]+)\)OVERLAP_F_B")
_OF_A_STAGE = {ActionKind.REDUCE_GRAD, ActionKind.UNSHARD, ActionKind.RESHARD}


@dataclass(frozen=True)
class Action:
    """Names one piece of work; stage and microbatch are -1 where there is none.

    ``direction`` is 0 or 1 in schedules whose microbatches flow both ways, else -1;
    ``parts`` holds the forward and the backward of an overlapped pair, else nothing.

    >>> Action.parse("3SEND_F2")
    Action(kind=<ActionKind.SEND_F: 5>, stage=3, microbatch=2)
    >>> str(Action(ActionKind.F, 3, 2))
    '3F2'
    >>> [str(part) for part in Action.parse("(3F2;0B0)OVERLAP_F_B").each]
    ['3F2', '0B0']
    """

    kind: ActionKind
    stage: int = -1
    microbatch: int = -1
    direction: int = field(default=-1, repr=False)
    parts: tuple[Action, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, text: str) -> Action:
        """Reads an action; raises InputError when ``text`` is not one."""
        if pair := _PAIR.fullmatch(text.strip()):
            return cls.pair(cls.parse(pair["forward"]), cls.parse(pair["backward"]))
        match = _PATTERN.fullmatch(text.strip())
        if not match or match["kind"] not in ActionKind.__members__:
            raise _not_an_action(text)
        kind = ActionKind[match["kind"]]
        numbers = {"stage": match["stage"], "microbatch": match["microbatch"]}
        # A kind has just its numbers: 0F1 needs both, 2UNSHARD a stage and no microbatch.
        if any((numbers[name] is None) == needed for name, needed in _numbers_of(kind).items()):
            raise _not_an_action(text)
        stage, microbatch, direction = (
            -1 if number is None else int(number)
            for number in (*numbers.values(), match["direction"])
        )
        return cls(kind, stage, microbatch, direction)

    @classmethod
    def pair(cls, forward: Action, backward: Action) -> Action:
        """Joins a forward and a full backward; raises InputError for any other two."""
        whole = cls(ActionKind.OVERLAP_F_B, parts=(forward, backward))
        if (forward.kind, backward.kind) != (ActionKind.F, ActionKind.B):
            raise InputError(
                "'{text}' is not an overlapped pair; one joins a forward and a full backward, "
                "such as (3F2;0B0)OVERLAP_F_B",
                text=str(whole),
            )
        return whole

    @property
    def each(self) -> tuple[Action, ...]:
        """Gives the two actions of an overlapped pair, or the action itself."""
        return self.parts or (self,)

    def __str__(self) -> str:
        if self.parts:
            return f"({';'.join(map(str, self.parts))}){self.kind.name}"
        direction = "" if self.direction < 0 else f"{self.direction}:"
        stage = "" if self.stage < 0 else str(self.stage)
        microbatch = "" if self.microbatch < 0 else str(self.microbatch)
        return f"{direction}{stage}{self.kind.name}{microbatch}"


def _numbers_of(kind: ActionKind) -> dict[str, bool]:
    """Says which numbers an action of ``kind`` carries."""
    of_no_stage = kind in {ActionKind.OPTIMIZER, ActionKind.OVERLAP_F_B, ActionKind.SPAN}
    return {"stage": not of_no_stage, "microbatch": not (of_no_stage or kind in _OF_A_STAGE)}


def _not_an_action(text: str) -> InputError:
    shown = "".join(letter if letter.isprintable() else " " for letter in text[:41]).strip()
    return InputError(
        "'{text}' is not an action; one reads <stage><kind><microbatch>, such as 3F2",
        text=f"{shown[:40]}…" if len(text) > 41 else shown,
    )


@dataclass(frozen=True)
class Span:
    """Times one action on one rank, in nanoseconds of the trace's common clock.

    ``peer`` is the global rank that a send goes to or a receive waits for, else -1.
    """

    rank: int
    action: Action
    step: int
    start_ns: int
    end_ns: int
    peer: int = -1

    @property
    def duration_ns(self) -> int:
        """How long it took."""
        return self.end_ns - self.start_ns


Column = NDArray[np.int32]
Times = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spans:
    """Holds many spans as columns of equal length, for a million of them at once."""

    rank: Column
    stage: Column
    kind: Column
    microbatch: Column
    step: Column
    peer: Column
    start_ns: Times
    end_ns: Times
    size_bytes: Times = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """What the collectives that a span is made of moved together; -1 where that is not told."""
    group: Column = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    """The place of their group in ``Trace.groups``; -1 for none, and for several groups."""

    def __post_init__(self) -> None:
        # Few spans are of collectives: a column that was left out is one number, seen in all rows.
        for name, untold in (("size_bytes", np.int64(-1)), ("group", np.int32(-1))):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.broadcast_to(untold, len(self)))

    def __len__(self) -> int:
        return len(self.rank)

    def __iter__(self) -> Iterator[Span]:
        for row in range(len(self)):
            yield self[row]

    def __getitem__(self, row: int) -> Span:
        kind = ActionKind(int(self.kind[row]))
        action = Action(kind, int(self.stage[row]), int(self.microbatch[row]))
        start, end = int(self.start_ns[row]), int(self.end_ns[row])
        return Span(
            int(self.rank[row]), action, int(self.step[row]), start, end, int(self.peer[row])
        )

    def where(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> Spans:
        """Returns the rows that ``keep`` selects, by mask or by index."""
        return Spans(*(column[keep] for column in self.columns().values()))

    def shifted(self, by_ns: int) -> Spans:
        """Returns the same spans ``by_ns`` nanoseconds later."""
        return replace(self, start_ns=self.start_ns + by_ns, end_ns=self.end_ns + by_ns)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Returns the columns by name, in the order of the fields."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def in_order(self) -> Spans:
        """Returns the same by rank, start and end; those alike in all three stand as they did."""
        keys = (self.rank, self.start_ns, self.end_ns)
        ascends = np.ones(max(len(self) - 1, 0), dtype=np.bool_)
        for key in reversed(keys):
            ascends = (key[1:] > key[:-1]) | (ascends & (key[1:] == key[:-1]))
        return self if ascends.all() else self.where(np.lexsort(keys[::-1]))

    @classmethod
    def joined(cls, parts: list[Spans]) -> Spans:
        """Joins several, ordered by rank, start and end."""
        tables = [part.columns() for part in parts]
        whole = cls(
            *(np.concatenate([t[name] for t in tables]) for name in cls.__dataclass_fields__)
        )
        return whole.in_order()
