"""Who stands behind the others in a group, and what only seems to be a fault of its own there."""

from __future__ import annotations

from serried.diagnose.diagnosis import CauseClass
from tests.diagnose.logs.test_rules import first_cause, waiting

SIGNAL = (
    "[rank{rank}]:[E1206 ProcessGroupNCCL.cpp:1858] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] "
    "Received a dump signal due to a collective timeout from  rank 1 and we will try our best to "
    "dump the debug info. Last enqueued NCCL work: {issued}, last completed NCCL work: {done}."
)


def test_a_rank_that_had_finished_all_its_calls_never_came_to_the_next() -> None:
    rows = [row for rank in (1, 2, 3) for row in waiting(rank, 79)]
    idle = [SIGNAL.format(rank=rank, issued=78, done=78) for rank in (0, 4)]
    cause = first_cause(*rows, *idle)
    assert (cause.kind, cause.ranks) == ("never_arrived", (0, 4))
    assert cause.collective is not None
    assert (cause.collective.seq, cause.collective.group) == (79, "default_pg")
    queued = SIGNAL.format(rank=4, issued=80, done=78)
    assert first_cause(*rows, queued).ranks is None
    many = [SIGNAL.format(rank=rank, issued=78, done=78) for rank in (0, 4, 5, 6)]
    assert first_cause(*rows, *many).ranks is None


def test_models_that_seem_to_differ_after_a_time_out_follow_from_it() -> None:
    model = "[rank2]: RuntimeError: DDP expects same model across all ranks, but Rank 2 has 51 "
    empty, other = (f"{model}params, while rank 0 has inconsistent {n} params." for n in (0, 49))
    cause = first_cause(*waiting(1, 1, "ALLGATHER"), empty)
    assert (cause.cause_class, cause.ranks) == (CauseClass.HANG, None)
    assert cause.collective is not None
    cause = first_cause(other)
    assert (cause.cause_class, cause.ranks) == (CauseClass.EXCEPTION, None)
