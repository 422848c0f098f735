"""What is selected in the views of a notebook: a rank, and the group of a kind that it is in."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakSet

from serried.errors import InputError
from serried.mesh import Layout


@dataclass(frozen=True)
class Selected:
    """Holds what is selected; nothing is at first."""

    rank: int | None = None
    kind: str | None = None
    """The kind of groups in view, where a layout tells of groups."""
    group: int | None = None
    """The number of the selected group of that kind."""
    ranks: tuple[int, ...] = ()
    """The ranks of the group, or those of a place in a pipeline; the rank alone without either."""


NOTHING = Selected()


def of_rank(rank: int, layout: Layout | None, kind: str | None) -> Selected:
    """Returns the selection of a rank and of its group.

    >>> from serried.api import layout
    >>> of_rank(5, layout(world_size=16, tp=2, pp=4), "dp")
    Selected(rank=5, kind='dp', group=3, ranks=(5, 7))

    Raises InputError for a rank that there is not.
    """
    if rank < 0:
        raise InputError("rank {rank} is below 0, which no rank is", rank=rank)
    if layout is None or not kind:
        return Selected(rank, ranks=(rank,))
    layout.coordinates(rank)
    numbers = layout.numbers_of(kind, rank)
    if not numbers:
        return Selected(rank, kind, ranks=(rank,))
    members = layout.groups(kind)[numbers[0]].tolist()
    return Selected(rank, kind, numbers[0], tuple(members))


def of_group(kind: str, group: int, layout: Layout | None) -> Selected:
    """Returns the selection of a group; raises InputError for one that there is not."""
    if layout is None:
        raise InputError("no layout tells of groups here; give view(…, layout=…)")
    groups = layout.groups(kind)
    if not 0 <= group < len(groups):
        raise InputError(
            "{kind} has no group {group}; its groups are {first} to {last}",
            kind=kind,
            group=group,
            first=0,
            last=len(groups) - 1,
        )
    return Selected(None, kind, group, tuple(groups[group].tolist()))


class Selection:
    """Holds one selection for all views that share it, and tells them when it changes."""

    def __init__(self) -> None:
        self.selected = NOTHING
        self.views: WeakSet[SelectionListener] = WeakSet()

    def take(self, selected: Selected) -> None:
        """Selects something, and tells every view."""
        if selected != self.selected:
            self.selected = selected
            for view in [*self.views]:
                view.selection_changed()


class SelectionListener:
    """Hears of a selection that changed."""

    def selection_changed(self) -> None:
        """Shows what is selected now."""
        raise NotImplementedError


SHARED = Selection()
"""That of all views of a program which have none of their own."""
