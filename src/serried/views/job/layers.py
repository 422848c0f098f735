"""How the layers of the job that was asked for divide over its pipeline, if it says how many."""

from __future__ import annotations

from collections.abc import Sequence

from serried.errors import InputError
from serried.launch.request import LAYER_SETTINGS, LayoutRequest
from serried.mesh import Layout
from serried.mesh.layers import LayerSplit, as_listed, by_picture, evenly, with_ends

VIRTUAL = "virtual_pipeline_model_parallel_size"
"""Megatron's setting for model chunks, which ``--chunks`` goes before."""


def layers_of(request: LayoutRequest, layout: Layout) -> LayerSplit | None:
    """Returns who holds which layers, or None when neither options nor file say how many.

    Raises InputError for a split that cannot be.
    """
    pp, counts = layout.sizes.get("pp", 1), request.numbers("layers")
    told = request.layer_settings
    # What says most goes first: a count for each position (--layers 4,6,6,4), then a drawn picture
    # ('Et*3|t*3|t*3L'), then the sizes of the two ends, and at last an even split.
    if counts and len(counts) > 1:
        return _listed(counts, pp=pp, chunks=request.number("chunks"))
    layers = counts[0] if counts else _from_file(request, "layers")
    if "picture" in told:
        return _drawn(told["picture"], pp=pp, layers=layers)
    if layers is None:
        # Only the option is refused; chunks that a file tells need not come with layers.
        if request.number("chunks"):
            raise InputError("--chunks cuts a rank's layers; say how many there are with --layers")
        return None
    chunks = request.number("chunks") or _from_file(request, "chunks")
    chunks = chunks or _virtual(request, layout)
    first, last = _end(request, "first"), _end(request, "last")
    if first is not None or last is not None:
        return with_ends(layers, pp=pp, chunks=chunks, first=first, last=last)
    return evenly(layers, pp=pp, chunks=chunks, left_over=layout.conventions.left_over)


def _listed(counts: Sequence[int], *, pp: int, chunks: int | None) -> LayerSplit:
    # With pp=4, --layers may list 4 counts or 8; a list of 8 itself says that there are 2 chunks.
    split = as_listed(counts, pp=pp)
    if chunks not in (None, split.num_chunks):
        raise InputError(
            "--layers lists {count} stages, {found} for each of pp={pp}, but --chunks is {chunks}; "
            "leave out --chunks",
            count=len(counts),
            found=split.num_chunks,
            pp=pp,
            chunks=chunks,
        )
    return split


def _drawn(picture: str, *, pp: int, layers: int | None) -> LayerSplit:
    split = by_picture(picture, pp=pp)
    if layers is not None and layers != split.num_layers:
        raise InputError(
            "pipeline_model_parallel_layout draws {drawn} layers, but there are {layers}; make "
            "them agree",
            drawn=split.num_layers,
            layers=layers,
        )
    return split


def _from_file(request: LayoutRequest, name: str) -> int | None:
    found = request.config.fields.get(name) if request.config else None
    return int(found.value) if found else None


def _virtual(request: LayoutRequest, layout: Layout) -> int:
    text = request.at(layout.world_size).sizes().options.get(VIRTUAL, "")
    return int(text) if text.isdecimal() and int(text) else 1


def _end(request: LayoutRequest, name: str) -> int | None:
    text = request.layer_settings.get(name)
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        # The sentence names the framework's setting, which the user wrote, not its short name here.
        key = next(key for key, each in LAYER_SETTINGS.items() if each == name)
        raise InputError(
            "{key}={value} is not a size; it is a whole number of at least {least}",
            key=key,
            value=text,
            least=1,
        )
    return int(text)
