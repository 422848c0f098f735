"""Hangs: the roots of the wait-for graph in sentences, from the root to all who wait."""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.causes.hang_cures import cures_of
from serried.diagnose.causes.hang_words import meeting_named, operation_named, what_root_did
from serried.diagnose.causes.occupied import Occupation, occupied
from serried.diagnose.diagnosis import Cause, CauseClass, Waiting
from serried.diagnose.evidence.quote import Quote
from serried.diagnose.evidence.sign import CollectiveFacts
from serried.diagnose.gathered import Evidence
from serried.diagnose.job_state.state import JobState, RankOperation
from serried.diagnose.waits.graph import StalledCollective, WaitGraph, wait_graph
from serried.diagnose.waits.position import at_work
from serried.diagnose.waits.root import Root, RootKind
from serried.diagnose.waits.roots import roots
from serried.diagnose.whom import named
from serried.finding import Sentence, said

MOST_LINKS = 12
"""Sentences of a chain; what waits behind them is counted."""


def causes(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause for each root of a hang that dumps, stacks and records show."""
    if evidence.state is None:
        return
    graph = wait_graph(evidence.state)
    for root in roots(graph):
        yield cause_of(graph, root)


def cause_of(graph: WaitGraph, root: Root) -> Cause:
    """Returns what one root means, with the chain of those who wait for it."""
    state = graph.state
    busy = _occupation(state, root)
    return Cause(
        CauseClass.HANG,
        root.kind.value,
        root.ranks,
        said("{root}; {waits}", root=what_root_did(state, root), waits=_waits(graph, root)),
        root.confidence,
        chain=(*([busy.sentence] if busy else ()), *_running(state, root), *_chain(graph, root)),
        quotes=_quotes(state, root),
        cures=(*(busy.cures if busy else ()), *cures_of(root)),
        groups=_groups(root),
        collective=_facts(root),
        waiting=tuple(_waiting(graph, root)),
    )


def _occupation(state: JobState, root: Root) -> Occupation | None:
    if root.kind is not RootKind.USER_CODE or root.ranks is None:
        return None
    return occupied(state.ranks[root.ranks[0]].stack)


def _running(state: JobState, root: Root) -> Iterator[Sentence]:
    """Yields why the only rank that ran is taken to work, where its stack is all that tells."""
    worker = at_work(state) if root.kind is RootKind.USER_CODE else None
    if worker is not None and root.ranks == (worker.rank,):
        yield said("it ran on a processor while all others were idle: it works and does not wait")


def _waits(graph: WaitGraph, root: Root) -> Sentence:
    count, direct = len(root.waiters), len(_directly(graph, root))
    if not count:
        return said("no other rank waits")
    if count == 1:
        return said("rank {rank} waits for it", rank=root.waiters[0])
    is_one = len(root.ranks or root.circle) == 1
    if direct in (0, count):  # all wait alike
        return said(
            "{count} ranks wait for it" if is_one else "{count} ranks wait for them", count=count
        )
    return said(
        "{count} ranks wait for it, {direct} directly"
        if is_one
        else "{count} ranks wait for them, {direct} directly",
        count=count,
        direct=direct,
    )


def _directly(graph: WaitGraph, root: Root) -> set[int]:
    ranks = set(root.ranks or root.circle)
    meetings = {id(m) for m in graph.meetings if not ranks.isdisjoint(m.awaited)}
    found = set()
    for rank in root.waiters:
        meeting = graph.meeting_of(rank)
        if (id(meeting) in meetings) if meeting else not ranks.isdisjoint(graph.waits_for(rank)):
            found.add(rank)
    return found


def _chain(graph: WaitGraph, root: Root) -> Iterator[Sentence]:
    """Yields who waits in what for whom, from the root outwards."""
    links = [
        said(
            "{who} waits in {what} for {awaited}"
            if len(m.came) == 1
            else "{who} wait in {what} for {awaited}",
            who=named(m.came),
            what=meeting_named(m),
            awaited=named(m.awaited),
        )
        for m in _outwards(graph, root)
        if m.awaited
    ]
    links += [
        said(
            "rank {rank} waits in {what}",
            rank=rank,
            what=operation_named(operation),
        )
        for rank in (*(root.ranks or root.circle), *root.waiters)
        if (operation := graph.state.ranks[rank].doing) is not None
        and operation.peer is not None
        and graph.successors[rank]
    ]
    yield from links[:MOST_LINKS]
    if len(links) > MOST_LINKS:
        yield said("{count} more such waits follow from these", count=len(links) - MOST_LINKS)


def _outwards(graph: WaitGraph, root: Root) -> list[StalledCollective]:
    """Returns the collectives in which anybody waits for the root, the nearest first."""
    start = list(root.ranks or root.circle)
    seen, found, layer = set(start), [], start
    while layer:
        following = []
        for node in layer:
            for before in graph.predecessors[node]:
                if before in seen:
                    continue
                seen.add(before)
                following.append(before)
                if before >= graph.state.world_size:
                    found.append(graph.meeting(before))
        layer = following
    return found


def _waiting(graph: WaitGraph, root: Root) -> Iterator[Waiting]:
    direct = _directly(graph, root)
    for rank in root.waiters:
        doing = graph.state.ranks[rank].doing
        meeting = graph.meeting_of(rank)
        if meeting is not None:
            what = meeting_named(meeting)
        elif doing is not None:
            what = operation_named(doing)
        else:
            continue
        awaited = graph.waits_for(rank) or root.ranks or ()
        yield Waiting(rank, awaited, what, directly=rank in direct)


def _quotes(state: JobState, root: Root) -> tuple[Quote, ...]:
    found: list[Quote] = []
    for rank in (*(root.ranks or root.circle), *root.waiters):
        found += state.ranks[rank].quotes
        doing = state.ranks[rank].doing
        if doing is not None and doing.quote is not None:
            found.append(doing.quote)
        if len(found) > MOST_LINKS:
            break
    if root.deviation is not None and root.deviation.operation.quote is not None:
        found.insert(0, root.deviation.operation.quote)
    return tuple(dict.fromkeys(found))


def _groups(root: Root) -> tuple[str, ...]:
    if root.mismatch is not None:
        return (root.mismatch.group.name,)
    if (extra := _extra(root)) is not None and extra.group is not None:
        return (extra.group,)
    return (root.meeting.group.name,) if root.meeting else ()


def _extra(root: Root) -> RankOperation | None:
    """Returns the collective that a root issued and its peers do not, or None."""
    if root.kind is not RootKind.ALONE or root.deviation is None:
        return None
    return root.deviation.operation


def _facts(root: Root) -> CollectiveFacts | None:
    if root.mismatch is not None:
        operation, seq = next(iter(root.mismatch.brought.values())), root.mismatch.seq
        group = root.mismatch.group.name
    elif (extra := _extra(root)) is not None and extra.group is not None:
        operation, seq, group = extra, extra.seq, extra.group
    elif root.meeting is not None:
        operation, seq = next(iter(root.meeting.operations.values())), root.meeting.seq
        group = root.meeting.group.name
    else:
        return None
    return CollectiveFacts(
        operation.op,
        seq=seq,
        numel_in=operation.numel_in,
        numel_out=operation.numel_out,
        dtype=operation.dtype,
        group=group,
    )
