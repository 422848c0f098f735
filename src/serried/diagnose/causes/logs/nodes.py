"""Nodes that were lost, and errors of MPI that end a job: what a launcher says of its processes.

A launcher that lost a node may name a rank that was on it: that rank is the first that was lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate, candidates
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause
from serried.diagnose.diagnosis import CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.finding import said

_WHICH_NODE = said(
    "find the node: sinfo -R (Slurm) or kubectl get nodes says which one is down, and why"
)
_NODE = said("look at that node (power, network, kernel log) and start again without it")
_LOST = SignMeaning(
    ("node_lost",),
    CauseClass.NODE_LOST,
    "node_lost",
    Standing.EXHAUSTED,
    (said("node {host} was lost"), said("node {node} was lost"), said("a node was lost")),
    (_NODE,),
    0.85,
    "unknown",
)
_PANIC = SignMeaning(
    ("panic",),
    CauseClass.NODE_LOST,
    "kernel_panic",
    Standing.EXHAUSTED,
    (said("a node's kernel panicked: {what}"), said("a node's kernel panicked")),
    (_NODE,),
    0.95,
    "unknown",
)
_HELPER = re.compile(r"Remote daemon|RTE has lost communication")
KILLED_CODE = 137
"""The exit code of a command that signal 9 ended."""
_MPI_ERROR = SignMeaning(
    ("mpi_error",),
    CauseClass.EXCEPTION,
    "mpi_error",
    Standing.ROOT,
    (said("{who} met an error of MPI that ends the job; the lines beside it say which"),),
    (said("read the lines of that process: the call and the error stand there"),),
    0.8,
)


def node_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields nodes that were lost, and ranks whose error in MPI ended the job."""
    if lost := told.of(*_LOST.kinds):
        found = candidate(told, _LOST, lost)
        hosts = {sign.speaker.host for sign in lost} - {None}
        there = told.ranks(sign for sign in told.of("exit") if sign.speaker.host in hosts)
        is_named = any(s.speaker.host or s.facts.get("node") for s in lost)
        cures = found.cause.cures if is_named else (_WHICH_NODE, *found.cause.cures)
        standing = Standing.FOLLOWS if _is_of_killed(told, lost) else found.standing
        cause = replace(found.cause, ranks=there or None, cures=cures)
        yield replace(found, cause=cause, standing=standing)
    yield from candidates(told, (_PANIC,))
    if told.first("mismatched") is None:
        yield from candidates(told, (_MPI_ERROR,))


def _is_of_killed(told: LoggedSigns, lost: list[Sign]) -> bool:
    """Tells whether a launcher lost its helper on a node because that helper had been killed.

    The launcher says that it cannot tell an end of its helper from a broken network.
    """
    killed = [sign for sign in told.of("task_exit") if sign.code == KILLED_CODE]
    return bool(killed) and all(
        _HELPER.search(sign.quote.text) is not None and told.place(killed[0]) < told.place(sign)
        for sign in lost
    )
