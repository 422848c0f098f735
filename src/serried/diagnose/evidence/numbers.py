"""Ranks within a node as ranks of the whole job, where a log tells how its launchers count.

    local_ranks=[0, 1]   global_ranks=[4, 5]         torchrun at the start
    rank : 5 (local_rank: 1)                         torchrun's summary       ┐
    nnodes=3, num_local_procs=2, node_rank=2         DeepSpeed's launcher     ┴─> local 1 is rank 5

A job of several nodes whose log tells nothing of the kind leaves such a number unknown.

>>> from serried.diagnose.evidence.quote import Quote
>>> facts = {"nodes": 3, "per_node": 2, "node_rank": 2}
>>> launch = Sign("launch", Quote("a", 1, ""), facts=facts)
>>> end = Sign("exit", Quote("a", 2, ""), Speaker(1, Numbering.LOCAL))
>>> [sign.speaker.rank for sign in numbered_by_launchers([launch, end])]
[None, 5]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from serried.diagnose.evidence.quote import Numbering, Speaker
from serried.diagnose.evidence.sign import Sign

MOST_OF_A_NODE = 16
"""Ranks that one node may have: a number beyond is of a job of several nodes."""
_SUMMARY = ("first_failure", "other_failure")
_ROWS = (*_SUMMARY, "exit")
"""Rows of torchrun's table, the last of them where its heading is cut off."""
_STARTS = ("launch", "started")
_ATTEMPT = re.compile(r"(?:^|/)attempt_\d+/")
"""What stands in the path of a file that torchrun keeps of one rank."""
_Place = tuple[str, str | None, int | None]
"""A file, and the host and the launcher's task of whom it tells, as far as it names them."""
_Shifts = dict[_Place, set[int]]
"""By how much the ranks of the job lie above a node's numbers, for each place."""


def numbered_by_launchers(signs: Sequence[Sign]) -> list[Sign]:
    """Returns signs with ranks of the whole job, as far as each one's launcher tells them."""
    is_of_nodes = has_several_nodes(signs)
    started, summed = _by_place(signs, _STARTS), _by_place(signs, _ROWS)
    pids = {sign.speaker.pid for sign in signs if sign.kind in _SUMMARY} - {None}
    ranks = {
        (s.speaker.host, s.speaker.pid): s.speaker.rank for s in signs if s.kind == "started_rank"
    }
    return [
        replace(sign, speaker=_known(sign.speaker, ranks))
        if ranks and sign.speaker.rank is None
        else replace(sign, speaker=_numbered(sign, started, summed, is_of_nodes))
        if sign.speaker.numbering is Numbering.LOCAL and sign.speaker.pid not in pids
        else sign
        for sign in signs
    ]


def _known(speaker: Speaker, ranks: Mapping[tuple[str | None, int | None], int | None]) -> Speaker:
    """Returns who speaks, by the process and the host that Ray gave a rank."""
    own = {rank for (host, pid), rank in ranks.items() if pid == speaker.pid}
    rank = ranks.get((speaker.host, speaker.pid), min(own, key=str) if len(own) == 1 else None)
    return replace(speaker, rank=rank) if rank is not None else speaker


def has_several_nodes(signs: Sequence[Sign]) -> bool:
    """Tells whether a log is of a job of more than one node, by its launcher or its ranks."""
    return _is_of_launchers(signs) or any(
        _is_above(sign.facts.get("nodes"), 1)
        or _is_above(sign.speaker.global_rank, MOST_OF_A_NODE - 1)
        or any(shift > 0 for shift in _shifts(sign))
        for sign in signs
    )


def _is_of_launchers(signs: Sequence[Sign]) -> bool:
    """Tells whether several tasks or hosts count ranks of their own, each from 0 on."""
    own = [s for s in signs if s.speaker.numbering is Numbering.LOCAL or s.kind == "closing"]
    hosts = {sign.speaker.host for sign in own} - {None}
    return len(hosts) > 1 or any(_is_above(sign.speaker.task, 0) for sign in own)


def is_of_one_launcher(signs: Sequence[Sign]) -> bool:
    """Tells whether all lines are of one launcher's ranks, whose local numbers are the job's.

    Its summary says so; a second console, or files of ranks in a second folder, may be of another
    node, where local numbers mean others.
    """
    places = {
        (is_own, sign.quote.source[: found.start()] if found else sign.quote.source)
        for sign in signs
        if sign.speaker.numbering is Numbering.LOCAL or sign.kind in _SUMMARY
        for found in [_ATTEMPT.search(sign.quote.source)]
        for is_own in [found is not None]
    }
    shifts = {shift for sign in signs if sign.kind in _SUMMARY for shift in _shifts(sign)}
    is_one = all(sum(own is is_own for own, _ in places) < 2 for is_own in (True, False))
    return shifts == {0} and is_one and not has_several_nodes(signs)


def _shifts(sign: Sign) -> Iterator[int]:
    """Yields by how much a node's ranks lie above their local numbers."""
    facts = sign.facts
    if sign.kind in _ROWS:
        local, rank = facts.get("local_rank"), sign.speaker.global_rank
        if isinstance(local, int) and rank is not None and rank >= local:
            yield rank - local
    elif sign.kind == "started":
        local, whole = facts["local"], facts["whole"]
        if isinstance(local, tuple) and isinstance(whole, tuple) and local:
            yield whole[0] - local[0]
    elif sign.kind == "launch":
        node, size = facts.get("node_rank"), facts.get("per_node")
        if isinstance(node, int) and isinstance(size, int):
            yield node * size


def _by_place(signs: Sequence[Sign], kinds: Sequence[str]) -> _Shifts:
    """Returns by how much the ranks of each file and host are shifted."""
    found: _Shifts = {}
    for sign in signs:
        for shift in _shifts(sign) if sign.kind in kinds else ():
            place = (sign.quote.source, sign.speaker.host, sign.speaker.task)
            found.setdefault(place, set()).add(shift)
    return found


def _numbered(sign: Sign, started: _Shifts, summed: _Shifts, is_of_nodes: bool) -> Speaker:
    """Returns who speaks; a process that its launcher's summary leaves out is another node's."""
    speaker = sign.speaker
    shifts = _of_place(started, sign)
    if not shifts and speaker.pid is None:
        shifts = _of_place(summed, sign)
    if speaker.rank is not None and len(shifts) == 1:
        return replace(speaker, rank=speaker.rank + min(shifts), numbering=Numbering.GLOBAL)
    return replace(speaker, numbering=Numbering.NODE) if is_of_nodes else speaker


def _of_place(shifts: _Shifts, sign: Sign) -> set[int]:
    """Returns the shifts that a sign's file tells: of its own task and host where any are."""
    speaker = sign.speaker
    found = {place: each for place, each in shifts.items() if place[0] == sign.quote.source}
    for at, own in ((2, speaker.task), (1, speaker.host)):
        found = {place: each for place, each in found.items() if place[at] == own} or found
    return {shift for each in found.values() for shift in each}


def _is_above(value: object, bound: int) -> bool:
    return isinstance(value, int) and value > bound
