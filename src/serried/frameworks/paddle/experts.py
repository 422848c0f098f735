"""Paddle with experts: a grid for experts, a grid for dense layers, and groups merged of both.

Read from paddlepaddle 3.3.1, distributed/fleet/base/topology.py (EPHybridCommunicateGroup).

    expert grid   pipe, moe_sharding, expert      in the order asked for
    dense  grid   data, moe_sharding, pipe, dense_sharding, sep, model    (moe_sharding first)
                  data, pipe, moe_sharding, dense_sharding, sep, model    (pipe first)

    sharding     dense_sharding lists, every ``interval``-th joined (merge_inner_comm_list)
    context      runs of cp of a sharding list;   cp_sharding  strides of cp
    cp_mp        what context and model groups connect

With pipe first the interval is too short: sharding groups overlap and the last ranks get none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from serried.errors import InputError
from serried.finding import Finding, said
from serried.mesh import (
    Chain,
    Chunks,
    GroupKind,
    Groups,
    JoinStrided,
    Mesh,
    Pick,
    Ranks,
    Rule,
    Strides,
)

SPLIT = ("moe_sharding", "sharding", "expert", "context")
"""Axes of the order that do not stand in the dense grid as they are."""


@dataclass(frozen=True)
class ConnectedKind(GroupKind):
    """Joins all ranks that groups of ``parts`` connect; ranks that are alone are in none."""

    parts: tuple[GroupKind, ...] = ()

    def over(self, meshes: Mapping[str, Mesh]) -> Groups:
        """Returns the connected ranks, each set ascending, by lowest rank."""
        # Label propagation: every rank starts with its own number, and every group gives all of
        # its ranks the lowest label among them, until nothing changes. Ranks of one label are
        # then connected, and the label is the lowest rank of the set.
        tables = [part.over(meshes).table for part in self.parts]
        tables = [table for table in tables if table.shape[1] > 1]
        num_labels = 1 + max((int(table.max()) for table in tables), default=0)
        counts = [np.bincount(table.reshape(-1), minlength=num_labels) for table in tables]
        label = np.arange(num_labels, dtype=np.int32)
        before = np.zeros_like(label)
        while not np.array_equal(before, label):
            before = label.copy()
            for table, count in zip(tables, counts, strict=True):
                _spread(label, table, overlaps=bool(count.max() > 1))
        joined = np.flatnonzero(np.sum(counts, axis=0))
        order = joined[np.argsort(label[joined], kind="stable")]
        starts = np.flatnonzero(np.diff(label[order], prepend=-1))
        return Groups(order.astype(np.int32), np.append(starts, len(order)).astype(np.int64))

    def of(self, rank: int, meshes: Mapping[str, Mesh]) -> list[Sequence[int]]:
        """Returns the connected ranks that ``rank`` is among, found by going from it."""
        found: set[int] = set()
        ahead = [rank]
        while ahead:
            member = ahead.pop()
            near = [ranks for part in self.parts for ranks in part.of(member, meshes)]
            # A group of one joins nothing; a rank whose groups are all of one is in no set.
            fresh = {other for ranks in near if len(ranks) > 1 for other in ranks} - found
            found |= fresh
            ahead += fresh - {member}
        return [sorted(found)] if found else []

    def numbers(self, rank: int, meshes: Mapping[str, Mesh]) -> list[int]:
        """Returns the number of the connected ranks that ``rank`` is among."""
        return self.over(meshes).containing(rank)


def _spread(label: Ranks, table: Ranks, *, overlaps: bool) -> None:
    """Gives every rank of a group the lowest label of the group, and of all groups it is in."""
    lowest = label[table].min(axis=1, keepdims=True)
    if overlaps:
        np.minimum.at(label, table, np.broadcast_to(lowest, table.shape))
    else:
        label[table] = lowest


def groups(
    axes: dict[str, int], world: int
) -> tuple[dict[str, Mesh], tuple[GroupKind, ...], tuple[Finding, ...]]:
    """Returns meshes, kinds and findings for ``axes`` in the order asked for."""
    # moe_sharding has groups of its own on the expert grid. Of dense layers sharding runs over it
    # and dense_sharding together: Paddle makes lists along dense_sharding and joins each with
    # those ``step`` lists on. Context groups are then cut from the joined lists.
    _check_axes(axes)
    meshes = {"dense": _dense(axes), "expert": _expert(axes)}
    _check_sizes(meshes)
    dense = meshes["dense"]
    width = dense.sizes["moe_sharding"]
    step = _interval(dense)
    num_lists = dense.num_ranks // dense.sizes["dense_sharding"]
    merged = JoinStrided(width, step)
    cp = axes.get("context", 1)
    length = width * dense.sizes["dense_sharding"]
    _check_context(axes, length, cp)
    context = Chain((merged, *_whole(length, cp), Chunks(cp)))
    across = Chain((merged, Strides(cp)))
    inner = ("dense_sharding",)
    parts = (
        GroupKind("context", inner, rule=context, about="other tokens of the same sequences"),
        GroupKind("model", ("model",), about="parts of every layer"),
    )
    kinds = [
        GroupKind("pipe", ("pipe",), "expert", about="consecutive stages"),
        GroupKind("expert", ("expert",), "expert", about="other experts"),
        GroupKind("moe_sharding", ("moe_sharding",), "expert", about="shards of the experts"),
        GroupKind("data", ("data",), about="same weights, other batches"),
        GroupKind("sep", ("sep",), about="parts of the same sequences"),
        parts[1],
        GroupKind("sharding", inner, rule=merged, about="shards of the optimizer state"),
        parts[0],
    ]
    if cp > 1:
        kinds.append(ConnectedKind("cp_mp", ("model",), about="context and model", parts=parts))
    kinds.append(GroupKind("cp_sharding", inner, rule=across, about="shards across contexts"))
    findings = (
        *_misfit(dense.num_ranks, world),
        *_overlaps(num_lists, width, step),
        *_left_out(length, cp),
    )
    return meshes, tuple(kinds), findings


def _whole(length: int, cp: int) -> tuple[Rule, ...]:
    """Returns the rule that leaves out what whole context groups do not hold of a list."""
    left = length % cp
    return (Pick(tuple(range(length - left))),) if left else ()


def _left_out(length: int, cp: int) -> tuple[Finding, ...]:
    """Returns a finding where the last ranks of each sharding list are in no context group."""
    if length % cp == 0:
        return ()
    return (
        Finding(
            "uncovered",
            groups=("context",),
            evidence=(
                said(
                    "Paddle cuts lists of {length} ranks into context groups of {cp} and leaves "
                    "the last {left} of each in none, where the job fails",
                    length=length,
                    cp=cp,
                    left=length % cp,
                ),
            ),
            cure=said("choose cp that divides {length}", length=length),
        ),
    )


def _dense(axes: dict[str, int]) -> Mesh:
    """Returns the dense grid: moe_sharding and dense_sharding put around or after pipe."""
    names = [axis for axis in axes if axis not in SPLIT]
    # Whatever stands between them in the order asked for, the two parts of sharding are put next to
    # pipe, on the side where moe_sharding was.
    place = names.index("pipe")
    order = list(axes)
    if order.index("pipe") > order.index("moe_sharding"):
        names[place : place + 1] = ["moe_sharding", "pipe", "dense_sharding"]
    else:
        names[place : place + 1] = ["pipe", "moe_sharding", "dense_sharding"]
    sizes = axes | {"dense_sharding": axes["sharding"] // axes["moe_sharding"]}
    if sizes["dense_sharding"] < 1:
        raise InputError(
            "moe_sharding_degree={moe} is above sharding_degree={sharding}; it divides it",
            moe=axes["moe_sharding"],
            sharding=axes["sharding"],
        )
    return Mesh({name: sizes[name] for name in names})


def _expert(axes: dict[str, int]) -> Mesh:
    return Mesh({axis: axes[axis] for axis in axes if axis in ("pipe", "moe_sharding", "expert")})


def _interval(dense: Mesh) -> int:
    # Paddle begins a joined list at each of the first num_lists / width lists, which is right only
    # where lists to be joined stand that far apart: with moe_sharding before pipe. After pipe they
    # stand sep x mp apart, which this gives as well, and the joined lists overlap.
    place = dense.axes.index("moe_sharding")
    return math.prod(dense.shape[place + 1 :]) // dense.sizes["dense_sharding"]


# ----------------------------------------------------------------------- validity


def _check_axes(axes: dict[str, int]) -> None:
    needed = ("data", "pipe", "moe_sharding", "sharding", "sep", "expert", "model")
    missing = next((axis for axis in needed if axis not in axes), None)
    if missing:
        raise InputError(
            "the order leaves out {axis}, which Paddle needs with experts; an order that has all "
            "is {example}",
            axis=missing,
            example="dp,moe_sharding,cp,sharding,pp,sep,ep,mp",
        )
    if axes["sep"] > 1 or axes["data"] > 1:
        raise InputError(
            "experts need dp=1 and sep=1; here dp={dp} and sep={sep}: use sharding instead",
            dp=axes["data"],
            sep=axes["sep"],
        )


def _check_sizes(meshes: Mapping[str, Mesh]) -> None:
    dense, expert = meshes["dense"].num_ranks, meshes["expert"].num_ranks
    if dense != expert:
        raise InputError(
            "dense layers take pp x sharding x mp = {dense} ranks, experts "
            "pp x moe_sharding x ep = {expert}; the two are equal",
            dense=dense,
            expert=expert,
        )


def _misfit(held: int, world: int) -> tuple[Finding, ...]:
    """Returns a finding where the degrees do not fill the world, which Paddle never checks."""
    if held == world:
        return ()
    return (
        Finding(
            "out_of_range" if held > world else "uncovered",
            evidence=(
                said(
                    "the degrees multiply to {held} ranks in a world of {world}; Paddle does not "
                    "check that with experts, and the job fails or hangs later",
                    held=held,
                    world=world,
                ),
            ),
            cure=said("make pp x sharding x mp = {world}", world=world),
        ),
    )


def _check_context(axes: dict[str, int], length: int, cp: int) -> None:
    shards = axes["sharding"] // cp
    if not shards or length // shards != cp:
        raise InputError(
            "cp={cp} does not divide sharding={sharding} evenly, as Paddle needs with experts",
            cp=cp,
            sharding=axes["sharding"],
        )


def _overlaps(num_lists: int, width: int, step: int) -> tuple[Finding, ...]:
    if width == 1 or step == num_lists // width:
        return ()
    return (
        Finding(
            "overlap",
            groups=("sharding", "context", "cp_sharding"),
            evidence=(
                said(
                    "Paddle joins sharding lists {step} apart where they are {right} apart, so "
                    "groups overlap and the last ranks are in none and fail",
                    step=step,
                    right=num_lists // width,
                ),
            ),
            cure=said("use sharding_first: put moe_sharding before pp in the order"),
        ),
    )
