"""Packs an action into one integer, so that a million of them are one array.

    bits    0..4 kind    5 joined    6 direction    7..22 stage    23.. microbatch

``joined`` marks the forward of an overlapped pair; its backward is the next entry. A rank's
list is then written as it is drawn: ``chain(f[:2], alternate(f[2:], b[:-2]), b[-2:])``.
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray

from serried.action import Action, ActionKind
from serried.errors import InputError

Codes = NDArray[np.int64]
Numbers = NDArray[np.int64]

JOINED = 1 << 5
_DIRECTION, _STAGE, _MICROBATCH = 6, 7, 23
MAX_STAGES = 1 << (_MICROBATCH - _STAGE)
MAX_MICROBATCHES = 1 << 32


@overload
def work(kind: ActionKind, stage: int, microbatch: int, direction: int = 0) -> int: ...
@overload
def work(
    kind: ActionKind, stage: int | Numbers, microbatch: Numbers | range, direction: int = 0
) -> Codes: ...


def work(
    kind: ActionKind,
    stage: int | Numbers,
    microbatch: int | Numbers | range,
    direction: int = 0,
) -> int | Codes:
    """Returns the code of one action, or those of many where the numbers are arrays.

    >>> [str(action) for action in unpack(work(ActionKind.F, 3, range(2)))]
    ['3F0', '3F1']
    """
    # The fields do not overlap, so adding them packs them, for one number and for arrays alike.
    if isinstance(microbatch, range):
        microbatch = np.arange(microbatch.start, microbatch.stop, microbatch.step, dtype=np.int64)
    return int(kind) + (direction << _DIRECTION) + (stage << _STAGE) + (microbatch << _MICROBATCH)


def chain(*parts: Codes) -> Codes:
    """Joins lists of actions, one after another."""
    return np.concatenate(parts)


def alternate(*parts: Codes) -> Codes:
    """Takes one action of each list in turn; the lists are of equal length.

    >>> f, b = work(ActionKind.F, 0, range(2)), work(ActionKind.B, 0, range(2))
    >>> [str(action) for action in unpack(alternate(f, b))]
    ['0F0', '0B0', '0F1', '0B1']
    """
    return np.stack(parts, axis=1).reshape(-1)


def overlap(forward: Codes, backward: Codes) -> Codes:
    """Joins each forward with the backward beside it into one overlapped pair."""
    return alternate(forward | JOINED, backward)


def kind_of(code: Codes) -> Numbers:
    """Returns the kinds, as numbers of ActionKind."""
    return code & (JOINED - 1)


def is_joined(code: Codes) -> NDArray[np.bool_]:
    """Says which entries are the forward of an overlapped pair."""
    joined: NDArray[np.bool_] = (code & JOINED) != 0
    return joined


def direction_of(code: Codes) -> Numbers:
    """Returns the directions: 0, or 1 for microbatches that enter at the last rank."""
    return (code >> _DIRECTION) & 1


def stage_of(code: Codes) -> Numbers:
    """Returns the stages."""
    return (code >> _STAGE) & (MAX_STAGES - 1)


def microbatch_of(code: Codes) -> Numbers:
    """Returns the microbatches."""
    return code >> _MICROBATCH


def unpack(code: Codes, *, num_directions: int = 1) -> list[Action]:
    """Returns the actions, an overlapped pair as one; directions are told where there are two."""
    # The forward of a pair waits in ``forward`` until the next entry, its backward, completes it.
    actions: list[Action] = []
    forward = None
    columns = (kind_of, stage_of, microbatch_of, direction_of, is_joined)
    for kind, stage, microbatch, direction, joined in zip(
        *(column(code).tolist() for column in columns), strict=True
    ):
        action = Action(
            ActionKind(kind), stage, microbatch, direction if num_directions > 1 else -1
        )
        if joined:
            forward = action
        elif forward:
            actions.append(Action.pair(forward, action))
            forward = None
        else:
            actions.append(action)
    return actions


def texts(code: Codes, *, num_directions: int = 1) -> list[str]:
    """Returns the actions as text, as ``unpack`` would but ten times as fast.

    >>> texts(overlap(work(ActionKind.F, 3, range(2, 3)), work(ActionKind.B, 0, range(1))))
    ['(3F2;0B0)OVERLAP_F_B']
    """
    letter = {kind: kind.name for kind in _COMPUTATION}
    columns = [column(code).tolist() for column in (stage_of, kind_of, microbatch_of)]
    # A pair is written where its backward stands, and the forward's own place falls out.
    words = [f"{stage}{letter[kind]}{k}" for stage, kind, k in zip(*columns, strict=True)]
    if num_directions > 1:
        directions = direction_of(code).tolist()
        words = [f"{way}:{word}" for way, word in zip(directions, words, strict=True)]
    for entry in np.flatnonzero(is_joined(code)).tolist():
        words[entry + 1] = f"({words[entry]};{words[entry + 1]})OVERLAP_F_B"
        words[entry] = ""
    return [word for word in words if word]


def pack(actions: list[Action]) -> Codes:
    """Returns the codes of ``actions``; what is not a stage's computation is left out.

    >>> [str(action) for action in unpack(pack([Action.parse("1F0"), Action.parse("1SEND_F0")]))]
    ['1F0']
    """
    codes: list[int] = []
    for action in actions:
        if action.parts:
            forward, backward = (_code(part) for part in action.parts)
            codes += [forward | JOINED, backward]
        elif action.kind in _COMPUTATION:
            codes.append(_code(action))
    return np.array(codes, np.int64)


_COMPUTATION = {ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W}


def _code(action: Action) -> int:
    if action.stage >= MAX_STAGES or action.microbatch >= MAX_MICROBATCHES:
        raise InputError(
            "{action} is beyond stage {stage} or microbatch {microbatch}, the last there can be",
            action=action,
            stage=MAX_STAGES - 1,
            microbatch=MAX_MICROBATCHES - 1,
        )
    return work(action.kind, action.stage, action.microbatch, max(action.direction, 0))
