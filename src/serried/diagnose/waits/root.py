"""What a root of a hang is: its kind, its ranks, and the ground that the claim stands on.

>>> Root(RootKind.DEAD, (3,), 0.95, waiters=(0, 1, 2)).kind.value
'dead'
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from serried.diagnose.waits.callers import OddCall
from serried.diagnose.waits.graph import StalledCollective
from serried.diagnose.waits.hidden_messages import HiddenMessages
from serried.diagnose.waits.lines_apart import LineApart
from serried.diagnose.waits.messages import Crossed
from serried.diagnose.waits.mismatch import Mismatch
from serried.diagnose.waits.order import Deviation


class RootKind(Enum):
    """Says how a rank came to keep others waiting; the values are the ``kind`` of a diagnosis."""

    DEAD = "dead"
    STOPPED = "stopped"
    FINISHED = "finished_early"
    USER_CODE = "stuck_in_user_code"
    NEVER_ARRIVED = "never_arrived"
    SILENT = "left_nothing"
    SKIPPED = "skipped_collective"
    SWAPPED = "swapped_groups"
    OTHER_GROUP = "wrong_group"
    OTHER_OPERATION = "mismatch_op"
    OTHER_DTYPE = "mismatch_dtype"
    OTHER_SIZE = "mismatch_size"
    ALONE = "collective_on_some_ranks"
    OUT_OF_SCHEDULE = "pipeline_order"
    WRONG_PEER = "wrong_peer"
    LEFT_OUT_SEND = "send_left_out"
    LEFT_OUT_RECEIVE = "receive_left_out"
    OTHER_MESSAGES = "message_left_out"
    LEFT_PIPELINE = "left_pipeline_early"
    OTHER_LINE = "called_elsewhere"
    LEFT_ORDER = "left_order_of_lines"
    MAY_WAIT = "may_wait_for_message"
    CIRCLE = "circle"


@dataclass(frozen=True)
class Root:
    """Holds one root: who, how, and the ground that the claim stands on."""

    kind: RootKind
    ranks: tuple[int, ...] | None
    """None where nothing tells which of those in the circle it is."""
    confidence: float
    waiters: tuple[int, ...]
    circle: tuple[int, ...] = ()
    meeting: StalledCollective | None = None
    """The collective in which others wait for it."""
    deviation: Deviation | None = None
    mismatch: Mismatch | None = None
    crossed: Crossed | None = None
    hidden: HiddenMessages | None = None
    odd_call: OddCall | None = None
    line_apart: LineApart | None = None
