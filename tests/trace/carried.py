"""A recorded run whose spans carry bytes and groups: reductions of gradients and of tensors."""

from __future__ import annotations

from pathlib import Path

from serried.action import ActionKind
from serried.trace.model.record import RecordHeader, TracedJob
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.traffic import CollectiveMove

ALL_REDUCE, REDUCE_GRAD = ActionKind.ALL_REDUCE, ActionKind.REDUCE_GRAD
JOB = TracedJob("megatron", 4, {"tp": 2, "pp": 1, "dp": 2}, "tp-cp-ep-dp-pp", "unknown", 1)
TP_BYTES, DP_BYTES = 4_000_000, 60_000_000
STEP_NS = 10_000_000
STEPS = 3


def write_carried(folder: Path) -> Path:
    """Records three steps of tp 2 x dp 2: an F of 8 ms, in it a 1 ms all-reduce, then gradients.

    Rank 1 comes 500 us late into every all-reduce of tensors, in which rank 0 waits for it. The
    gradients are two all-reduces, 2 ms together; those of step 2 also reach over all ranks.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(4):
        writer = RecordWriter(folder, RecordHeader("carried", rank, JOB, "a", "boot", 0, 1 << 60))
        tp, dp = (rank // 2 * 2, rank // 2 * 2 + 1), (rank % 2, rank % 2 + 2)
        for step in range(STEPS):
            at = step * STEP_NS
            writer.begin_step(step)
            late = 500_000 if rank == 1 else 0
            writer.add(ALL_REDUCE, at + 1_000_000 + late, at + 2_000_000, 0, 0)
            writer.add_moves([CollectiveMove(ALL_REDUCE, tp, TP_BYTES)])
            writer.add(ActionKind.F, at, at + 8_000_000, 0, 0)
            writer.add(REDUCE_GRAD, at + 8_000_000, at + 10_000_000, 0)
            more = [CollectiveMove(ALL_REDUCE, (0, 1, 2, 3), 8)] if step == 2 else []
            writer.add_moves([CollectiveMove(ALL_REDUCE, dp, DP_BYTES // 2)] * 2 + more)
        writer.close()
    return folder
