"""The eight steps that DualPipe and DualPipeV share, for one rank with two lanes.

    lane 0 is the stage that starts first on this rank, lane 1 the other; h ranks lie between
    the rank and the turn or the middle (d), n microbatches run in each lane

    1  2d       F0                     5  d          B1, F1+B0
    2  h + 1    F0 F1                  6  h + 1      B1 B0, the second half as I
    3  d        I1 W F1                7  d          W B0, or W I0
    4  n - 2(h + 1 + d) + h + 1        8  h + 1      W
                F0+B1, F1+B0

F+B is an overlapped pair: each hides the other's messages. W takes the oldest input half whose
weight half is still to do. Rule: deepseek-ai/DualPipe, ``step`` (arXiv 2412.19437).
"""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from serried.action import ActionKind
from serried.pipeline.packed import JOINED, Codes, work

Lane = tuple[int, int]
"""The stage and the direction of a lane."""


class _List:
    """Grows one rank's list: the next microbatch of a lane's forward or backward, each in turn."""

    def __init__(self, lanes: tuple[Lane, Lane]) -> None:
        self.codes: list[int] = []
        self._lanes = lanes
        self._done: Counter[tuple[bool, int]] = Counter()
        self._weights: deque[int] = deque()

    def forward(self, lane: int) -> None:
        self._add(ActionKind.F, lane)

    def backward(self, lane: int, *, halved: bool = False) -> None:
        microbatch = self._add(ActionKind.I if halved else ActionKind.B, lane)
        if halved:
            stage, direction = self._lanes[lane]
            self._weights.append(work(ActionKind.W, stage, microbatch, direction))

    def pair(self, forward: int, backward: int) -> None:
        self._add(ActionKind.F, forward)
        self.codes[-1] |= JOINED
        self._add(ActionKind.B, backward)

    def weight(self) -> None:
        if self._weights:
            self.codes.append(self._weights.popleft())

    def _add(self, kind: ActionKind, lane: int) -> int:
        turn = (kind == ActionKind.F, lane)
        microbatch = self._done[turn]
        self._done[turn] += 1
        stage, direction = self._lanes[lane]
        self.codes.append(work(kind, stage, microbatch, direction))
        return microbatch


def eight_steps(
    *, before_turn: int, after_start: int, microbatches: int, lanes: tuple[Lane, Lane]
) -> Codes:
    """Returns the list of a rank with ``before_turn`` ranks (d) up to the turn and h before it."""
    d, h = before_turn, after_start
    ops = _List(lanes)
    for _ in range(2 * d):
        ops.forward(0)
    for _ in range(h + 1):
        ops.forward(0)
        ops.forward(1)
    for _ in range(d):
        ops.backward(1, halved=True)
        ops.weight()
        ops.forward(1)
    for turn in range(microbatches - 2 * (h + 1 + d) + h + 1):
        if turn == 0 and d == 0:
            # Apart, the forward need not wait for the backward's gradient: a smaller bubble.
            ops.forward(0)
            ops.backward(1)
        else:
            ops.pair(0, 1)
        ops.pair(1, 0)
    for _ in range(d):
        ops.backward(1)
        ops.pair(1, 0)
    _drain(ops, d, h)
    return np.array(ops.codes, np.int64)


def _drain(ops: _List, d: int, h: int) -> None:
    """Adds steps 6 to 8; the second half of step 6 puts its weight halves off to the end."""
    # Of the 2(h + 1) backwards of step 6 the second half is split:
    #
    #     h = 2    B1 B0  B1 I0  I1 I0
    #     h = 3    B1 B0  B1 B0  I1 I0  I1 I0
    half, odd = (h + 1) // 2, h % 2
    for turn in range(h + 1):
        ops.backward(1, halved=turn > half or (turn == half and odd == 1))
        ops.backward(0, halved=turn >= half)
    for _ in range(d):
        ops.weight()
        ops.backward(0, halved=True)
    for _ in range(h + 1):
        ops.weight()
