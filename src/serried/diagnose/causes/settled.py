"""What logs say of a hang, settled by who is seen to wait.

A log names whoever complains: who waited until the limit, who was cut off, who stood on one side of
a mismatch. Where dumps and stacks show that such a rank waits for the root, it is no root itself;
and what the log tells of the root's collective (its numbers, its limit) goes to the root.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace

from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import CollectiveFacts

Told = list[tuple[int, Cause]]
"""Causes that logs tell, each with its standing."""

_MISMATCH = "mismatch"


def settled(hangs: list[Cause], told: Told) -> tuple[list[Cause], Told]:
    """Returns the roots with what logs add to them, and what logs tell beside that."""
    roots = [cause for cause in hangs if cause.ranks]
    if not roots:
        return hangs, told
    waiting = {each.rank for cause in roots for each in cause.waiting}
    waiting -= {rank for cause in roots for rank in cause.ranks or ()}
    kept = []
    for standing, cause in told:
        if cause.cause_class is CauseClass.HANG and _is_of(cause, roots[0], waiting):
            roots[0] = _with_words(roots[0], cause)
        elif not _follows(cause, standing, waiting):
            kept.append((standing, cause))
    rest = [cause for cause in hangs if not cause.ranks]
    return [*roots, *rest], kept


def _is_of(told: Cause, root: Cause, waiting: set[int]) -> bool:
    """Tells whether a hang that a log tells is that of a root: it contradicts nothing seen."""
    is_alike = told.kind.startswith(_MISMATCH) and root.kind.startswith(_MISMATCH)
    return is_alike or not told.ranks or set(told.ranks) <= {*waiting, *(root.ranks or ())}


def _with_words(root: Cause, told: Cause) -> Cause:
    """Returns a root with the lines and numbers of a log."""
    quotes = tuple(dict.fromkeys((*root.quotes, *told.quotes)))
    is_alike = told.kind.startswith(_MISMATCH) and root.kind.startswith(_MISMATCH)
    collective = root.collective
    if told.collective is not None:
        # torch's own check tells both sides; gloo's words only how many bytes came.
        is_told_better = is_alike and told.collective.op is not None
        pair = (told.collective, root.collective)
        collective = _joined(pair if is_told_better else pair[::-1])
        if root.collective is not None and root.collective.group:
            collective = replace(collective, group=root.collective.group)
    return replace(root, quotes=quotes, collective=collective)


def _joined(sources: Iterable[CollectiveFacts | None]) -> CollectiveFacts:
    """Returns facts of which each is of the first source that tells it."""
    known = [each for each in sources if each is not None]
    names = [field.name for field in fields(CollectiveFacts)]
    first = {
        name: next((getattr(k, name) for k in known if getattr(k, name) is not None), None)
        for name in names
    }
    return CollectiveFacts(**first)


def _follows(cause: Cause, standing: int, waiting: set[int]) -> bool:
    """Tells whether a log accuses ranks that are seen to wait of what waiting ends in."""
    return standing > Standing.ROOT and bool(cause.ranks) and set(cause.ranks or ()) <= waiting
