"""Two layouts side by side: which ranks have other peers in the second, and in which dimensions.

megatron   dp [0 2] [1 3]  tp [0 1] [2 3]         differs in dp: all 4 ranks
internlm   dp [0 1] [2 3]  tp [0 2] [1 3]         differs in tp: all 4 ranks
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import numpy as np
from numpy.typing import NDArray

from serried import frameworks
from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.mesh import Groups
from serried.mesh.sizes import TABLE
from serried.views.sentences import say
from serried.views.web.wire.payload import pack
from serried.views.web.wire.query import Query, Words, read_query, read_word
from serried.views.web.wire.stages import stages

Flags = NDArray[np.bool_]
OF_A_FRAMEWORK = ("order", "set")
"""Words that mean something under one framework only."""


def beside_payload(words: Words, lang: str) -> bytes:
    """Returns where the layout that ``beside`` names differs from the one that is asked for.

    ``beside`` holds words of a job in the form of an address, such as ``framework=internlm``; what
    it leaves out is as in the layout itself. Raises InputError for a layout that cannot be.
    """
    other_words = merged(words)
    one, other = read_query(_plain(words)), read_query(_plain(other_words))
    marks = differences(one, other)
    header: dict[str, Any] = {
        "kind": "beside",
        "question": {name: list(values) for name, values in other_words.items()},
        "titles": titles(one, other),
        "differ": {name: int(found.sum()) for name, found in marks.items()},
        "told": [say(each, lang) for each in sentences(one, other, marks)],
    }
    bits = np.zeros(max(one.layout.world_size, other.layout.world_size), dtype=np.uint8)
    for found in marks.values():
        bits[: len(found)] |= found
    return pack(header, {"differs": bits})


def merged(words: Words) -> dict[str, list[str]]:
    """Returns the words of the layout beside: those of the first, but for what ``beside`` names."""
    named = parse_qs(read_word(words, "beside"), keep_blank_values=True)
    unknown = [name for name in named if name not in (*TABLE, "framework", "set")]
    if unknown or not named:
        raise InputError(
            "a layout beside is told by words of a job, such as framework=internlm or tp=4; "
            "'{name}' is none",
            name=(unknown or [""])[0][:40],
        )
    kept = {name: list(values) for name, values in words.items() if name != "beside"}
    if "framework" in named:
        kept = {name: values for name, values in kept.items() if name not in OF_A_FRAMEWORK}
    return kept | named


def differences(one: Query, other: Query) -> dict[str, Flags]:
    """Returns, by dimension, which ranks have other peers; ``stage`` where theirs is another.

    Only dimensions that both have are compared: those in view, or all where none is.
    """
    both = [dim for dim in one.layout.dims if dim in other.layout.dims]
    dims = [dim for dim in both if not one.dims or dim in one.dims]
    found = {dim: _others(_groups(one, dim), _groups(other, dim), one, other) for dim in dims}
    if "pp" in both:
        found["stage"] = _unlike(stages(one.layout), stages(other.layout))
    return found


def sentences(one: Query, other: Query, marks: dict[str, Flags]) -> list[Sentence]:
    """Says how many ranks differ and in what, and which dimensions one of the two lacks."""
    first, second = titles(one, other)
    most = max(one.layout.world_size, other.layout.world_size)
    differing = np.zeros(most, dtype=bool)
    for found in marks.values():
        differing[: len(found)] |= found
    parts = [_part(name, int(found.sum())) for name, found in marks.items() if found.any()]
    told = (
        said(
            "{count:,} of {world:,} ranks differ between {first} and {second}: {parts}",
            count=int(differing.sum()),
            world=most,
            first=first,
            second=second,
            parts=listed(parts),
        )
        if parts
        else said(
            "all {world:,} ranks have the same peers in {first} and {second}",
            world=most,
            first=first,
            second=second,
        )
    )
    missing = [
        said("{title} has no {dim}", title=title, dim=dim.upper())
        for each, title in ((one, first), (other, second))
        for dim in one.dims
        if dim not in each.layout.dims
    ]
    return [told, *missing]


def _part(name: str, count: int) -> Sentence:
    if name == "stage":
        return said("{count:,} in their stage", count=count)
    return said("{count:,} in their {dim} group", count=count, dim=name.upper())


def _groups(query: Query, dim: str) -> Groups:
    layout = query.layout
    return layout.groups(layout.kind_of(dim, with_cp="cp" in query.dims))


def _others(mine: Groups, theirs: Groups, one: Query, other: Query) -> Flags:
    """Tells of every rank whether its group has other members there.

    Two groups are equal where as many ranks are in both as are in either.
    """
    world = max(one.layout.world_size, other.layout.world_size)
    a, b = mine.index(world), theirs.index(world)
    pair = a.astype(np.int64) * (len(theirs) + 1) + b
    _, at, counts = np.unique(pair, return_inverse=True, return_counts=True)
    shared = counts[at]
    size_a, size_b = _sizes(mine, a), _sizes(theirs, b)
    unlike: Flags = (size_a != shared) | (size_b != shared)
    # Ranks without a group in either are alike.
    return unlike & ~((a < 0) & (b < 0))


def _sizes(groups: Groups, index: NDArray[np.int32]) -> NDArray[np.int64]:
    sizes = np.append(groups.sizes.astype(np.int64), 0)
    found: NDArray[np.int64] = sizes[index]
    return found


def _unlike(mine: NDArray[np.int32], theirs: NDArray[np.int32]) -> Flags:
    """Tells where two columns differ; what one of them lacks, differs."""
    found = np.ones(max(len(mine), len(theirs)), dtype=np.bool_)
    both = min(len(mine), len(theirs))
    found[:both] = mine[:both] != theirs[:both]
    return found


def titles(one: Query, other: Query) -> list[str]:
    """Returns what two layouts are called beside each other: frameworks, or the sizes that differ.

    Where the framework is the same, it is left out unless nothing else tells them apart.
    """
    names = [
        f"{frameworks.find(each.layout.framework).title} {each.layout.version}"
        for each in (one, other)
    ]
    sizes = [_sizes_of(each) for each in (one, other)]
    unlike = [name for name in sizes[0] | sizes[1] if sizes[0].get(name) != sizes[1].get(name)]
    told = [", ".join(f"{name}={each[name]}" for name in unlike if name in each) for each in sizes]
    if names[0] != names[1]:
        return names
    return (
        told
        if all(told)
        else [f"{name} {size}".strip() for name, size in zip(names, told, strict=True)]
    )


def _sizes_of(query: Query) -> dict[str, str]:
    layout, place = query.layout, query.placement
    given = query.request.given
    sizes = {
        name: str(size)
        for name, size in layout.sizes.items()
        if name in given or name in layout.dims
    }
    settings = {name: str(each) for name, each in query.request.sizes().options.items()}
    told = {"world_size": str(layout.world_size), **sizes, **settings, "order": layout.order}
    return told | {"gpus_per_node": str(place.gpus_per_node)}


def _plain(words: Words) -> Words:
    """Returns words without kinds that only one of the two may have."""
    return {name: values for name, values in words.items() if name != "kind"}
