"""The state of a job from what its ranks left: dumps, stacks, states of processes, ends in logs.

    dump     what was issued in each group, and what is not over
    stack    where the rank stands: in which operation, or in the user's own code
    ends     who ended of itself

A stack tells of a send or receive that gloo's dumps leave out, and the place in the program tells
to whom it goes (see ``program``). Of a rank without a dump, the group of its collective is taken
from peers that stand at, or have passed, the same line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from serried.diagnose.evidence.dumps.flight_recorder import FlightDump
from serried.diagnose.evidence.dumps.one_job import of_one_job
from serried.diagnose.evidence.quote import Quote
from serried.diagnose.evidence.records.as_dump import entry_of
from serried.diagnose.evidence.records.guard_file import GuardFile
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.dumped_groups import (
    DumpedGroups,
    contradictions,
    highest_ranks,
)
from serried.diagnose.job_state.dumped_operation import dumped_operation
from serried.diagnose.job_state.endings import Endings, endings_of
from serried.diagnose.job_state.fingerprints import put_fingerprints
from serried.diagnose.job_state.given import WORLD
from serried.diagnose.job_state.guarded import (
    GuardedJob,
    dumps_of,
    given_by_guards,
    of_last_attempt,
)
from serried.diagnose.job_state.left_behind import LeftBehind
from serried.diagnose.job_state.message_sites import MessageSites
from serried.diagnose.job_state.program import (
    RECORDED_AS,
    Site,
    is_in_communication,
    operation_of,
    site_of,
)
from serried.diagnose.job_state.state import (
    MESSAGES,
    JobGroup,
    JobState,
    RankCondition,
    RankOperation,
    RankState,
)
from serried.finding import Sentence


def standing_state(left: LeftBehind, signs: Iterable[Sign]) -> tuple[JobState, list[Sentence]]:
    """Returns the state of the job, and what was odd in the evidence of it."""
    ends = endings_of(signs)
    guarded, notes = of_last_attempt(left.guarded)
    job = GuardedJob.of(guarded)
    of_job = of_one_job(dumps_of(left.dumps, job))
    dumps = list(of_job.dumps)
    notes += of_job.notes
    for rank, each in job.ranks.items():
        if each.stack.frames:
            left.stacks[rank] = each.stack.as_thread(each.stacks_name)
    if left.given is None:
        left.given = given_by_guards(guarded)
    if left.given is not None and (odd := contradictions(dumps, left.given)):
        notes += odd
        left.given = None
    world_size = _world_size(left, dumps, ends)
    by_rank = {dump.rank: dump for dump in dumps if dump.rank is not None}
    groups = DumpedGroups(dumps, left.given, world_size)
    builder = _Builder(left, ends, groups, world_size, job)
    issued = {
        rank: builder.issued(rank, dump) for rank, dump in by_rank.items() if rank < world_size
    }
    builder.learn_sites(by_rank, issued)
    ranks = [builder.rank(rank, by_rank.get(rank), issued.get(rank)) for rank in range(world_size)]
    put_fingerprints(ranks, ends, groups.groups)
    given = left.given
    state = JobState.of(
        world_size,
        groups.groups,
        ranks,
        axes=given.axes if given else (),
        num_microbatches=given.num_microbatches if given else None,
        schedule=given.schedule if given else None,
        gpus_per_node=given.gpus_per_node if given else None,
        keeps_messages=len(job.ranks) == world_size,
    )
    return state, notes


def _world_size(left: LeftBehind, dumps: list[FlightDump], ends: Endings) -> int:
    if left.given is not None:
        return left.given.world_size
    seen = [each.file.header.record.job.world_size - 1 for each in left.guarded]
    return 1 + max(
        [
            *highest_ranks(dumps),
            *seen,
            *left.stacks,
            *left.process_states,
            *ends.failed_in,
            *ends.known,
            0,
        ]
    )


class _Builder:
    """Puts together what is known of each rank."""

    def __init__(
        self,
        left: LeftBehind,
        ends: Endings,
        groups: DumpedGroups,
        world_size: int,
        job: GuardedJob,
    ) -> None:
        self.left = left
        self.job = job
        self.ends = ends
        self.groups = groups
        self.world_size = world_size
        self._kinds_at: dict[tuple[Site, str], set[str]] = defaultdict(set)
        self._of_rank: dict[int, list[JobGroup]] = defaultdict(list)
        self._named = {group.name: group for group in groups.groups}
        for group in groups.groups:
            for rank in group.ranks:
                self._of_rank[rank].append(group)
        # Of a job that is gone as a whole nobody knows who left first.
        self._gone = {
            rank
            for rank, letter in left.process_states.items()
            if letter in ("gone", "X") and rank not in ends.failed_in
        }
        stacks = {rank: self.stack(rank) for rank in {*left.stacks, *ends.failed_in}}
        axes = dict(left.given.axes) if left.given else {}
        self._messages = MessageSites(stacks, ends.gave_up, left.texts, axes)

    def issued(self, rank: int, dump: FlightDump) -> tuple[RankOperation, ...]:
        """Returns what a rank issued, as its dump holds it."""
        found = []
        for entry in dump.entries:
            group = self.groups.of(rank, dump, entry)
            if group is None and entry.peer is None:
                continue
            found.append(dumped_operation(dump.name, entry, group))
        return tuple(found)

    def learn_sites(
        self, dumps: Mapping[int, FlightDump], issued: Mapping[int, tuple[RankOperation, ...]]
    ) -> None:
        """Learns from all ranks in which kind of group each line's collectives are."""
        for rank, dump in dumps.items():
            for entry in dump.entries:
                group = self.groups.of(rank, dump, entry) if entry.frames else None
                site = site_of(entry.frames)
                if group is not None and site is not None:
                    self._kinds_at[site, entry.op].add(group.kind)
        for rank, operations in issued.items():
            stack = self.stack(rank)
            op, site = operation_of(stack), site_of(stack)
            if op and site and operations and operations[-1].op == op:
                last = operations[-1]
                group = next((g for g in self._of_rank[rank] if g.name == last.group), None)
                if group is not None and not last.is_finished:
                    self._kinds_at[site, op].add(group.kind)

    def rank(
        self, rank: int, dump: FlightDump | None, issued: tuple[RankOperation, ...] | None
    ) -> RankState:
        """Returns what is known of one rank."""
        stack = self.stack(rank)
        condition, quote = self._condition(rank)
        doing = None if condition is RankCondition.FINISHED else self._doing(rank, stack, issued)
        quotes = [quote] if quote else []
        if rank in self.left.stacks and stack:
            thread = self.left.stacks[rank]
            place = next((at for at, frame in enumerate(stack) if frame.is_users), 0)
            quotes.append(Quote(thread.source, thread.line_of(place), str(stack[place])))
        elif rank in self.ends.failed_quotes:
            quotes.append(self.ends.failed_quotes[rank])
        ended = self.job.ranks[rank].stack.thread if rank in self.job.ranks else None
        quotes += [ended] if ended is not None else []
        return RankState(
            rank,
            condition,
            issued or (),
            None if dump is None or issued is None else self._counted(rank, issued),
            doing,
            stack,
            expected_bytes=self.ends.expected_bytes.get(rank),
            arrived_bytes=self.ends.arrived_bytes.get(rank),
            gave_up=rank in self.ends.failed_in,
            is_active=self.left.is_active(rank),
            quotes=tuple(quotes),
        )

    def _counted(self, rank: int, issued: tuple[RankOperation, ...]) -> dict[str, int]:
        """Returns how many collectives a rank issued in each group; a guard counts all of them."""
        counts = _counts(issued)
        guarded = self.job.ranks.get(rank)
        if guarded is None or guarded.file.counts is None:
            return counts
        for each in guarded.file.groups:
            group = self.groups.named((each.name, each.desc))
            if group is not None:
                counts[group.name] = max(counts.get(group.name, 0), guarded.file.counts[each.name])
        return counts

    def stack(self, rank: int) -> tuple[Frame, ...]:
        """Returns where a rank stands, innermost frame first; () where nothing tells."""
        if rank in self.left.stacks:
            return self.left.stacks[rank].frames
        return self.ends.failed_in.get(rank, ())

    def _condition(self, rank: int) -> tuple[RankCondition, Quote | None]:
        if rank in self.job.ranks:
            condition, quote = self.job.condition(rank)
            if condition is not RankCondition.UNKNOWN:
                return condition, quote
        letter = self.left.process_states.get(rank, "")
        if letter[:1] in ("T", "t") and letter:
            return RankCondition.STOPPED, Quote("proc_state.json", 0, f"rank {rank}: {letter}")
        if rank in self.ends.dead:
            return RankCondition.DEAD, self.ends.dead[rank]
        if rank in self._gone and 2 * len(self._gone) < self.world_size:
            return RankCondition.FINISHED, None
        if self.ends.left_in_order(rank, self.world_size):
            return RankCondition.FINISHED, None
        return (RankCondition.RUNNING if letter else RankCondition.UNKNOWN), None

    def _doing(
        self, rank: int, stack: tuple[Frame, ...], issued: tuple[RankOperation, ...] | None
    ) -> RankOperation | None:
        if rank in self.job.ranks:
            return self._guarded_doing(self.job.ranks[rank].file, stack, issued or ())
        waiting = [each for each in issued or () if not each.is_finished]
        op = self._messages.operation(rank) if not waiting else operation_of(stack)
        if op in MESSAGES and op is not None:
            recorded = [each for each in waiting if each.peer is not None]
            if recorded:
                return recorded[0]
            told = self._messages
            return RankOperation(op, peer=told.peer(rank), may_have_tag=told.may_have_tag(rank))
        if op is not None:
            # A synchronous collective is the last; of NCCL's queue the first is in the way.
            kind = self._kind(stack, op)
            same = [each for each in waiting if self._is_same(each, op, kind)]
            if same:
                return same[-1]
            if issued and self._is_same(issued[-1], op, kind) and issued[-1].peer is None:
                # gloo calls a collective over that has failed, and the stack still stands in it.
                return issued[-1]._replace(is_finished=False)
            return self._unrecorded(rank, op, kind, issued)
        if stack and stack[0].is_users and not _is_queued(waiting):
            # Its own code stands in work.wait() too: C, of which Python's stacks show nothing. Who
            # waits for what it issued last, and others have not, waits in any case.
            return issued[-1] if issued and not issued[-1].is_finished else None
        if not waiting:
            is_cut_off = rank in self.ends.failed_in and is_in_communication(stack)
            last = issued[-1] if issued and is_cut_off and issued[-1].peer is None else None
            return last._replace(is_finished=False) if last else None
        return waiting[0] if _is_queued(waiting) else waiting[-1]

    def _guarded_doing(
        self, file: GuardFile, stack: tuple[Frame, ...], issued: tuple[RankOperation, ...]
    ) -> RankOperation | None:
        """Returns what a guarded rank waits in: as it wrote down, or as C++ alone did."""
        if file.waits_in:
            entry = entry_of(file, file.waits_in)
            if entry is not None:
                group = self.groups.named((entry.group_id, entry.group_name))
                operation = dumped_operation(self.job.ranks[file.rank].source, entry, group)
                return operation._replace(is_finished=False)
        waiting = [each for each in issued if not each.is_finished]
        if _is_queued(waiting):
            return waiting[0]  # in a stream, whatever the rank itself does meanwhile
        waiting = [each for each in waiting if each.is_unseen]
        is_inside = not stack or not stack[0].is_users
        return waiting[0] if waiting and is_inside else None

    def _unrecorded(
        self, rank: int, op: str, kind: str | None, issued: tuple[RankOperation, ...] | None
    ) -> RankOperation:
        """Returns a collective that no dump holds: the rank has none, or a check comes before."""
        if kind is None and op in ("barrier", "monitored_barrier"):
            kind = WORLD
        group = next((g.name for g in self._of_rank[rank] if g.kind == kind), None)
        if group is None or issued is None:
            return RankOperation(op, group)
        return RankOperation(op, group, 1 + _counts(issued).get(group, 0))

    def _kind(self, stack: tuple[Frame, ...], op: str) -> str | None:
        """Returns in which kind of group the collective of a stack's line is; None if unknown."""
        site = site_of(stack)
        kinds = self._kinds_at.get((site, op), ()) if site else ()
        return next(iter(kinds)) if len(kinds) == 1 else None

    def _is_same(self, operation: RankOperation, op: str, kind: str | None) -> bool:
        group = self._named.get(operation.group or "")
        is_there = kind is None or group is None or group.kind == kind
        return is_there and operation.op in (op, f"_{op}_base", *RECORDED_AS.get(op, ()))


def _counts(issued: tuple[RankOperation, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for operation in issued:
        if operation.group and operation.seq and operation.peer is None:
            counts[operation.group] = max(counts.get(operation.group, 0), operation.seq)
    return counts


def _is_queued(waiting: list[RankOperation]) -> bool:
    """Tells whether several operations stand behind one another, as on a stream of NCCL's."""
    return any(each.is_queued for each in waiting)
