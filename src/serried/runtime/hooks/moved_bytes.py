"""How many bytes a call of a collective moves, and over which ranks, by what it was called with.

    dist.all_gather_into_tensor(output, part, group)      output's bytes, the ranks of group
    functional.all_gather_tensor(part, dim, (mesh, 0))    part's bytes x ranks, those of the mesh

Sizes are those of nccl-tests: what all ranks have in the end, or put in. A call that is made with
something else than expected is recorded without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from serried.action import ActionKind
from serried.runtime.recorder.torch_private import group_by_name
from serried.trace.model.traffic import CollectiveMove

Mover = Callable[[tuple[Any, ...], dict[str, Any]], CollectiveMove | None]
"""Says what a call with these arguments moves; None where it is alone, or that is not known."""

_WHOLE = {
    "all_reduce": (0, "tensor"),
    "broadcast": (0, "tensor"),
    "all_gather": (0, "tensor_list"),
    "all_gather_single": (0, "output"),
    "all_gather_into_tensor": (0, "output_tensor"),
    "reduce_scatter": (1, "input_list"),
    "reduce_scatter_single": (1, "input"),
    "reduce_scatter_tensor": (1, "input"),
    "all_to_all": (0, "output_tensor_list"),
    "all_to_all_single": (0, "output"),
}
"""Functions of torch.distributed, the place and name of what is as large as all that they move."""

_GROUPS = {
    **dict.fromkeys(("all_reduce", "broadcast", "all_reduce_coalesced"), 2),
    **dict.fromkeys(("all_gather_tensor", "all_gather_single"), 2),
    **dict.fromkeys(("all_gather_tensor_autograd", "all_gather_single_autograd"), 2),
    **dict.fromkeys(("all_gather_into_tensor_coalesced", "all_gather_single_coalesced"), 1),
    **dict.fromkeys(("reduce_scatter_tensor", "reduce_scatter_single"), 3),
    **dict.fromkeys(("reduce_scatter_tensor_autograd", "reduce_scatter_single_autograd"), 3),
    **dict.fromkeys(("reduce_scatter_tensor_coalesced", "reduce_scatter_single_coalesced"), 3),
    **dict.fromkeys(("all_to_all_single", "all_to_all_single_autograd"), 3),
}
"""Functional collectives, and the place of their group; what they take stands first."""


def of_library(name: str, kind: ActionKind) -> Mover | None:
    """Returns what a function of torch.distributed moves; None for one that is not known."""
    if name not in _WHOLE:
        return None
    place, word = _WHOLE[name]

    def mover(args: tuple[Any, ...], options: dict[str, Any]) -> CollectiveMove | None:
        group = options.get("group")
        if group is None:
            group = next((each for each in args if isinstance(each, dist.ProcessGroup)), None)
            group = group or dist.group.WORLD
        whole = args[place] if len(args) > place else options.get(word)
        return _move(kind, whole, ranks_of(group), 1)

    return mover


def of_functional(name: str, kind: ActionKind) -> Mover | None:
    """Returns what a functional collective moves; None for one that is not known."""
    if name not in _GROUPS:
        return None
    is_gather = kind is ActionKind.ALL_GATHER

    def mover(args: tuple[Any, ...], options: dict[str, Any]) -> CollectiveMove | None:
        ranks = ranks_of(functional_group(name, args, options))
        return _move(kind, args[0] if args else None, ranks, len(ranks) if is_gather else 1)

    return mover


def functional_group(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Returns what a functional collective was given for its group; None for one not known."""
    place = _GROUPS.get(name, len(args))
    return args[place] if len(args) > place else options.get("group")


def _move(
    kind: ActionKind, whole: Any, ranks: tuple[int, ...], times: int
) -> CollectiveMove | None:
    tensors = whole if isinstance(whole, list) else [whole]
    if len(ranks) < 2 or not all(isinstance(each, torch.Tensor) for each in tensors):
        return None
    return CollectiveMove(kind, ranks, times * sum(each.nbytes for each in tensors))


def ranks_of(group: Any) -> tuple[int, ...]:
    """Returns the global ranks of a group, a mesh of one dimension, or one of a mesh; () for none.

    A mesh is given with the number of its dimension, as functional collectives take it.
    """
    if isinstance(group, dist.ProcessGroup):
        ranks = _RANKS.get(group)
        if ranks is None:
            ranks = _RANKS[group] = tuple(dist.get_process_group_ranks(group))
        return ranks
    if isinstance(group, str):
        return ranks_of(group_by_name(group))
    mesh, dim = group if isinstance(group, tuple) and len(group) == 2 else (group, 0)
    return ranks_of(mesh.get_group(dim)) if hasattr(mesh, "get_group") else ()


_RANKS: WeakKeyDictionary[dist.ProcessGroup, tuple[int, ...]] = WeakKeyDictionary()
"""The global ranks of groups that were met; asking torch costs a microsecond each time."""
