"""Which layers of the model each pipeline position holds, even or not, in one chunk or several.

16 layers, pp 4, 2 chunks       position 0: layers 0 1  8 9       position 2: layers 4 5  12 13
(virtual stages turn by turn)   position 1: layers 2 3  10 11     position 3: layers 6 7  14 15

Sources: Megatron-core transformer_block.get_num_layers_to_build and transformer_layer.
get_transformer_layer_offset (first and last position of their own size), pipeline_parallel_
layer_layout (strings such as ``E|(t|)*3,m|L``); InternLM internlm/solver/pipeline_utils.py and
DeepSpeed runtime/utils.py (partition_uniform) and ColossalAI pipeline/stage_manager.py
(distribute_layers) for layers that do not divide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from serried.errors import InputError, listed
from serried.finding import Finding, said
from serried.mesh.groups import runs_shown
from serried.mesh.layout import Layout
from serried.mesh.mesh import Ranks

# "(t|)*3" and "t*3", as in Megatron's --pipeline-model-parallel-layout "E|(t|)*3,m|m||L".
REPEATED = r"\(([^()]*)\)\*(\d+)|([^()|,*])\*(\d+)"
MAX_LAYERS = 100_000


class LayerSplit(NamedTuple):
    """Holds the layers of each pipeline position: ``held[position][chunk]`` is a range."""

    num_layers: int
    held: tuple[tuple[range, ...], ...]
    is_asked: bool = False
    """Tells that the user gave the split, so that an uneven one is no surprise."""

    @property
    def counts(self) -> tuple[int, ...]:
        """How many layers each pipeline position holds."""
        return tuple(sum(map(len, chunks)) for chunks in self.held)

    @property
    def num_chunks(self) -> int:
        """Chunks of the model that each position holds."""
        return len(self.held[0])

    def layers(self, position: int) -> list[int]:
        """Returns the numbers of the layers that a pipeline position holds."""
        return [layer for chunk in self.held[position] for layer in chunk]


def evenly(num_layers: int, *, pp: int, chunks: int = 1, left_over: str = "first") -> LayerSplit:
    """Splits layers over ``pp`` positions; those left over go to the first, middle or last.

    >>> [evenly(10, pp=4, left_over=where).counts for where in ("first", "middle", "last")]
    [(3, 3, 2, 2), (2, 3, 3, 2), (2, 2, 3, 3)]

    Those that put them last cut the model into chunks first, which must divide the layers; raises
    InputError when they do not.
    """
    _check(num_layers, chunks)
    if left_over != "last":
        widths = _widths(num_layers, pp * chunks, left_over)
        return _turn_by_turn([widths[i : i + pp] for i in range(0, pp * chunks, pp)])
    if num_layers % chunks:
        raise InputError(
            "{layers} layers do not divide into {chunks} chunks; numbers that do: {fits}",
            layers=num_layers,
            chunks=chunks,
            fits=listed(n for n in range(1, num_layers + 1) if num_layers % n == 0),
        )
    return _turn_by_turn([_widths(num_layers // chunks, pp, left_over)] * chunks)


def _widths(num_layers: int, slots: int, left_over: str) -> list[int]:
    each, left = divmod(num_layers, slots)
    start = {"first": 0, "middle": slots // 2 - left // 2, "last": slots - left}[left_over]
    return [each + (start <= slot < start + left) for slot in range(slots)]


def with_ends(
    num_layers: int, *, pp: int, chunks: int = 1, first: int | None = None, last: int | None = None
) -> LayerSplit:
    """Splits layers with a first and last position of their own size, the rest evenly.

    >>> with_ends(14, pp=4, first=3, last=3).counts
    (3, 4, 4, 3)

    Raises InputError for sizes that leave no even split, with sizes that do.
    """
    # The ends that are asked for take theirs, whatever is left is split evenly over the middle, and
    # each position's layers must divide into its chunks.
    _check(num_layers, chunks)
    ends = [size for size in (first, last) if size is not None]
    middle, left = pp - len(ends), num_layers - sum(ends)
    if middle < 0 or left < 0 or any(size < 1 for size in ends):
        raise _no_room(num_layers, pp, ends)
    if (middle == 0 and left) or (middle and left % middle):
        raise _uneven_middle(middle, left)
    counts = [left // middle] * middle if middle else []
    counts = ([first] if first is not None else []) + counts
    counts += [last] if last is not None else []
    _require_whole_chunks(counts, chunks)
    return _turn_by_turn([[count // chunks for count in counts]] * chunks, is_asked=True)


def _require_whole_chunks(counts: Sequence[int], chunks: int) -> None:
    for count in counts:
        if count % chunks:
            raise InputError(
                "{count} layers of a pipeline position do not divide into {chunks} chunks; "
                "numbers that do: {fits}",
                count=count,
                chunks=chunks,
                fits=listed(n for n in range(1, count + 1) if count % n == 0),
            )


def as_listed(counts: Sequence[int], *, pp: int) -> LayerSplit:
    """Splits layers as listed: a number per stage, ``pp`` of them or ``pp`` per chunk.

    >>> as_listed([3, 4, 4, 3], pp=4).held[1]
    (range(3, 7),)

    Raises InputError when the list does not fit ``pp``.
    """
    if not counts or len(counts) % pp or min(counts) < 0:
        raise InputError(
            "{count} stages are listed, but pp={pp}; list one number of layers per stage, "
            "{pp} of them or a multiple",
            count=len(counts),
            pp=pp,
        )
    _check(sum(counts), 1)
    stages = [counts[i : i + pp] for i in range(0, len(counts), pp)]
    return _turn_by_turn(stages, is_asked=True)


def by_picture(text: str, *, pp: int) -> LayerSplit:
    """Splits layers as Megatron's layout string draws them: ``t`` is a layer, ``|`` ends a stage.

    >>> by_picture("Et|tt|(tt|)*1tL", pp=4).counts
    (1, 2, 2, 1)

    Raises InputError when its stages do not fit ``pp``.
    """
    return as_listed([stage.count("t") for stage in unfolded(text).split("|")], pp=pp)


def unfolded(text: str) -> str:
    """Writes out the repeats of a layout string.

    >>> unfolded("E|(t|)*3,m|L"), unfolded("Et*2|t*2L")
    ('E|t|t|t|m|L', 'Ett|ttL')
    """
    # The pattern has no parentheses inside, so nested repeats unfold from the inside out; the bound
    # ends (((t)*999)*999)*999 before it fills the memory.
    while found := re.search(REPEATED, text):
        body, times = (found[1], found[2]) if found[2] else (found[3], found[4])
        if int(times) * len(body) > MAX_LAYERS:
            raise _too_many(int(times))
        text = text[: found.start()] + body * int(times) + text[found.end() :]
    return text.replace(",", "")


def positions(layout: Layout) -> Ranks:
    """Returns each rank's position in its pipeline, shape (world_size,); 0 without one."""
    position = np.zeros(layout.world_size, dtype=np.int32)
    if "pp" in layout.dims:
        groups = layout.groups(layout.dims["pp"])
        starts = np.repeat(groups.bounds[:-1], groups.sizes)
        # Groups of some frameworks name ranks beyond the world (out_of_range), which have no
        # position.
        inside = groups.members < layout.world_size
        position[groups.members[inside]] = (np.arange(len(groups.members)) - starts)[inside]
    return position


def _turn_by_turn(chunks: Sequence[Sequence[int]], *, is_asked: bool = False) -> LayerSplit:
    """Counts layers through chunk after chunk, within a chunk position after position."""
    held: list[list[range]] = [[] for _ in chunks[0]]
    layer = 0
    for widths in chunks:
        for position, width in enumerate(widths):
            held[position].append(range(layer, layer + width))
            layer += width
    return LayerSplit(layer, tuple(map(tuple, held)), is_asked)


def _check(num_layers: int, chunks: int) -> None:
    for name, value in (("layers", num_layers), ("chunks", chunks)):
        if value < 1:
            raise InputError("{name}={value}; it is at least 1", name=name, value=value)
    if num_layers > MAX_LAYERS:
        raise _too_many(num_layers)
    if chunks > MAX_LAYERS:
        raise InputError(
            "{name}={value} is too large; it is at most {most}",
            name="chunks",
            value=chunks,
            most=MAX_LAYERS,
        )


def _too_many(count: int) -> InputError:
    return InputError(
        "{count} layers are more than a model has; at most {limit}", count=count, limit=MAX_LAYERS
    )


def _no_room(num_layers: int, pp: int, ends: Sequence[int]) -> InputError:
    return InputError(
        "first and last positions of {ends} layers do not fit {layers} layers over pp={pp}; "
        "each is at least 1, and together at most {layers}",
        ends=listed(ends),
        layers=num_layers,
        pp=pp,
    )


def _uneven_middle(middle: int, left: int) -> InputError:
    return InputError(
        "{left} layers are left for {middle} positions in the middle, which do not divide them; "
        "first and last positions that leave {fits} would do",
        left=left,
        middle=middle,
        fits=listed(_multiples(middle, left)),
    )


def _multiples(middle: int, left: int) -> list[int]:
    """Returns the multiples of ``middle`` on both sides of ``left``."""
    if middle == 0:
        return [0]
    return [each for each in (left // middle * middle, (left // middle + 1) * middle) if each > 0]


def layers_by_depth(layout: Layout, split: LayerSplit | None) -> Iterator[Finding]:
    """Yields a finding where pipeline positions hold unequal layers, or none."""
    if split is None:
        return
    pp, counts = len(split.held), split.counts
    # Users who listed the layers meant them so: only an even split of ours is questioned.
    empty = [position for position, count in enumerate(counts) if not count]
    if empty and not split.is_asked:
        evidence = said(
            "pp={pp} is deeper than {layers} layers reach: positions {positions} hold none",
            pp=pp,
            layers=split.num_layers,
            positions=runs_shown(empty),
        )
        cure = said("pp of at most {layers}", layers=split.num_layers)
        yield Finding("layers_few", (evidence,), groups=("pp",), cure=cure)
    elif not split.is_asked and len({len(chunk) for held in split.held for chunk in held}) > 1:
        yield _uneven(layout, split)


def _uneven(layout: Layout, split: LayerSplit) -> Finding:
    stages = len(split.held) * split.num_chunks
    widths = [len(chunk) for held in split.held for chunk in held]
    evidence = [
        said(
            "{layers} layers over {stages} stages leave {least} or {most} layers each; "
            "the longest sets the pace of all",
            layers=split.num_layers,
            stages=stages,
            least=min(widths),
            most=max(widths),
        )
    ]
    if layout.conventions.divides_layers:
        evidence.append(
            said(
                "{framework} refuses that unless the first and last stage are given their own size",
                framework=layout.framework,
            )
        )
    # The multiples of the number of stages just below and just above; the lower one may be 0.
    near = [split.num_layers // stages * stages, (split.num_layers // stages + 1) * stages]
    cure = said(
        "layers that divide: {layers}; pp that divides {count} layers: {fits}",
        layers=listed(n for n in near if n),
        count=split.num_layers,
        fits=listed(n for n in range(1, split.num_layers + 1) if split.num_layers % n == 0),
    )
    return Finding("layers_uneven", tuple(evidence), groups=("pp",), cure=cure)
