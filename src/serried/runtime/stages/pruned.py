"""A model that is one of its stages: its own code runs, on the parts that the stage holds.

    model.forward(x)  =  … embed  layers.0  layers.1  layers.2  layers.3  head …

    stage 1 of 3         absent   absent    entry     layers.2  exit
    given the stream                        takes it            raises: this is the output

What runs before the entry runs on nothing: absent parts return NaN in the shapes that they gave,
so that a value which a stage uses and should have been sent shows in what it computes. Code
between parts, masks and rotary angles among it, stays the model's own and runs on every stage.
Names of parameters stay the model's, and the tensors are the very same: nothing is copied.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from serried.errors import InputError
from serried.runtime.stages.observed import (
    Observed,
    containers_of,
    like,
    on_meta,
    other_tensors,
    parts_of,
    stream_of,
)


@dataclass(eq=False)
class StagePlace:
    """Holds what a stage's modules share: which it is, and what it was given last."""

    number: int
    num_stages: int
    model_input: Tensor
    """The model's input on the meta device, in whose shape zeros stand for it."""
    model_names: frozenset[str]
    """Names of all modules of the whole model."""
    output: Callable[[Any], Any]
    """Takes the tensor out of what the model returns."""
    received: Tensor | None = None
    others: dict[str, Tensor] = field(default_factory=dict)
    """The other tensors that the entry was given."""


class PrunedModel(nn.Module):
    """Runs a model's forward from where its stage begins to where the next one does."""

    stage_place: StagePlace

    def forward(self, received: Tensor) -> Tensor:
        """Takes the model's input or the stream, and returns the stream or the model's output."""
        place = self.stage_place
        given = received
        if place.number:
            zeros = place.model_input
            given = torch.zeros(zeros.shape, dtype=zeros.dtype, device=received.device)
        place.received = received
        try:
            returned = super().forward(given)
        except _ExitReached as reached:
            return reached.stream
        finally:
            place.received = None
        return output_tensor(returned, place.output, type(self).__name__)


class _Entry(nn.Module):
    """Gives the part at which a stage begins the stream that came in, before any hook runs."""

    stage_place: StagePlace

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        place = self.stage_place
        which = stream_of(args, kwargs)
        place.others = other_tensors(args, kwargs, "" if which is None else which)
        if isinstance(which, int):
            args = (*args[:which], place.received, *args[which + 1 :])
        elif which is not None:
            kwargs = kwargs | {which: place.received}
        return super().__call__(*args, **kwargs)


class _Exit(nn.Module):
    """Ends the forward of a stage where the next one begins."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        which = stream_of(args, kwargs)
        raise _ExitReached(args[which] if isinstance(which, int) else kwargs[which or ""])


class _ExitReached(BaseException):
    """Carries the stream out of a model's forward, past any ``except Exception`` of its own."""

    def __init__(self, stream: Tensor) -> None:
        super().__init__()
        self.stream = stream


class AbsentPart(nn.Module):
    """Stands for a part that another stage holds: no weights, and NaN where values would be."""

    stage_place: StagePlace
    stands_for: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns NaN in the shapes that the part gave; no hook of it runs."""
        received = self.stage_place.received
        device = None if received is None else received.device
        return like(self.stands_for, lambda tensor: _nothing(tensor, device))


def _nothing(tensor: Tensor, device: torch.device | None) -> Tensor:
    """Returns NaN, or zeros of a type that has none, in the shape of ``tensor``; one number big."""
    value = float("nan") if tensor.is_floating_point() else 0
    return torch.full((), value, dtype=tensor.dtype, device=device).expand(tensor.shape)


def output_tensor(returned: Any, output: Callable[[Any], Any], model: str) -> Tensor:
    """Returns what ``output`` takes from ``returned``; raises InputError where it is no tensor."""
    found = output(returned)
    if isinstance(found, Tensor):
        return found
    raise InputError(
        "{model} returns a {kind} and a stage hands on one tensor; give output=, a function that "
        "takes the tensor for the loss out of it, such as lambda out: out[0]",
        model=model,
        kind=type(found).__name__,
    )


def pruned(
    model: nn.Module,
    starts: tuple[str, ...],
    number: int,
    seen: Observed,
    output: Callable[[Any], Any],
) -> PrunedModel:
    """Returns stage ``number`` of ``model``, which keeps all of its own parts."""
    place = StagePlace(
        number,
        len(starts) + 1,
        on_meta(seen.streams[0]),
        frozenset(name for name, _ in model.named_modules()),
        output,
    )
    # deepcopy takes what its memo says for a tensor's copy: the tensor itself.
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    stage = copy.deepcopy(model, dict(shared))
    for name, part in parts_of(stage, starts).items():
        if number in held_by(seen, name, part):
            continue
        _empty(part)
        _become(part, AbsentPart, place)
        object.__setattr__(part, "stands_for", seen.gave.get(name))
    for name, container in containers_of(stage, starts).items():
        _drop_unused(container, name, number, seen)
    if number:
        _become(stage.get_submodule(starts[number - 1]), _Entry, place)
    if number < len(starts):
        _become(stage.get_submodule(starts[number]), _Exit, place)
    _become(stage, PrunedModel, place)
    assert isinstance(stage, PrunedModel)
    return stage


def held_by(seen: Observed, name: str, part: nn.Module) -> Collection[int]:
    """Returns the stages that hold a part: where it runs, and all where it has no weights.

    One that never runs stands on stage 0, so that the stages have all weights together.
    """
    if next(part.parameters(), None) is None:
        return range(len(seen.streams))
    return seen.stages_of.get(name, {0})


def _empty(part: nn.Module) -> None:
    """Drops what a part holds, and leaves the attributes that code outside may ask it for."""
    for held in (part._modules, part._parameters, part._buffers):
        held.clear()


def _drop_unused(container: nn.Module, name: str, number: int, seen: Observed) -> None:
    """Puts NaN for each parameter of a container's own that only other stages use."""
    for key, parameter in list(container.named_parameters(recurse=False)):
        path = f"{name}.{key}" if name else key
        if number not in seen.stages_of.get(path, {0}):
            delattr(container, key)
            container.register_buffer(key, _nothing(parameter, parameter.device), persistent=False)


def _become(module: nn.Module, kind: type[nn.Module], place: StagePlace) -> None:
    """Makes ``module`` one of ``kind`` too, as fully_shard does, before its own class."""
    own = type(module)
    module.__class__ = type(f"{own.__name__}", (kind, own), {"__module__": own.__module__})
    object.__setattr__(module, "stage_place", place)
