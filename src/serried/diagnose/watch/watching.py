"""What is worth saying of a running job, from one look to the next; each thing is said once.

    look   look   look   look   look   look
     │ +40  │ +38  │  0   │  0   │  0   │        spans of all ranks since the look before
                   └──── still ────┘             nobody went on for longer than it ever took

How long a job may stand still follows from its own pace: ten of its steps, twice the longest pause
that it came out of (a checkpoint), and never less than half a minute. Before its steps are known
it is given five minutes to start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from serried.diagnose.evidence.quote import Quote
from serried.diagnose.watch.look import ENDED, JobLook, RankIs
from serried.diagnose.whom import named
from serried.finding import Sentence, said

START_S = 300.0
"""How long a job of which no pace is known may stand still."""
LEAST_S = 30.0
STEPS_STILL = 10.0
PAUSES_STILL = 2.0
STEPS_BEHIND = 3
"""By how many steps a rank must be behind the others: those who wait are one step apart."""
RESTART_S = 300.0
"""How long it is waited, after all ranks failed, whether the job is started anew: a start may take
minutes before a rank writes anything, and torchrun says nothing of it."""
_MOST_PACES = 16


@dataclass(frozen=True)
class Notice:
    """Holds one thing that is said: when, of whom, and what."""

    time: float
    kind: str
    """``still``, ``goes_on``, ``behind``, ``slow``, ``nan``, ``stopped``, ``failed``, ``gone``,
    ``restarted``, ``ended``."""
    sentence: Sentence
    ranks: tuple[int, ...] | None = None
    """Those whom it is about; None where it is about all, or nobody can be told."""
    quote: Quote | None = None
    is_finding: bool = True
    """Whether something is wrong."""
    asks_why: bool = False
    """Whether all of the job's files should be asked now for the cause."""


@dataclass
class Watch:
    """Compares looks at one job; ``still_s`` is how long it may stand still, None by its pace.

    >>> from serried.diagnose.watch.look import RankLook
    >>> watch = Watch(still_s=20)
    >>> looks = [JobLook(t, {0: RankLook(0, count=5, step=2)}) for t in (0.0, 10.0, 30.0, 40.0)]
    >>> [notice.kind for look in looks for notice in watch.hear(look)]
    ['still']
    """

    still_s: float | None = None
    has_ended: bool = False
    _before: JobLook | None = None
    _moved: float = 0.0
    """When the job last went on."""
    _is_still: bool = False
    _paces: list[float] = field(default_factory=list)
    """Seconds a step, the latest."""
    _step_at: tuple[int, float] | None = None
    _longest_pause: float = 0.0
    _behind: dict[int, int] = field(default_factory=dict)
    """Ranks that were behind at the last look, with how many looks they have been."""
    _slow_before: set[tuple[int, ...] | None] = field(default_factory=set)
    """Who was slow when it was asked last."""
    _told: set[tuple[object, ...]] = field(default_factory=set)
    _all_ended_at: float | None = None

    def hear(self, look: JobLook) -> list[Notice]:
        """Returns what is to be said after another look, in the order of its weight."""
        before, self._before = self._before, look
        if before is not None and _attempts(before) < _attempts(look):
            self._start_anew(look)
            notices = [self._restarted(look)]
        else:
            notices = []
        notices += self._numbers(look)
        notices += self._states(look)
        notices += self._progress(before, look)
        notices += self._behind_others(before, look)
        notices += self._slow(look)
        return notices + list(self._end(look))

    @property
    def moved_at(self) -> float:
        """When the job last went on, in seconds since 1970; 0 before the first look."""
        return self._moved

    @property
    def allowed_s(self) -> float:
        """How long the job may stand still before it is said."""
        if self.still_s is not None:
            return self.still_s
        if not self._paces:
            return START_S
        pace = sorted(self._paces)[len(self._paces) // 2]
        return max(LEAST_S, STEPS_STILL * pace, PAUSES_STILL * self._longest_pause)

    # ------------------------------------------------------------------- the whole job

    def _progress(self, before: JobLook | None, look: JobLook) -> Iterator[Notice]:
        running = [each for each in look.ranks.values() if each.state not in ENDED]
        if before is None or (look.ranks and not before.ranks):
            # It may have stood still long before anybody looked.
            idle = min((each.idle_s for each in running), default=0.0)
            self._moved = look.time - idle
        elif _went_on(before, look):
            paused = look.time - self._moved
            if self._is_still:
                yield Notice(look.time, "goes_on", _goes_on(look, paused), is_finding=False)
            if self._paces:
                self._longest_pause = max(self._longest_pause, paused)
            self._moved, self._is_still = look.time, False
        self._pace(look)
        has_any = bool(running) or (not look.ranks and look.log_bytes > 0)
        stood = look.time - self._moved
        if has_any and not self._is_still and stood >= self.allowed_s:
            self._is_still = True
            yield Notice(look.time, "still", _still(look, stood), asks_why=True)

    def _pace(self, look: JobLook) -> None:
        step = max((each.step for each in look.ranks.values()), default=-1)
        if step < 0:
            return
        if self._step_at is not None and step > self._step_at[0]:
            self._paces.append((look.time - self._step_at[1]) / (step - self._step_at[0]))
            del self._paces[:-_MOST_PACES]
        if self._step_at is None or step > self._step_at[0]:
            self._step_at = (step, look.time)

    def _start_anew(self, look: JobLook) -> None:
        self._moved, self._is_still, self._step_at = look.time, False, None
        self._behind.clear()
        self._told.clear()
        self._all_ended_at = None

    def _restarted(self, look: JobLook) -> Notice:
        return Notice(
            look.time,
            "restarted",
            said("the job was started anew: {count} ranks so far", count=len(look.ranks)),
            is_finding=False,
        )

    def _end(self, look: JobLook) -> Iterator[Notice]:
        states = [each.state for each in look.ranks.values()]
        if not states or not {*states} <= ENDED:
            self._all_ended_at = None
            return
        if self._all_ended_at is None:
            self._all_ended_at = look.time
        is_good = {*states} == {RankIs.DONE}
        is_whole = look.world_size is None or len(states) >= look.world_size
        if (is_good and is_whole) or look.time - self._all_ended_at >= RESTART_S:
            self.has_ended = True
            step = max(each.step for each in look.ranks.values())
            yield Notice(
                look.time,
                "ended",
                said("the job ended at step {step}", step=step)
                if step >= 0
                else said("the job ended"),
                is_finding=False,
            )

    # ------------------------------------------------------------------- single ranks

    def _once(self, *what: object) -> bool:
        """Tells whether something was not said before; it counts as said from now on."""
        is_new = what not in self._told
        self._told.add(what)
        return is_new

    def _numbers(self, look: JobLook) -> Iterator[Notice]:
        for sign in look.signs:
            # Once a loss is no number it stays so on all ranks, in every step.
            if self._once("nan"):
                rank = sign.speaker.global_rank
                yield Notice(
                    look.time,
                    "nan",
                    said(
                        "a loss or gradient is no number any more: {line}", line=_short(sign.quote)
                    ),
                    None if rank is None else (rank,),
                    sign.quote,
                )

    def _states(self, look: JobLook) -> Iterator[Notice]:
        for state, words in _STATES.items():
            new = [
                rank
                for rank, each in sorted(look.ranks.items())
                if each.state is state and self._once(state, rank)
            ]
            if new:
                yield Notice(
                    look.time,
                    state.value,
                    Sentence(words.template, {"who": named(new)}),
                    tuple(new),
                    asks_why=state is not RankIs.STOPPED,
                )

    def _behind_others(self, before: JobLook | None, look: JobLook) -> Iterator[Notice]:
        running = {r: each for r, each in look.ranks.items() if each.state not in ENDED}
        now: dict[int, int] = {}
        for rank, each in sorted(running.items()):
            others = sorted(other.step for r, other in running.items() if r != rank)
            if not others or each.step < 0:
                continue
            # Of two others the slower counts: one that runs ahead alone makes nobody slow.
            middle = others[(len(others) - 1) // 2]
            if middle - each.step < STEPS_BEHIND:
                self._told.discard(("behind", rank))
                continue
            now[rank] = self._behind.get(rank, 0) + 1
            # A file is read after another one: at a second look it must still be so.
            if now[rank] >= 2 and self._once("behind", rank):
                yield Notice(
                    look.time,
                    "behind",
                    said(
                        "rank {rank} falls behind: it is at step {step}, the others at step "
                        "{others}",
                        rank=rank,
                        step=each.step,
                        others=middle,
                    ),
                    (rank,),
                )
        self._behind = now

    def _slow(self, look: JobLook) -> Iterator[Notice]:
        if look.slow is None:
            return
        # What a neighbour on the machine did for some steps is not worth a word.
        before, self._slow_before = self._slow_before, {each.ranks for each in look.slow}
        for cause in look.slow:
            if cause.ranks in before and self._once("slow", cause.ranks):
                yield Notice(look.time, "slow", cause.verdict, cause.ranks)


_STATES = {
    RankIs.FAILED: said("{who} ended by an exception"),
    RankIs.GONE: said("the process of {who} ended without a word, as if it was killed"),
    RankIs.STOPPED: said("{who} was stopped by a signal or a debugger"),
}


def _attempts(look: JobLook) -> int:
    return max((each.attempt for each in look.ranks.values()), default=0)


def _went_on(before: JobLook, look: JobLook) -> bool:
    if not look.ranks:
        return look.log_bytes != before.log_bytes
    return any(
        rank not in before.ranks or before.ranks[rank].count != each.count
        for rank, each in look.ranks.items()
    )


def _still(look: JobLook, stood: float) -> Sentence:
    steps = [each.step for each in look.ranks.values()]
    missing = (look.world_size or 0) - len(look.ranks)
    if not look.ranks:
        return said("nothing was written for {stood:.0f} s", stood=stood)
    if missing > 0:
        return said(
            "no rank went on for {stood:.0f} s; {missing} of {count} ranks never wrote anything",
            stood=stood,
            missing=missing,
            count=look.world_size,
        )
    if max(steps) < 0:
        return said("no rank went on for {stood:.0f} s, before the first step", stood=stood)
    return said("no rank went on for {stood:.0f} s, at step {step}", stood=stood, step=max(steps))


def _goes_on(look: JobLook, paused: float) -> Sentence:
    step = max((each.step for each in look.ranks.values()), default=-1)
    if step < 0:
        return said("the job goes on after {paused:.0f} s", paused=paused)
    return said("the job goes on after {paused:.0f} s, at step {step}", paused=paused, step=step)


def _short(quote: Quote) -> str:
    text = quote.text.strip()
    return text if len(text) <= 160 else text[:159] + "…"
