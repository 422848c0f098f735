"""Which cause comes first where logs and dumps tell of several."""

from __future__ import annotations

from serried.diagnose.evidence.quote import Quote
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.gathered import Evidence
from serried.diagnose.job_state.state import JobGroup, JobState, RankOperation, RankState
from serried.diagnose.reason import diagnosed

NAN = Sign("nan", Quote("job.log", 3, "non-finite loss, skip"), text="non-finite loss")


def test_the_root_of_a_hang_comes_before_numbers_of_nobody_knows_which_rank() -> None:
    waiting = RankOperation("all_reduce", "world", 4, is_finished=False)
    ranks = [RankState(rank, doing=waiting, counts={"world": 4}) for rank in (0, 1)]
    ranks.append(RankState(2, counts={"world": 3}))
    state = JobState.of(3, [JobGroup("world", "world", (0, 1, 2))], ranks)
    alone = diagnosed(Evidence((NAN,))).causes[0]
    assert (alone.cause_class.value, alone.ranks) == ("numerics", None)
    first, second = diagnosed(Evidence((NAN,), state)).causes[:2]
    assert (first.cause_class.value, first.ranks) == ("hang", (2,))
    assert second.kind == alone.kind
