"""Roots that only a guess would name: who left nothing, and who stands where many stand.

ranks 0, 1, 2   train.py:50     loss.item(), or work of their own?     nobody is named
rank 3          barrier 7 of world
"""

from __future__ import annotations

from dataclasses import replace

from serried.diagnose.job_state.program import site_of, waits_for_gpu
from serried.diagnose.job_state.state import JobState, RankCondition, RankState
from serried.diagnose.waits.root import Root, RootKind


def without_guess(state: JobState, root: Root) -> Root:
    """Returns a root, without its ranks where nothing but a guess tells them."""
    match root.kind:
        case RootKind.SILENT:
            return _silent_without_guess(state, root)
        case RootKind.USER_CODE:
            return _without_crowd(state, root)
        case _:
            return root


def may_stand_at_gpu(state: JobState, rank: int) -> bool:
    """Tells whether a rank may wait for its GPU, and so for what its stream stands in.

    Python's stacks end above ``loss.item()``. Of a job on GPUs one without a dump may stand there
    at any line of its own, where stacks of its peers do not show that they stand elsewhere.
    """
    one = state.ranks[rank]
    if waits_for_gpu(one.stack):
        return True
    if one.counts is not None or not one.stack or not one.stack[0].is_users:
        return False
    is_on_gpu = any(op.is_queued for each in state.ranks for op in each.issued[-1:])
    return is_on_gpu and 2 * sum(bool(each.stack) for each in state.ranks) <= state.world_size


def _silent_without_guess(state: JobState, root: Root) -> Root:
    """Returns a root of ranks that left neither dump nor stack without their names.

    Those count who are awaited, and those of whom nothing is known at all. A rank that could write
    nothing looks like one whose files were not collected, and so does a whole node: of 863 real
    hangs with files left out, 29 ended at such a rank, and it was innocent in 15.
    """
    unknown = {each.rank for each in state.ranks if _is_unknown(each)}
    ranks = tuple(sorted({*unknown, *(root.ranks or ())}))
    return replace(root, ranks=None, circle=ranks, confidence=0.4)


def _without_crowd(state: JobState, root: Root) -> Root:
    """Returns a root without ranks where more stand in code of their own than wait for them.

    Most of a job at one line do what all do there, as wait for the GPU. Of as many at several
    lines some wait for others, of which Python's stacks show nothing.
    """
    if root.ranks is None or len(root.ranks) == 1:
        return root
    if _may_exchange_messages(state, root.ranks):
        return replace(root, kind=RootKind.MAY_WAIT, ranks=None, circle=root.ranks, confidence=0.4)
    sites = {site_of(state.ranks[rank].stack) for rank in root.ranks}
    if len(root.ranks) < len(root.waiters) + (len(sites) == 1):
        return root
    return replace(root, kind=RootKind.MAY_WAIT, ranks=None, circle=root.ranks, confidence=0.4)


def _may_exchange_messages(state: JobState, ranks: tuple[int, ...]) -> bool:
    """Tells whether ranks stand in lines of their own and share a group of no known collective.

    What such a group is for are messages, and a wait for one shows in no stack of Python.
    """
    if not all(
        state.ranks[rank].stack[:1] and state.ranks[rank].stack[0].is_users for rank in ranks
    ):
        return False
    return any(
        set(ranks) <= set(group.ranks)
        and len(group.ranks) < state.world_size
        and not any((state.ranks[rank].counts or {group.name: 1}).get(group.name) for rank in ranks)
        for group in state.groups
    )


def _is_unknown(rank: RankState) -> bool:
    is_told = rank.condition is not RankCondition.UNKNOWN or rank.doing is not None
    return not is_told and rank.counts is None and not rank.stack and not rank.quotes
