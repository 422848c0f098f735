"""Cuts any model into pipeline stages at the names of its layers, and proves that they add up.

    cut(model, ["layers.2", "layers.4"], tokens)    3 stages, which begin at the model's own
                                                    beginning, at layers.2 and at layers.4
    cut(model, 3, tokens)                           as even as can be, longer ones first
    cut(model, [2, 2, 4], tokens)                   by numbers of layers

The model must hand one tensor from each stage to the next, as the first argument of the layer
where that begins. Whatever else a layer takes, each stage computes itself, so it may depend on
shapes and positions but on no value of an earlier stage. Before any rank trains, every stage
runs on what the whole model gave it, and must return what the whole model did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from serried.errors import InputError, listed
from serried.runtime.job.model import stage_layers
from serried.runtime.stages.observed import (
    Observed,
    at_rest,
    observe,
    on_meta,
    parts_of,
    require_order,
)
from serried.runtime.stages.pruned import PrunedModel, held_by, output_tensor, pruned


@dataclass(frozen=True, eq=False)
class ModelCut:
    """Holds a model and where its stages begin; ``stage`` makes each of them.

    >>> model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(5)))
    >>> halves = cut(model, 2, torch.ones(1, 4))
    >>> halves.starts, halves.parts(0), halves.parts(1)
    (('3',), ('0', '1', '2'), ('3', '4'))
    >>> x = torch.randn(3, 4)
    >>> bool((halves.stage(1)(halves.stage(0)(x)) == model(x)).all())
    True
    """

    model: nn.Module
    starts: tuple[str, ...]
    """Names of the parts at which all stages but the first begin."""
    inputs: tuple[Tensor, ...]
    """What each stage is given, on the meta device."""
    output: Tensor
    """What the last stage returns, on the meta device."""
    taken: Callable[[Any], Any]
    """Takes the tensor out of what the model returns."""
    seen: Observed

    @property
    def num_stages(self) -> int:
        """How many stages there are."""
        return len(self.starts) + 1

    @cached_property
    def tied(self) -> Mapping[str, tuple[int, ...]]:
        """The stages that hold each weight which several hold, by the first of its names.

        Each has a copy; their gradients are summed, so that the copies stay equal.
        """
        stages: dict[int, set[int]] = {}
        names: dict[int, str] = {}
        for name, parameter in self.model.named_parameters(remove_duplicate=False):
            names.setdefault(id(parameter), name)
            stages.setdefault(id(parameter), set()).update(self._stages_of(name))
        return {names[key]: tuple(sorted(held)) for key, held in stages.items() if len(held) > 1}

    def parts(self, number: int) -> tuple[str, ...]:
        """Returns the names of what stage ``number`` holds of the model, in its order."""
        parts = parts_of(self.model, self.starts)
        return tuple(
            name for name, part in parts.items() if number in held_by(self.seen, name, part)
        )

    def stage(self, number: int) -> PrunedModel:
        """Returns stage ``number``, whose parameters are the model's own, under its names.

        Of a tied weight the first stage has the model's own, and each other one a copy.
        """
        stage = pruned(self.model, self.starts, number, self.seen, self.taken)
        for name, stages in self.tied.items():
            if number in stages[1:]:
                weight = self.model.get_parameter(name)
                copied = nn.Parameter(weight.detach().clone(), weight.requires_grad)
                for each, parameter in list(stage.named_parameters(remove_duplicate=False)):
                    if parameter is weight:
                        owner, _, key = each.rpartition(".")
                        setattr(stage.get_submodule(owner), key, copied)
        return stage

    def _stages_of(self, parameter: str) -> set[int]:
        """Returns the stages that hold the parameter of that name."""
        for name, part in parts_of(self.model, self.starts).items():
            if parameter.startswith(f"{name}."):
                return set(held_by(self.seen, name, part))
        return self.seen.stages_of.get(parameter, {0})


def cut(
    model: nn.Module,
    at: int | Sequence[int] | Sequence[str],
    example: Tensor,
    *,
    layers: str | None = None,
    output: Callable[[Any], Any] | None = None,
) -> ModelCut:
    """Cuts ``model`` into stages and proves that together they compute what it does.

    ``at`` names the layers at which all stages but the first begin, or gives each stage's number
    of layers, or how many stages there are to be; ``layers`` then names the list of layers, which
    is else the longest. ``example`` is one microbatch of the model's input, for shapes and for the
    proof; a model on the meta device is cut without the proof. ``output`` takes the tensor for the
    loss out of what the model returns, where that is none itself.

    Raises InputError where the model cannot be cut there, with names at which it can.
    """
    name = type(model).__name__
    starts = tuple(_starts(model, at, layers))
    parts = parts_of(model, starts)
    for start in starts:
        if start not in parts:
            raise _unknown(model, start)
    parameter = next(model.parameters(), None)
    if parameter is not None:
        example = example.to(parameter.device)
    seen = observe(model, starts, example)
    # Who names the model's very first part too says the same with one name more.
    if starts and seen.order and seen.order[0] == starts[0]:
        return cut(model, starts[1:], example, output=output)
    require_order(seen, starts, name)
    _require_one_stage_each(seen, parts)
    taken = output or _itself
    returned = output_tensor(seen.output, taken, name)
    made = ModelCut(
        model, starts, tuple(on_meta(each) for each in seen.streams), on_meta(returned), taken, seen
    )
    if starts and not _holds_meta(model):
        _prove(made, [*seen.streams[1:], returned])
    seen.output = None
    seen.streams[:] = made.inputs
    seen.others.clear()
    return made


def _itself(returned: Any) -> Any:
    return returned


def _holds_meta(model: nn.Module) -> bool:
    return any(each.is_meta for each in [*model.parameters(), *model.buffers()])


def layers_of(model: nn.Module, layers: str | None = None) -> list[str]:
    """Returns the names of a model's layers: the members of its longest list, or of ``layers``.

    >>> layers_of(nn.ModuleDict({"blocks": nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.ReLU()])}))
    ['blocks.0', 'blocks.1', 'blocks.2']

    Raises InputError where there is no such list.
    """
    lists = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList | nn.ModuleDict | nn.Sequential) and len(module)
    }
    if layers is None:
        layers = max(lists, key=lambda name: len(lists[name]), default=None)
    name = type(model).__name__
    if layers is None:
        raise InputError(
            "{model} has no list of layers to count; name the layers at which stages begin",
            model=name,
        )
    if layers not in lists:
        raise InputError(
            "{model} has no list of layers {asked}; lists that it has: {names}",
            model=name,
            asked=layers,
            names=listed(lists),
        )
    return [f"{layers}.{key}" if layers else key for key, _ in lists[layers].named_children()]


def _starts(
    model: nn.Module, at: int | Sequence[int] | Sequence[str], layers: str | None
) -> list[str]:
    """Returns the names at which all stages but the first begin."""
    if isinstance(at, str):
        return [at]
    if not isinstance(at, int) and any(isinstance(each, str) for each in at):
        return [str(each) for each in at]
    if at == 1 or not at:
        return []
    names = layers_of(model, layers)
    where = names[0].rpartition(".")[0] or type(model).__name__
    counts = [int(each) for each in at] if not isinstance(at, int) else []
    num_stages = at if isinstance(at, int) else len(counts)
    if num_stages > len(names) or num_stages < 1:
        raise InputError(
            "{stages} stages cannot be cut from the {layers} layers of {where}; take 1 to {layers}",
            stages=num_stages,
            layers=len(names),
            where=where,
        )
    if isinstance(at, int):
        return [names[held.start] for held in stage_layers(len(names), at)[1:]]
    _require_all_layers(counts, len(names), where)
    return [names[place] for place in accumulate(counts[:-1])]


def _require_all_layers(counts: Sequence[int], num_layers: int, where: str) -> None:
    """Raises InputError unless stages of so many layers each hold all there are."""
    if sum(counts) != num_layers or min(counts) < 1:
        even = [len(held) for held in stage_layers(num_layers, len(counts))]
        raise InputError(
            "stages of {counts} layers are {asked} in all, and {where} has {layers}; numbers that "
            "fit: {even}",
            counts=listed(counts),
            asked=sum(counts),
            where=where,
            layers=num_layers,
            even=listed(even),
        )


def _unknown(model: nn.Module, name: str) -> InputError:
    """Returns the refusal of a name that no part has, with those that stand beside it."""
    modules = dict(model.named_modules())
    above = name.rpartition(".")[0]
    while above not in modules:
        above = above.rpartition(".")[0]
    prefix = f"{above}." if above else ""
    beside = [prefix + key for key, _ in modules[above].named_children()]
    return InputError(
        "{model} has no part {name} to begin a stage at; parts there: {names}",
        model=type(model).__name__,
        name=name,
        names=listed(beside),
    )


def _require_one_stage_each(seen: Observed, parts: Mapping[str, nn.Module]) -> None:
    for name, part in parts.items():
        stages = held_by(seen, name, part)
        if next(part.parameters(), None) is not None and len(stages) > 1:
            raise InputError(
                "{name} has weights and runs in stages {stages}; a part runs on one stage, so cut "
                "where all its runs are on one side, or let parts of their own share the weight",
                name=name,
                stages=listed(sorted(stages), last="and"),
            )


def _prove(made: ModelCut, expected: Sequence[Tensor]) -> None:
    """Raises InputError unless each stage, given what the model gave, returns what it did."""
    seen = made.seen
    for number in range(made.num_stages):
        stage = made.stage(number)
        with at_rest(stage):
            found = stage(seen.streams[number])
        start = made.starts[number - 1] if number else ""
        for argument, wanted in seen.others[number].items():
            if not _agree(stage.stage_place.others.get(argument), wanted):
                raise InputError(
                    "{name} takes more than one tensor from the stage before: its argument "
                    "{argument} too; a stage receives one, so cut at a layer that takes one",
                    name=start,
                    argument=argument,
                )
        if not _agree(found, expected[number]):
            raise InputError(
                "stage {number}, from {start}, needs a tensor of an earlier stage beside the one "
                "that it is given, as a skip connection does; cut where only one is handed on",
                number=number,
                start=start or type(made.model).__name__,
            )


def _agree(found: Tensor | None, wanted: Tensor) -> bool:
    """Tells whether two tensors are equal within the rounding of their type."""
    if found is None or found.shape != wanted.shape:
        return False
    try:
        torch.testing.assert_close(found, wanted, equal_nan=False)
    except AssertionError:
        return False
    return True
