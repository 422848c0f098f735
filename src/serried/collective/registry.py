"""The registry: every collective, and every algorithm that runs it, by name."""

from __future__ import annotations

from serried.collective.algorithm import Collective
from serried.collective.algorithms import (
    binomial,
    chain,
    double_tree,
    hierarchical,
    neighbours,
    pairwise,
    recursive,
    ring,
    ring_attention,
    switch,
    two_level,
    ulysses,
)
from serried.collective.attention import SPLITS
from serried.collective.entry import AlgorithmEntry, CollectiveRequest
from serried.collective.placed_group import PlacedGroup
from serried.errors import InputError, listed, nearest
from serried.limits import COLLECTIVE_CHUNKS

ENTRIES: tuple[AlgorithmEntry, ...] = (
    *ring.ENTRIES,
    *double_tree.ENTRIES,
    *recursive.ENTRIES,
    *hierarchical.ENTRIES,
    *switch.ENTRIES,
    *pairwise.ENTRIES,
    *two_level.ENTRIES,
    *binomial.ENTRIES,
    *chain.ENTRIES,
    *neighbours.ENTRIES,
    *ring_attention.ENTRIES,
    *ulysses.ENTRIES,
)
COLLECTIVES = tuple(dict.fromkeys(entry.collective for entry in ENTRIES))
ROOTED = ("broadcast", "reduce", "gather", "scatter")
"""Collectives in which one rank has or gets all."""


def make(
    name: str,
    algorithm: str,
    group: PlacedGroup,
    *,
    root: int = 0,
    channels: int | None = None,
    chunks: int | None = None,
    split: str | None = None,
    causal: bool | None = None,
) -> Collective:
    """Returns the collective ``name`` by ``algorithm`` over ``group``; ``root`` is a position.

    ``split`` and ``causal`` are of attention: zig-zag or contiguous, and whether queries see only
    what is before them, as they do by default. Raises InputError for an unknown collective, an
    algorithm that it does not have, a root outside the group, and options that it cannot have.

    >>> ring = make("all-reduce", "ring", PlacedGroup.first(8))
    >>> len(ring.steps), ring.num_blocks
    (14, 8)
    """
    entry = entry_of(name, algorithm)
    _require_root(name, group, root)
    asked = {"channels": channels, "chunks": chunks, "split": split, "causal": causal}
    for option, value in asked.items():
        if value is not None and option not in entry.takes:
            raise _no_such_option(entry, option)
    _require_number("channels", channels, most=group.rails)
    _require_number("chunks", chunks, most=COLLECTIVE_CHUNKS.most)
    _require_split(split)
    if group.size == 1 and name != "attention":
        return Collective.idle(name, algorithm, group)
    request = CollectiveRequest(
        name,
        algorithm,
        group,
        root,
        channels,
        chunks,
        split or SPLITS[0],
        causal is not False,
    )
    return entry.make(request)


def entry_of(name: str, algorithm: str) -> AlgorithmEntry:
    """Returns the entry of an algorithm; raises InputError naming those there are."""
    if name not in COLLECTIVES:
        if near := nearest(name, COLLECTIVES):
            raise InputError(
                "there is no collective '{name}'; those there are: {known}; did you mean {near}?",
                name=name[:40],
                known=listed(COLLECTIVES, limit=20),
                near=near,
            )
        raise InputError(
            "there is no collective '{name}'; those there are: {known}",
            name=name,
            known=listed(COLLECTIVES, limit=20),
        )
    known = {entry.name: entry for entry in ENTRIES if entry.collective == name}
    if algorithm not in known:
        raise InputError(
            "{name} has no algorithm '{algorithm}'; it has {known}",
            name=name,
            algorithm=algorithm,
            known=listed(known, limit=20),
        )
    return known[algorithm]


def _require_root(name: str, group: PlacedGroup, root: int) -> None:
    if not 0 <= root < group.size:
        raise InputError(
            "root {root} is not in the group; its {ranks} ranks stand at places 0 to {last}",
            root=root,
            ranks=group.size,
            last=group.size - 1,
        )
    if root and name not in ROOTED:
        raise InputError(
            "{name} has no root, and {root} is asked for; {rooted} have one",
            name=name,
            root=root,
            rooted=listed(ROOTED, last="and"),
        )


def _require_number(option: str, value: int | None, *, most: int) -> None:
    if value is not None and not 1 <= value <= most:
        raise InputError(
            "{option}={value} cannot be; here it is 1 to {most}",
            option=option,
            value=value,
            most=most,
        )


def _require_split(split: str | None) -> None:
    if split is not None and split not in SPLITS:
        raise InputError(
            "a sequence is not split '{split}'; it is split {known}",
            split=split,
            known=listed(SPLITS, last="or"),
        )


def _no_such_option(entry: AlgorithmEntry, option: str) -> InputError:
    alike = (each for each in ENTRIES if each.collective == entry.collective)
    asked = {"name": entry.collective, "algorithm": entry.name, "option": option}
    if fits := [each.name for each in alike if option in each.takes]:
        return InputError(
            "{name} by {algorithm} takes no {option}; those that do: {fits}",
            **asked,
            fits=listed(fits),
        )
    return InputError(
        "{name} by {algorithm} takes no {option}, and no other of its algorithms does", **asked
    )
