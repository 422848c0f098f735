"""Which layers each stage of a pipeline holds, and which ones embed tokens, predict and lose.

    stage      0              1 … p v - 2      p v - 1
    holds      embedding      layers           layers, MTP layers, norm, output and loss
               layers

Stages are virtual ones, numbered through the model; which rank has which is the schedule's matter.
``mesh.layers`` splits the layers; here is where the ends of the model are.
Source: megatron-core 0.16.1, transformer_block.get_num_layers_to_build and
pipeline_parallel_layer_layout; torchtitan b5bcd76c, distributed/pipeline_parallel.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.mesh.layers import LayerSplit, as_listed, evenly, unfolded, with_ends
from serried.plan.model.shape import ModelShape

LEFT_OVER = {"internlm": "last", "internevo": "last", "colossalai": "middle"}
"""Frameworks that do not give the first stages the layers that are left over."""
COUNTS_ENDS = ("torchtitan",)
"""Frameworks that count embedding and output as a layer each when they divide layers."""


@dataclass(frozen=True)
class ModelStage:
    """Holds what one stage has of the model.

    >>> ModelStage(1, range(8, 16)).num_layers
    8
    """

    number: int
    layers: range
    has_embedding: bool = False
    has_output: bool = False
    """Whether it has the last norm, the output projection and the loss."""
    mtp_layers: int = 0

    @property
    def num_layers(self) -> int:
        """Layers of the decoder that it has, those of MTP left out."""
        return len(self.layers)


def stages_listed(model: ModelShape, counts: Sequence[int]) -> tuple[ModelStage, ...]:
    """Returns stages of so many layers each; raises InputError where they are not the model's.

    >>> from serried.plan.model.shape import ModelShape
    >>> llama = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
    >>> [each.layers for each in stages_listed(llama, (15, 17))]
    [range(0, 15), range(15, 32)]
    """
    if sum(counts) != model.layers or min(counts) < 0:
        raise InputError(
            "stages of {counts} layers hold {sum} in all; {model} has {layers}",
            counts=listed(counts, limit=len(counts)),
            sum=sum(counts),
            model=model.name,
            layers=model.layers,
        )
    found, begin, last = [], 0, len(counts) - 1
    for number, count in enumerate(counts):
        found.append(
            ModelStage(
                number,
                range(begin, begin + count),
                has_embedding=number == 0,
                has_output=number == last,
                mtp_layers=model.mtp_layers if number == last else 0,
            )
        )
        begin += count
    return tuple(found)


def stages_drawn(model: ModelShape, picture: str, num_stages: int) -> tuple[ModelStage, ...]:
    """Returns the stages that Megatron's layout string draws.

    E is the embedding, t a layer, m a layer of MTP, L the loss, and | ends a stage:
    ``Et*4|(t*4|)*14tmL`` are 16 stages. Raises InputError for another number of stages or layers,
    and where E, L or the MTP layers are not all there.
    """
    parts = unfolded(picture).split("|")
    if len(parts) != num_stages:
        raise InputError(
            "the layout string draws {drawn} stages; pp x chunks makes {stages}",
            drawn=len(parts),
            stages=num_stages,
        )
    drawn = "".join(parts)
    wanted = {"E": 1, "t": model.layers, "m": model.mtp_layers, "L": 1}
    for letter, count in wanted.items():
        if drawn.count(letter) != count:
            raise InputError(
                "the layout string has {drawn} of '{letter}'; {model} has {count}",
                drawn=drawn.count(letter),
                letter=letter,
                model=model.name,
                count=count,
            )
    found, begin = [], 0
    for number, part in enumerate(parts):
        layers = range(begin, begin + part.count("t"))
        found.append(ModelStage(number, layers, "E" in part, "L" in part, part.count("m")))
        begin = layers.stop
    return tuple(found)


def layers_even(model: ModelShape, pp: int, chunks: int = 1, framework: str = "") -> list[int]:
    """Returns the layers of each stage as a framework divides them where nothing else is said.

    >>> llama = ModelShape("llama3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256)
    >>> layers_even(llama, 4, framework="torchtitan")
    [31, 32, 32, 31]

    Megatron refuses layers that do not divide: raises InputError with what would do.
    """
    stages, layers = pp * chunks, model.layers
    if framework == "megatron" and layers % stages:
        near = [each for each in range(1, 257) if layers % each == 0]
        raise InputError(
            "{stages} stages (pp={pp} x chunks={chunks}) do not divide the {layers} layers of "
            "{model}; stages that do: {fits}; or give the first or last stage fewer layers, or "
            "list them",
            stages=stages,
            pp=pp,
            chunks=chunks,
            layers=layers,
            model=model.name,
            fits=listed(near, limit=24),
        )
    if framework in COUNTS_ENDS and stages > 1:
        return layers_accounted(model, pp, chunks)
    left_over = LEFT_OVER.get(framework, "first")
    if left_over == "last" and layers % chunks:
        left_over = "first"
    return _in_order(evenly(layers, pp=pp, chunks=chunks, left_over=left_over))


def layers_with_ends(
    model: ModelShape, pp: int, chunks: int, first: int | None, last: int | None
) -> list[int]:
    """Returns the layers of each stage where the first or the last rank has its own number.

    >>> llama = ModelShape("llama3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256)
    >>> layers_with_ends(llama, 4, 1, 31, 31)
    [31, 32, 32, 31]
    """
    return _in_order(with_ends(model.layers, pp=pp, chunks=chunks, first=first, last=last))


def layers_accounted(
    model: ModelShape, pp: int, chunks: int = 1, *, embedding: bool = True, loss: bool = True
) -> list[int]:
    """Returns the layers of each stage where embedding and loss count as a layer each.

    >>> llama = ModelShape("llama3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256)
    >>> layers_accounted(llama, 2, 2, loss=False)
    [31, 32, 32, 31]
    """
    counted = model.layers + embedding + loss
    found = _in_order(evenly(counted, pp=pp, chunks=chunks))
    found[0] -= embedding
    found[-1] -= loss
    return found


def _in_order(split: LayerSplit) -> list[int]:
    """Returns the layers of each stage, the first chunks of all positions first."""
    return [len(held[chunk]) for chunk in range(split.num_chunks) for held in split.held]


def stages_of(
    model: ModelShape,
    pp: int,
    chunks: int = 1,
    *,
    framework: str = "",
    counts: Sequence[int] | None = None,
    picture: str | None = None,
) -> tuple[ModelStage, ...]:
    """Returns the stages as they are drawn, else as they are listed, else as even as can be."""
    if picture:
        return stages_drawn(model, picture, pp * chunks)
    if counts is None:
        counts = layers_even(model, pp, chunks, framework)
    as_listed(counts, pp=pp)
    return stages_listed(model, counts)
