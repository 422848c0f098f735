"""How guarded ranks are: what they wait in, and whether they end, are held or gone.

    its file says ended in order                         finished
    an exception of its own                              dead; one that a peer's end or a limit
                                                         raised inside a collective: it waited
    its neighbours, or /proc while the job is here       stopped, gone
    no sign of life for longer than C would have left    gone or stopped: a living rank leaves its
    its stacks in                                        stacks then, whoever holds its interpreter

Times of two hosts are compared only after their clocks are set by collectives that both ended.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from serried.diagnose.evidence.dumps.flight_recorder import FlightDump
from serried.diagnose.evidence.quote import Quote
from serried.diagnose.evidence.records.as_dump import QUEUED, dump_of
from serried.diagnose.evidence.records.guard_file import FAILED, LEFT, RUNS, SUFFIX
from serried.diagnose.evidence.records.left import GuardedRank
from serried.diagnose.evidence.records.process import DEAD, STOPPED, state_of
from serried.diagnose.job_state.given import WORLD, GivenGroups, groups_of_layout
from serried.diagnose.job_state.state import JobGroup, RankCondition
from serried.diagnose.whom import named
from serried.finding import Sentence, said
from serried.trace.model.record import boot_id
from serried.trace.model.trace import layout_of

SILENT_S = 4.0
"""Beyond its own time-out, how long a rank gives no sign of life before it counts as gone."""
ALIVE_EVERY_S = 0.5
"""How often a guard leaves a sign of life."""
_ABORTED = "Aborted"
_CLOSED = re.compile(r"Connection (?:reset|closed) by peer")
_MOST_MOMENTS = 256
"""Collectives of one host by which its clock is set."""


@dataclass(frozen=True)
class GuardedJob:
    """Holds the guarded ranks of one job, by their numbers, and what became of each."""

    ranks: Mapping[int, GuardedRank] = field(default_factory=dict)
    letters: Mapping[int, str] = field(default_factory=dict)
    """Linux's letters of their processes, as neighbours or this host tell them."""
    silent: frozenset[int] = frozenset()
    """Those who gave no sign of life while others went on giving them."""

    @classmethod
    def of(cls, ranks: Sequence[GuardedRank]) -> GuardedJob:
        """Returns the job that guarded ranks are of."""
        by_rank = {each.rank: each for each in ranks}
        return cls(by_rank, _letters(by_rank), frozenset(_silent(by_rank)))

    @cached_property
    def _unsigned(self) -> int | None:
        """The rank that left nothing, and lived no longer than others, who all left their stacks at
        a signal or an end of their own: it was gone when the launcher ended them."""
        quiet = [
            rank
            for rank, each in self.ranks.items()
            if each.file.ended == RUNS and not each.stack.by_signal and each.stack.fatal is None
        ]
        if len(quiet) != 1 or len(self.ranks) < 2 or _is_here(self.ranks[quiet[0]]):
            return None
        if self.ranks[quiet[0]].stack.is_cut_off:
            return None
        ahead = _clocks(self.ranks)
        lived = {
            rank: each.file.alive_wall_ns - ahead[each.file.header.record.boot]
            for rank, each in self.ranks.items()
        }
        return quiet[0] if lived[quiet[0]] <= min(lived.values()) + ALIVE_EVERY_S * 1e9 else None

    @cached_property
    def _ended_alone(self) -> int | None:
        """The rank that a signal ended outside of any operation, while all others say that a peer
        closed its connection: nobody but this one can be that peer."""
        running = [rank for rank, each in self.ranks.items() if each.file.ended == RUNS]
        if len(running) != 1 or len(self.ranks) < 2 or _is_here(self.ranks[running[0]]):
            return None
        one = self.ranks[running[0]]
        failures = [each.failure for rank, each in self.ranks.items() if rank != running[0]]
        are_cut_off = all(each and _CLOSED.search(each.quote.text) for each in failures)
        is_outside = one.stack.by_signal and not one.file.waits_in
        return running[0] if are_cut_off and is_outside else None

    def condition(self, rank: int) -> tuple[RankCondition, Quote | None]:
        """Returns how a rank is, with what says so; UNKNOWN where nothing does.

        Of exceptions logs tell whether they are a rank's own.
        """
        guarded = self.ranks[rank]
        letter = self.letters.get(rank, "")
        if guarded.file.ended == LEFT:
            return RankCondition.FINISHED, None
        if guarded.file.ended == FAILED:
            return RankCondition.UNKNOWN, None
        fatal = guarded.stack.fatal
        if fatal is not None and not (_ABORTED in fatal.text and guarded.file.waits_in):
            return RankCondition.DEAD, fatal
        if letter[:1] in STOPPED and letter:
            return RankCondition.STOPPED, _told(guarded, f"its process is stopped ({letter})")
        if _has_stood(guarded):
            # It was in the hang with the others, so its end, whenever that was, is not the root.
            return RankCondition.RUNNING, None
        if guarded.stack.is_cut_off:
            # It may have left its stack at the end as the others did.
            return RankCondition.UNKNOWN, None
        if fatal is None and not guarded.stack.by_signal and letter in DEAD:
            return RankCondition.DEAD, _told(guarded, "its process is gone and said nothing")
        if fatal is None and rank in self.silent and not guarded.stack.frames:
            return RankCondition.DEAD, _told(guarded, "no sign of life, while others gave theirs")
        if rank == self._ended_alone:
            ended = "a signal ended it, and all others lost their connection to a peer"
            return RankCondition.DEAD, _told(guarded, ended)
        if rank == self._unsigned:
            said_nothing = "it left no stack at the signal that ended all others"
            return RankCondition.DEAD, _told(guarded, said_nothing)
        return RankCondition.RUNNING, None


def _has_stood(guarded: GuardedRank) -> bool:
    """Tells whether a rank waited in an operation for as long as its time-out, and lived."""
    file = guarded.file
    still_ns = file.alive_ns - file.moved_ns
    return bool(file.waits_in) and still_ns >= file.header.timeout_s * 1e9


def _is_here(guarded: GuardedRank) -> bool:
    """Tells whether the process of a rank is there on this host."""
    header = guarded.file.header
    if header.record.boot != boot_id() or not header.record.boot:
        return False
    return state_of(header.pid, header.process_start) not in DEAD


def _told(guarded: GuardedRank, what: str) -> Quote:
    return Quote(guarded.source, 0, f"rank {guarded.rank}: {what}")


def _letters(ranks: Mapping[int, GuardedRank]) -> dict[int, str]:
    """Returns the states of processes: as they are here, else as the last neighbour left them."""
    found: dict[int, str] = {}
    at: dict[int, int] = {}
    for guarded in ranks.values():
        for rank, letter in (guarded.neighbours or {}).items():
            when = guarded.neighbours_ns
            if rank in ranks and when >= at.get(rank, 0):
                found[rank], at[rank] = letter, when
    here = boot_id()
    running = {
        rank: state_of(each.file.header.pid, each.file.header.process_start)
        for rank, each in ranks.items()
        if each.file.ended == RUNS and each.file.header.record.boot == here and here
    }
    # Of a job that is over all are gone, which tells nothing of who went first.
    if any(letter not in DEAD for letter in running.values()):
        found |= running
    return found


def _silent(ranks: Mapping[int, GuardedRank]) -> list[int]:
    ahead = _clocks(ranks)
    alive = {
        rank: each.file.alive_wall_ns - ahead[each.file.header.record.boot]
        for rank, each in ranks.items()
    }
    last = max(alive.values(), default=0)
    return [
        rank
        for rank, each in ranks.items()
        if each.file.ended == RUNS
        and last - alive[rank] > (each.file.header.timeout_s + SILENT_S) * 1e9
    ]


def _clocks(ranks: Mapping[int, GuardedRank]) -> dict[str, int]:
    """Returns by host how far its wall clock is ahead of the first host's, as collectives tell."""
    ended: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    for guarded in ranks.values():
        file = guarded.file
        of_host = ended[file.header.record.boot]
        if len(of_host) >= _MOST_MOMENTS:
            continue
        to_wall = file.alive_wall_ns - file.alive_ns
        for number, seq, at in file.rows[["group", "seq", "ended_ns"]][-_MOST_MOMENTS:].tolist():
            if seq > 0 and at > 0 and 0 < number <= len(file.groups):
                key = file.groups[number - 1].name, seq
                of_host[key] = max(of_host.get(key, 0), at + to_wall)
    if len(ended) == 1:
        return dict.fromkeys(ended, 0)
    first = next(iter(ended.values()), {})
    ahead = {}
    for host, moments in ended.items():
        apart = [at - first[key] for key, at in moments.items() if key in first]
        ahead[host] = round(statistics.median(apart)) if apart else 0
    return ahead


def of_last_attempt(ranks: Sequence[GuardedRank]) -> tuple[list[GuardedRank], list[Sentence]]:
    """Returns the guarded ranks of one job, one for each rank: those of its last attempt."""
    if not ranks:
        return [], []
    notes = list[Sentence]()
    last = max(each.file.header.attempt for each in ranks)
    if earlier := [each for each in ranks if each.file.header.attempt != last]:
        notes.append(
            said(
                "{files} guard files ({ranks}) are of attempts before restart {count} of the job, "
                "and were left out",
                files=len(earlier),
                count=last,
                ranks=named(each.rank for each in earlier),
            )
        )
    kept: dict[int, GuardedRank] = {}
    for each in ranks:
        if each.file.header.attempt == last:
            known = kept.setdefault(each.rank, each)
            kept[each.rank] = max(known, each, key=lambda one: one.file.header.record.wall_ns)
    return list(kept.values()), notes


def dumps_of(dumps: Sequence[FlightDump], job: GuardedJob) -> list[FlightDump]:
    """Returns dumps, those of guarded ranks together with what their guards wrote down."""
    mine: dict[int, FlightDump] = {}
    others = []
    for dump in dumps:
        guarded = job.ranks.get(-1 if dump.rank is None else dump.rank)
        if guarded is not None and guarded.source.removesuffix(SUFFIX) in dump.name:
            mine[guarded.rank] = dump
        else:
            others.append(dump)
    theirs = [each for each in others if each.rank not in job.ranks]
    least = _issued_by_all(job)
    dumped = (dump_of(each, mine.get(rank)) for rank, each in job.ranks.items())
    return [*(_with_open(each, least) for each in dumped), *theirs]


def _issued_by_all(job: GuardedJob) -> dict[str, int]:
    """Returns by a group's name how many of its collectives every member has issued.

    Of a group of which some member left no file nothing is told.
    """
    ranks = {group.name: group.ranks for each in job.ranks.values() for group in each.file.groups}
    counts = {rank: each.file.counts for rank, each in job.ranks.items()}
    return {
        name: min((counts[rank] or {}).get(name, 0) for rank in members)
        for name, members in ranks.items()
        if all(counts.get(rank) is not None for rank in members)
    }


def _with_open(dump: FlightDump, least: Mapping[str, int]) -> FlightDump:
    """Returns a dump in which a collective of a stream is not over that some member never issued.

    A recorder's dump may be older than what the guard wrote, or not be there.
    """
    early = {
        at
        for at, each in enumerate(dump.entries)
        if each.is_finished
        and each.backend == QUEUED
        and each.peer is None
        and each.seq > least.get(each.group_id, 1 << 62)
    }
    if not early:
        return dump
    entries = (
        each._replace(is_finished=False) if at in early else each
        for at, each in enumerate(dump.entries)
    )
    return replace(dump, entries=tuple(entries))


def given_by_guards(ranks: Sequence[GuardedRank]) -> GivenGroups | None:
    """Returns the layout that guards were told, or else only how many ranks there are."""
    if not ranks:
        return None
    record = ranks[0].file.header.record
    job = record.job
    layout = layout_of(job)[0] if len(job.sizes) > 1 else None
    if layout is not None:
        return groups_of_layout(layout, ranks[0].source, job.gpus_per_node)
    return GivenGroups(
        ranks[0].source,
        job.world_size,
        (JobGroup(WORLD, WORLD, tuple(range(job.world_size))),),
        gpus_per_node=job.gpus_per_node if job.gpus_per_node < job.world_size else None,
    )
