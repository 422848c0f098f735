"""What the page asks for, read from the words of an address: sizes, placement, dimensions."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from serried.errors import InputError
from serried.launch.facts.config import LaunchConfig
from serried.launch.request import DEFAULT_FRAMEWORK, LayoutRequest
from serried.mesh import Layout, Placement
from serried.mesh.sizes import (
    PLACES,
    SIZES,
    TABLE,
    SizeField,
    Sizes,
    read_settings,
)
from serried.number import whole_number
from serried.views.sentences import require_language

MAX_WORLD_SIZE = 131_072
"""Ranks that the page draws at most; the command line has no such bound."""

Words = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Shown:
    """Names one kind of groups in view: the dimension it stands for, or "" for any other kind."""

    dim: str
    kind: str

    @property
    def label(self) -> str:
        """What a mark of this kind is called: DP for a dimension, else the kind's own name."""
        return self.dim.upper() or self.kind


@dataclass(frozen=True)
class Query:
    """Holds one question of the page: what is asked of a layout, and what of it is in view."""

    request: LayoutRequest
    layout: Layout
    placement: Placement
    dims: tuple[str, ...]
    kinds: tuple[str, ...]

    def shown(self) -> list[Shown]:
        """Returns the kinds in view: data groups have context folded in when cp is in view.

        Raises InputError for one that the layout lacks.
        """
        layout = self.layout
        folded = "cp" in self.dims
        by_dim = [Shown(dim, layout.kind_of(dim, with_cp=folded)) for dim in self.dims]
        return by_dim + [Shown("", layout.kind(name).name) for name in self.kinds]

    def command(self, shown: Sequence[Shown]) -> str:
        """Returns the command line that prints the same groups."""
        request, sizes = self.request, self.request.sizes()
        words = ["serried", "groups"]
        for name, size in SIZES.items():
            words += _option(size, getattr(sizes, name))
        if request.framework_at != DEFAULT_FRAMEWORK:
            words += ["--framework", request.framework_at]
        for key, value in sizes.options.items():
            words += ["--set", f"{key}={value}"]
        for name, text in _place_words(self.placement).items():
            words += _option(PLACES[name], text)
        words += _option(TABLE["nvlink_domain"], request.number("nvlink_domain"))
        for each in shown:
            words += ["--kind", each.kind]
        return shlex.join(words)


def _option(size: SizeField, value: object) -> list[str]:
    """Returns a size as an option, none where it is what the table says anyhow."""
    is_usual = value is None or str(value) == str(size.default)
    return [] if is_usual else [size.option, str(value)]


def request_of(words: Words, config: LaunchConfig | None = None) -> LayoutRequest:
    """Returns what words ask for, before a launch file if there is one; raises InputError."""
    told = {name: read_word(words, name) for name in TABLE}
    sizes = {name: TABLE[name].read(text) for name, text in told.items() if text}
    return LayoutRequest.of(
        sizes,
        framework=read_word(words, "framework") or None,
        settings=read_settings(text for text in words.get("set", ()) if text.strip()),
        config=config,
    )


def read_query(words: Words) -> Query:
    """Reads a question; raises InputError for a word, or for sizes, that cannot be."""
    request = request_of(words)
    world_size = request.sizes().world_size
    if world_size > MAX_WORLD_SIZE:
        raise InputError(
            "a world of {world} ranks is more than this page draws, which is {limit}; "
            "'serried groups' has no such bound",
            world=world_size,
            limit=MAX_WORLD_SIZE,
        )
    layout, placement = request.laid_out()
    return Query(request, layout, placement, _names(words, "dims"), read_each(words, "kind"))


def words_of(framework: str, sizes: Sizes, placement: Placement) -> dict[str, list[str]]:
    """Returns the words that ask for a layout, as far as the page's form holds them.

    What follows from the others, dp, is left out.

    >>> words = words_of("internlm", Sizes(16, tp=2, zero1=4), Placement(16))
    >>> words["world_size"], words["tp"], words["zero1"], words["order"]
    (['16'], ['2'], ['4'], [])
    """
    numbers = {name: getattr(sizes, name) for name in SIZES if name != "dp"}
    told = numbers | _place_words(placement)
    return {name: [] if each is None else [str(each)] for name, each in told.items()} | {
        "framework": [framework],
        "set": [f"{key}={value}" for key, value in sizes.options.items()],
    }


def _place_words(placement: Placement) -> dict[str, str]:
    """Returns where ranks sit; the GPUs of a node, or of each where nodes differ: 8, or 4,1."""
    gpus = placement.node_gpus or (placement.gpus_per_node,)
    return {
        "gpus_per_node": PLACES["gpus_per_node"].write(gpus),
        "gpus_per_rank": str(placement.gpus_per_rank),
    }


def read_language(words: Words) -> str:
    """Reads ``lang``, English where it is not given; raises InputError for an unknown one."""
    return require_language(read_word(words, "lang") or "en")


def read_rank(words: Words) -> int:
    """Reads the rank asked about; whether it is in the world is for the layout to say."""
    return read_count(words, "rank") or 0


def read_word(words: Words, name: str) -> str:
    """Reads a word, "" where it is not given."""
    return next(iter(words.get(name, ())), "").strip()


def read_each(words: Words, name: str) -> tuple[str, ...]:
    """Reads a word that may be repeated: each value once, in order."""
    told = (each.strip() for each in words.get(name, ()))
    return tuple(dict.fromkeys(filter(None, told)))


def _names(words: Words, name: str) -> tuple[str, ...]:
    """Returns a comma-separated list of names, each once."""
    found = (each.strip() for each in read_word(words, name).split(","))
    return tuple(dict.fromkeys(each for each in found if each))


def read_count(words: Words, name: str) -> int | None:
    """Reads a whole number, None where it is not given; raises InputError for anything else."""
    text = read_word(words, name)
    return whole_number(text, name) if text else None
