"""What the page asks for, read from the words of an address: sizes, placement, dimensions."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import Sizes
from serried.mesh import Layout, Placement
from serried.views.sentences import require_language

DEFAULT_FRAMEWORK = "megatron"
MAX_WORLD_SIZE = 131_072
"""Ranks that the page draws at most; the command line has no such bound."""
MOST = 999_999_999
"""The largest number that a word of an address takes, but for the world."""
_COUNTS = {
    "tp": "--tp",
    "pp": "--pp",
    "cp": "--cp",
    "dp": "--dp",
    "ep": "--ep",
    "etp": "--etp",
    "zero": "--zero",
    "zero1": "--zero1-size",
    "nettest": "--nettest-size",
}
"""Sizes by the page's names, each with the option of the command line."""

Words = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Shown:
    """Is one kind of groups in view: the dimension it stands for, or "" for any other kind."""

    dim: str
    kind: str

    @property
    def label(self) -> str:
        """What a mark of this kind is called: DP for a dimension, else the kind's own name."""
        return self.dim.upper() or self.kind


@dataclass(frozen=True)
class Query:
    """Holds one question of the page, every word of it already checked for form."""

    framework: str
    sizes: Sizes
    placement: Placement
    dims: tuple[str, ...]
    kinds: tuple[str, ...]

    def layout(self) -> Layout:
        """Returns the layout asked about; raises InputError where the framework would refuse."""
        return frameworks.layout(self.framework, self.sizes)

    def shown(self, layout: Layout) -> list[Shown]:
        """Returns the kinds in view: data groups have context folded in when cp is in view."""
        folded = "cp" in self.dims
        by_dim = [Shown(dim, layout.kind_of(dim, with_cp=folded)) for dim in self.dims]
        return by_dim + [Shown("", layout.kind(name).name) for name in self.kinds]

    def command(self, shown: Sequence[Shown]) -> str:
        """Returns the command line that prints the same groups."""
        words = ["serried", "groups", "--world-size", str(self.sizes.world_size)]
        for name, option in _COUNTS.items():
            size = getattr(self.sizes, name)
            if size is not None and (size != 1 or name not in ("tp", "pp", "cp", "ep")):
                words += [option, str(size)]
        if self.framework != DEFAULT_FRAMEWORK:
            words += ["--framework", self.framework]
        if self.sizes.order:
            words += ["--order", self.sizes.order]
        for key, value in self.sizes.options.items():
            words += ["--set", f"{key}={value}"]
        if self.placement.gpus_per_node != Placement.gpus_per_node or self.placement.node_gpus:
            words += ["--gpus-per-node", _node_word(self.placement)]
        if self.placement.gpus_per_rank != Placement.gpus_per_rank:
            words += ["--gpus-per-rank", str(self.placement.gpus_per_rank)]
        for each in shown:
            words += ["--kind", each.kind]
        return shlex.join(words)


def read_query(words: Words) -> Query:
    """Reads a question; raises InputError for a word that is not of its form."""
    world_size = _count(words, "world", 16)
    if world_size > MAX_WORLD_SIZE:
        raise InputError(
            "a world of {world} ranks is more than this page draws, which is {limit}; "
            "'serried groups' has no such bound",
            world=world_size,
            limit=MAX_WORLD_SIZE,
        )
    sizes = Sizes(
        world_size,
        tp=_count(words, "tp", 1),
        pp=_count(words, "pp", 1),
        cp=_count(words, "cp", 1),
        dp=read_count(words, "dp"),
        ep=_count(words, "ep", 1),
        etp=read_count(words, "etp"),
        zero=read_count(words, "zero"),
        zero1=read_count(words, "zero1"),
        nettest=read_count(words, "nettest"),
        order=read_word(words, "order") or None,
        options=read_settings(words),
    )
    gpus = _counts(words, "gpus_per_node") or Placement.gpus_per_node
    placement = Placement.on(world_size, gpus, _count(words, "gpus_per_rank", 1))
    name = read_word(words, "framework") or DEFAULT_FRAMEWORK
    return Query(name, sizes, placement, _names(words, "dims"), _names(words, "kinds"))


def words_of(framework: str, sizes: Sizes, placement: Placement) -> dict[str, list[str]]:
    """Returns the words that ask for a layout, as far as the page's form holds them.

    What follows from the others, dp, is left out.

    >>> words = words_of("internlm", Sizes(16, tp=2, zero1=4), Placement(16))
    >>> words["world"], words["tp"], words["zero1"], words["order"]
    (['16'], ['2'], ['4'], [])
    """
    counts = {name: getattr(sizes, name) for name in _COUNTS if name != "dp"}
    places = {"gpus_per_node": _node_word(placement), "gpus_per_rank": placement.gpus_per_rank}
    numbers = {"world": sizes.world_size, **counts, **places}
    return {name: [] if each is None else [str(each)] for name, each in numbers.items()} | {
        "framework": [framework],
        "order": [sizes.order] if sizes.order else [],
        "set": [f"{key}={value}" for key, value in sizes.options.items()],
    }


def _node_word(placement: Placement) -> str:
    """Writes the GPUs of a node, or of each where nodes differ: 8, or 4,1."""
    return ",".join(map(str, placement.node_gpus or [placement.gpus_per_node]))


def read_language(words: Words) -> str:
    """Reads ``lang``, English where it is not given; raises InputError for an unknown one."""
    return require_language(read_word(words, "lang") or "en")


def read_rank(words: Words) -> int:
    """Reads the rank asked about; whether it is in the world is for the layout to say."""
    return _count(words, "rank", 0)


def read_word(words: Words, name: str) -> str:
    """Reads a word, "" where it is not given."""
    return next(iter(words.get(name, ())), "").strip()


def _names(words: Words, name: str) -> tuple[str, ...]:
    """Returns a comma-separated list of names, each once."""
    found = (each.strip() for each in read_word(words, name).split(","))
    return tuple(dict.fromkeys(each for each in found if each))


def _count(words: Words, name: str, default: int) -> int:
    count = read_count(words, name)
    return default if count is None else count


def read_count(words: Words, name: str) -> int | None:
    """Reads a whole number, None where it is not given; raises InputError for anything else."""
    text = read_word(words, name)
    return _whole(name, text) if text else None


def _counts(words: Words, name: str) -> list[int]:
    """Returns whole numbers separated by commas, [] where none is given."""
    text = read_word(words, name).rstrip(",")
    return [_whole(name, part.strip()) for part in text.split(",")] if text else []


def _whole(name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise InputError(
            "{name}={value} is not a whole number; one such as 16 is", name=name, value=text[:40]
        )
    if len(digits.lstrip("0")) > len(str(MOST)):
        raise InputError(
            "{name}={value} is too large; it is at most {most}",
            name=name,
            value=text if len(text) <= 40 else f"{text[:40]}…",
            most=MAX_WORLD_SIZE if name in ("world", "world_size") else MOST,
        )
    return int(text)


def read_settings(words: Words) -> dict[str, str]:
    """Reads the framework's settings; raises InputError for one that is no KEY=VALUE."""
    return dict(_setting(text) for text in words.get("set", ()) if text.strip())


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key.strip() and equals):
        raise InputError(
            "'{text}' is not a setting; one reads KEY=VALUE, such as num_experts=4", text=text
        )
    return key.strip(), value.strip()
