"""What is said of a running job from one look to the next, and what is not."""

from __future__ import annotations

from collections.abc import Sequence

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.quote import Quote, Speaker
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.watch.look import JobLook, RankIs, RankLook
from serried.diagnose.watch.watching import RESTART_S, START_S, Notice, Watch
from serried.finding import said


def job(time: float, steps: Sequence[int], *states: RankIs, attempt: int = 0) -> JobLook:
    """Returns a look at ranks that stand at ``steps``, running unless ``states`` say otherwise."""
    every = [*states, *[RankIs.RUNNING] * (len(steps) - len(states))]
    ranks = {
        rank: RankLook(rank, count=10 * step, step=step, state=state, attempt=attempt)
        for rank, (step, state) in enumerate(zip(steps, every, strict=True))
    }
    return JobLook(time, ranks, world_size=len(steps))


def heard(watch: Watch, looks: Sequence[JobLook]) -> list[Notice]:
    return [notice for look in looks for notice in watch.hear(look)]


def told(watch: Watch, looks: Sequence[JobLook]) -> list[str]:
    return [str(notice.sentence) for notice in heard(watch, looks)]


def steady(until: int) -> list[JobLook]:
    """Returns looks at two ranks that take a step a second."""
    return [job(float(at), (at, at)) for at in range(until)]


def test_nothing_is_said_of_a_job_that_goes_on() -> None:
    assert told(Watch(still_s=3), steady(100)) == []


def test_a_job_that_stands_still_is_said_once_and_asked_why() -> None:
    looks = [*steady(10), *(job(float(at), (9, 9)) for at in range(10, 40))]
    found = heard(Watch(still_s=12), looks)
    assert [(each.kind, each.time, each.asks_why) for each in found] == [("still", 21.0, True)]
    assert str(found[0].sentence) == "no rank went on for 12 s, at step 9"


def test_it_is_said_when_the_job_goes_on_and_again_when_it_stands_still_anew() -> None:
    looks = [*steady(10), job(30.0, (9, 9)), job(31.0, (10, 10)), job(60.0, (10, 10))]
    assert told(Watch(still_s=12), looks) == [
        "no rank went on for 21 s, at step 9",
        "the job goes on after 22 s, at step 10",
        "no rank went on for 29 s, at step 10",
    ]


def test_a_job_that_stood_still_before_anybody_looked_is_told_at_once() -> None:
    rank = RankLook(0, count=5, step=2, idle_s=90.0)
    assert told(Watch(still_s=60), [JobLook(0.0, {0: rank}, 1)]) == [
        "no rank went on for 90 s, at step 2"
    ]


def test_how_long_it_may_stand_still_follows_from_its_steps_and_pauses() -> None:
    watch = Watch()
    assert watch.allowed_s == START_S
    heard(watch, [job(20.0 * at, (at, at)) for at in range(5)])
    assert watch.allowed_s == 200.0  # ten steps of 20 s
    heard(watch, [job(80.0, (4, 4)), job(260.0, (5, 5))])
    assert watch.allowed_s == 360.0  # twice the pause of a checkpoint
    quick = Watch()
    heard(quick, steady(20))
    assert quick.allowed_s == 30.0


def test_ranks_that_never_wrote_are_counted() -> None:
    look = JobLook(0.0, {0: RankLook(0, count=1)}, world_size=4)
    later = JobLook(400.0, look.ranks, world_size=4)
    assert told(Watch(), [look, later]) == [
        "no rank went on for 400 s; 3 of 4 ranks never wrote anything"
    ]


def test_an_empty_folder_is_waited_for_in_silence() -> None:
    assert told(Watch(), [JobLook(float(at)) for at in range(0, 2000, 100)]) == []


def test_a_rank_that_starts_late_is_no_finding() -> None:
    looks = [JobLook(0.0), job(5.0, (0,)), job(6.0, (1, 0)), job(7.0, (2, 2)), job(8.0, (3, 3))]
    assert told(Watch(), looks) == []


def test_a_job_of_which_only_logs_tell_stands_still_too() -> None:
    grows = [JobLook(float(at), log_bytes=100 * at) for at in range(1, 5)]
    stands = [JobLook(float(at), log_bytes=400) for at in range(5, 90, 5)]
    assert told(Watch(still_s=60), [*grows, *stands]) == ["nothing was written for 61 s"]


def test_a_rank_behind_the_others_is_told_once_and_at_the_second_look() -> None:
    looks = [job(0.0, (9, 9, 9)), *(job(at + 1.0, (10 + at, 9, 10 + at)) for at in range(6))]
    found = heard(Watch(), looks)
    assert [(each.kind, each.ranks, each.time) for each in found] == [("behind", (1,), 4.0)]
    assert str(found[0].sentence) == ("rank 1 falls behind: it is at step 9, the others at step 13")


def test_of_ranks_that_wait_for_nobody_only_the_slowest_is_behind() -> None:
    looks = [job(float(at), (100 * at, 10 + at, 300 * at)) for at in range(1, 20)]
    assert {each.ranks for each in heard(Watch(), looks)} == {(1,)}


def test_ranks_one_step_apart_are_not_behind() -> None:
    assert told(Watch(), [job(float(at), (at, at - 1, at - 2)) for at in range(3, 20)]) == []


def test_a_loss_that_is_no_number_is_told_once() -> None:
    sign = Sign("nan", Quote("rank_1.log", 7, "step 3 loss nan"), Speaker(1))
    look = JobLook(0.0, log_bytes=1, signs=(sign, sign))
    found = heard(Watch(), [look, JobLook(1.0, log_bytes=2, signs=(sign,))])
    assert [(each.kind, each.ranks, str(each.quote)) for each in found] == [
        ("nan", (1,), "rank_1.log:7: step 3 loss nan")
    ]


def test_a_slow_rank_is_told_when_it_is_slow_twice_in_a_row() -> None:
    cause = Cause(CauseClass.STRAGGLER, "slow_gpu", (2,), said("rank 2 holds up"), 0.9)
    slow, fine = (cause,), ()
    asked = [slow, None, fine, slow, None, slow, slow]
    looks = [JobLook(float(at), log_bytes=at, slow=each) for at, each in enumerate(asked)]
    assert [(each.kind, each.time) for each in heard(Watch(), looks)] == [("slow", 5.0)]


def test_how_ranks_ended_is_told_once_and_the_job_is_over_when_nobody_starts_it_anew() -> None:
    watch = Watch()
    looks = [
        job(0.0, (4, 4)),
        job(1.0, (4, 4), RankIs.RUNNING, RankIs.GONE),
        job(2.0, (4, 4), RankIs.FAILED, RankIs.GONE),
        job(3.0, (4, 4), RankIs.FAILED, RankIs.GONE),
    ]
    assert told(watch, looks) == [
        "the process of rank 1 ended without a word, as if it was killed",
        "rank 0 ended by an exception",
    ]
    assert not watch.has_ended
    assert told(watch, [job(3.0 + RESTART_S, (4, 4), RankIs.FAILED, RankIs.GONE)]) == [
        "the job ended at step 4"
    ]
    assert watch.has_ended


def test_a_job_whose_ranks_all_say_so_ended() -> None:
    watch = Watch()
    found = heard(watch, [job(0.0, (4, 4)), job(1.0, (5, 5), RankIs.DONE, RankIs.DONE)])
    assert [(each.kind, each.is_finding) for each in found] == [("ended", False)]
    assert watch.has_ended


def test_a_restart_begins_anew_and_its_steps_may_be_lower() -> None:
    watch = Watch(still_s=10)
    looks = [*steady(10), job(10.0, (9, 9), RankIs.GONE, RankIs.RUNNING)]
    again = [job(15.0 + at, (5 + at, 5 + at), attempt=1) for at in range(8)]
    dies = job(23.0, (12, 12), RankIs.GONE, RankIs.RUNNING, attempt=1)
    assert [each.kind for each in heard(watch, [*looks, *again, dies])] == [
        "gone",
        "restarted",
        "gone",
    ]
