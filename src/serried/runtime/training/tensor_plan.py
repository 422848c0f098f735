"""Cuts any model over its tp group by a plan: patterns of module names, and how each is cut.

    "layers.*.attention.wq": "column"     the weight's output features; what comes out is cut
    "layers.*.attention.wo": "row"        its input features; takes what is cut, gives all
    "embed":                 "embedding"  its rows, the vocabulary; gives all
    "head":                  "scores"     its output features; gives all, gathered
    "norm":                  "sequence"   nothing of it: its input is cut along the sequence
    any style of torch.distributed.tensor.parallel, as it is

``*`` stands for one part of a name. What is no part of the plan stays whole on each rank. A column
cut gives a rank its share of the heads, so that code which counts them must count that share:
either it asks the tensor (``view(b, s, -1, head_size)``), or its number is named in ``counts``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from serried.errors import InputError, listed
from serried.frameworks.framework import divisors
from serried.runtime.stages.pruned import AbsentPart, PrunedModel

TensorPlan = Mapping[str, str | ParallelStyle]
"""How modules are cut, by patterns of their names; of two that match, the later one counts."""

STYLES: Mapping[str, Callable[[], ParallelStyle]] = {
    "column": ColwiseParallel,
    "row": RowwiseParallel,
    "sequence": SequenceParallel,
    "embedding": lambda: RowwiseParallel(input_layouts=Replicate()),
    "scores": lambda: ColwiseParallel(output_layouts=Replicate()),
}
"""The styles that a plan may name."""


def cut_over_tp(
    model: nn.Module, mesh: DeviceMesh, plan: TensorPlan, *, counts: Sequence[str] = ()
) -> None:
    """Cuts ``model``, or a stage of it, over the tp ranks of ``mesh``, in place.

    ``counts`` are patterns of attributes, such as ``layers.*.attention.heads``, of which each
    rank has its share. Every rank holds the whole weights now, all the same: nothing is sent.
    A weight under two names stays one.

    >>> from torch.distributed import destroy_process_group
    >>> from serried.runtime.run.program import join
    >>> model = nn.ModuleDict({"up": nn.Linear(4, 8), "down": nn.Linear(8, 4)})
    >>> cut_over_tp(model, join().mesh["tp"], {"up": "column", "downs": "row"})
    Traceback (most recent call last):
    serried.errors.InputError: downs matches no module of ModuleDict; names like it: down
    >>> destroy_process_group()

    Raises InputError for a pattern that matches nothing in the whole model, a style that is not
    known, a size that the ranks do not divide, and a shared weight that is cut in two ways.
    """
    tp = mesh.size()
    names = _whole_names(model)
    styles = {
        name: _style(pattern, style)
        for pattern, style in plan.items()
        for name in _matching(pattern, names, model)
    }
    held = {
        name: module
        for name, module in model.named_modules()
        if name in styles and not isinstance(module, AbsentPart)
    }
    for name, module in held.items():
        _require_divided(name, module, styles[name], tp)
    shared = _shared(model)
    _divide_counts(model, counts, names, tp)
    if tp == 1:
        return
    parallelize_module(model, mesh, {name: styles[name] for name in held}, src_data_rank=None)
    _tie_again(model, shared)


def _whole_names(model: nn.Module) -> Collection[str]:
    """Returns the names of all modules of the model that this is, or is a stage of."""
    if isinstance(model, PrunedModel):
        return model.stage_place.model_names
    return [name for name, _ in model.named_modules()]


def _matching(pattern: str, names: Collection[str], model: nn.Module) -> list[str]:
    parts = pattern.split(".")
    found = [name for name in names if _matches(name.split("."), parts)]
    if found:
        return found
    known = list(dict.fromkeys(_generic(name) for name in sorted(names) if name))
    raise InputError(
        "{pattern} matches no module of {model}; names like it: {names}",
        pattern=pattern,
        model=type(model).__name__,
        names=listed(get_close_matches(pattern, known, n=4, cutoff=0.4) or known),
    )


def _matches(name: Sequence[str], pattern: Sequence[str]) -> bool:
    return len(name) == len(pattern) and all(map(fnmatchcase, name, pattern))


def _generic(name: str) -> str:
    """Returns a name with ``*`` for each number in it.

    >>> _generic("layers.3.attention.wq")
    'layers.*.attention.wq'
    """
    return ".".join("*" if part.isdecimal() else part for part in name.split("."))


def _style(pattern: str, style: str | ParallelStyle) -> ParallelStyle:
    if isinstance(style, ParallelStyle):
        return style
    if style not in STYLES:
        raise InputError(
            "{pattern} is to be cut as '{style}', which is no style; styles are {known}, and those "
            "of torch.distributed.tensor.parallel",
            pattern=pattern,
            style=style,
            known=listed(STYLES),
        )
    return STYLES[style]()


def _require_divided(name: str, module: nn.Module, style: ParallelStyle, tp: int) -> None:
    """Raises InputError unless the size that ``style`` cuts falls into equal parts."""
    is_column = isinstance(style, ColwiseParallel)
    if isinstance(module, nn.Linear):
        attribute = "out_features" if is_column else "in_features"
    elif isinstance(module, nn.Embedding):
        attribute = "embedding_dim" if is_column else "num_embeddings"
    else:
        return
    if is_column or isinstance(style, RowwiseParallel):
        _require_divides(tp, int(getattr(module, attribute)), attribute, name)


def _require_divides(tp: int, size: int, attribute: str, name: str) -> None:
    if size % tp:
        raise InputError(
            "tp={tp} does not divide {attribute}={size} of {name}; tp can be {fits}",
            tp=tp,
            attribute=attribute,
            size=size,
            name=name,
            fits=listed(divisors(size)),
        )


def _divide_counts(
    model: nn.Module, counts: Sequence[str], names: Collection[str], tp: int
) -> None:
    """Gives each rank its share of the attributes that ``counts`` match."""
    held = dict(model.named_modules())
    for pattern in counts:
        owner, _, attribute = pattern.rpartition(".")
        found = _matching(owner, names, model) if owner else [""]
        for name in found:
            module = held.get(name)
            if module is None or isinstance(module, AbsentPart):
                continue  # another stage's
            size = getattr(module, attribute, None)
            if not isinstance(size, int):
                raise InputError(
                    "{name} has no number called {attribute} to share out; whole numbers that it "
                    "has: {numbers}",
                    name=name or type(model).__name__,
                    attribute=attribute,
                    numbers=listed(
                        key for key, value in vars(module).items() if type(value) is int
                    ),
                )
            _require_divides(tp, size, attribute, name)
            setattr(module, attribute, size // tp)


def _shared(model: nn.Module) -> list[list[str]]:
    """Returns the names of each weight that has several."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return [each for each in names.values() if len(each) > 1]


def _tie_again(model: nn.Module, shared: Sequence[Sequence[str]]) -> None:
    """Makes weights one again that were one before they were cut."""
    for first, *others in shared:
        kept = model.get_parameter(first)
        for name in others:
            if _placements(model.get_parameter(name)) != _placements(kept):
                raise InputError(
                    "{first} and {second} are one weight, and the plan cuts them in two ways; cut "
                    "both along the vocabulary (embedding and scores), or neither",
                    first=first,
                    second=name,
                )
            owner, _, key = name.rpartition(".")
            setattr(model.get_submodule(owner), key, kept)


def _placements(parameter: Tensor) -> object:
    return parameter.placements if isinstance(parameter, DTensor) else None
