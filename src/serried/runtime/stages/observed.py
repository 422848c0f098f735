"""One forward of a whole model, watched: which parts run in which order, on what, giving what.

    model            parts, at the names where stages begin        stage
    ├── embed        embed                                         0
    ├── layers
    │   ├── 0        layers.0                                      0
    │   └── 1        layers.1   <- a stage begins                  1
    ├── rotary       rotary     no weights: runs on every stage    0 1
    └── head         head                                          1

A part is a module that is no ancestor of one where a stage begins; all parts together are the
model, but for what its containers hold themselves, such as a parameter that their code adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from serried.errors import InputError, listed


@dataclass
class Observed:
    """Holds what a forward of the whole model showed."""

    order: list[str] = field(default_factory=list)
    """Names of the parts as they were called, again where they were."""
    stages_of: dict[str, set[int]] = field(default_factory=dict)
    """The stages in which each part was called, and each parameter of a container used."""
    gave: dict[str, Any] = field(default_factory=dict)
    """What each part returned last, with tensors on the meta device."""
    streams: list[Tensor] = field(default_factory=list)
    """What each stage is given: the model's input, then what goes into the parts where stages
    begin."""
    others: list[dict[str, Tensor]] = field(default_factory=list)
    """The other tensors that those parts were given, by argument; none for the model itself."""
    output: Any = None
    """What the model returned."""


def parts_of(model: nn.Module, starts: Sequence[str]) -> dict[str, nn.Module]:
    """Returns the parts that ``model`` falls into where stages begin at ``starts``.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))
    >>> list(parts_of(model, ["1.1"])), list(parts_of(model, []))
    (['0', '1.0', '1.1'], ['0', '1'])
    """
    above = {name.rpartition(".")[0] for name in starts} | {""}
    for name in list(above):
        while name := name.rpartition(".")[0]:
            above.add(name)
    return dict(_descended("", model, above))


def _descended(name: str, module: nn.Module, above: set[str]) -> Iterator[tuple[str, nn.Module]]:
    for child_name, child in module.named_children():
        path = f"{name}.{child_name}" if name else child_name
        if path in above:
            yield from _descended(path, child, above)
        else:
            yield path, child


def containers_of(model: nn.Module, starts: Sequence[str]) -> dict[str, nn.Module]:
    """Returns the modules that hold the parts: the model, and what is between it and them."""
    above = {"".join(name.rpartition(".")[:1]) for name in parts_of(model, starts)} | {""}
    for name in list(above):
        while name := name.rpartition(".")[0]:
            above.add(name)
    return {name: model.get_submodule(name) for name in sorted(above)}


def observe(model: nn.Module, starts: Sequence[str], example: Tensor) -> Observed:
    """Runs ``model`` on ``example`` without gradients or dropout, and returns what it did.

    Raises InputError where it does not take one tensor, or a part at which a stage begins none.
    """
    seen = Observed(streams=[example], others=[{}])
    parts = parts_of(model, starts)
    hooks = []
    for name, part in parts.items():
        enter = partial(_enter, seen, name, is_start=name in starts)
        hooks.append(part.register_forward_pre_hook(enter, with_kwargs=True))
        hooks.append(part.register_forward_hook(partial(_leave, seen, name)))
    owned = {
        id(parameter): f"{name}.{key}" if name else key
        for name, container in containers_of(model, starts).items()
        for key, parameter in container.named_parameters(recurse=False)
    }
    try:
        with at_rest(model), _Uses(seen, owned):
            seen.output = model(example)
    except TypeError as error:
        raise InputError(
            "{model} is not called with one tensor: {reason}; give a module whose forward takes "
            "one and calls it",
            model=type(model).__name__,
            reason=error,
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
    return seen


@contextmanager
def at_rest(model: nn.Module) -> Iterator[None]:
    """Runs its body without gradients or dropout, and leaves modules and generators as before."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng():
            yield
    finally:
        for module in training:
            module.training = True


def stream_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int | str | None:
    """Returns which argument the stream is: the first tensor, positional before named."""
    arguments: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    return next((place for place, value in arguments if isinstance(value, Tensor)), None)


def other_tensors(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], stream: int | str
) -> dict[str, Tensor]:
    """Returns the tensors among the arguments beside the stream, by argument and place within."""
    found: dict[str, Tensor] = {}
    for place, value in [*enumerate(args), *kwargs.items()]:
        if place != stream:
            found |= _tensors(str(place), value)
    return found


def _tensors(name: str, value: Any) -> dict[str, Tensor]:
    if isinstance(value, Tensor):
        return {name: value}
    if isinstance(value, dict):
        items = list(value.items())
    else:
        items = list(enumerate(value)) if isinstance(value, list | tuple) else []
    return {
        key: tensor
        for inner, each in items
        for key, tensor in _tensors(f"{name}[{inner}]", each).items()
    }


def like(value: Any, of: Any) -> Any:
    """Returns ``value`` with ``of(tensor)`` in place of each tensor in its tuples and dicts."""
    if isinstance(value, Tensor):
        return of(value)
    if isinstance(value, dict):
        return {key: like(each, of) for key, each in value.items()}
    if isinstance(value, list | tuple):
        made = [like(each, of) for each in value]
        return made if isinstance(value, list) else tuple(made)
    return value


def on_meta(tensor: Tensor) -> Tensor:
    """Returns a tensor of the same shape and type that holds nothing."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")


def _enter(
    seen: Observed,
    name: str,
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    is_start: bool,
) -> None:
    if is_start and name not in seen.order:
        place = stream_of(args, kwargs)
        if place is None:
            raise InputError(
                "{name} is given no tensor, so that no stage can begin there; cut at a part that "
                "takes the hidden states first",
                name=name,
            )
        stream = args[place] if isinstance(place, int) else kwargs[place]
        seen.streams.append(stream.clone())  # later parts may change it in place
        seen.others.append(other_tensors(args, kwargs, place))
    seen.order.append(name)
    seen.stages_of.setdefault(name, set()).add(len(seen.streams) - 1)


def _leave(seen: Observed, name: str, module: nn.Module, args: Any, output: Any) -> None:
    seen.gave[name] = like(output, on_meta)


class _Uses(TorchFunctionMode):
    """Notes in which stage the code of containers uses a parameter that they hold themselves."""

    def __init__(self, seen: Observed, owned: Mapping[int, str]) -> None:
        super().__init__()
        self._seen, self._owned = seen, owned

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # A look at a shape or a device is no use of the values.
        if self._owned and getattr(func, "__name__", "") != "__get__":
            stage = len(self._seen.streams) - 1
            for tensor in _tensors("", [*args, *(kwargs or {}).values()]).values():
                if id(tensor) in self._owned:
                    self._seen.stages_of.setdefault(self._owned[id(tensor)], set()).add(stage)
        return func(*args, **(kwargs or {}))


def require_order(seen: Observed, starts: Sequence[str], model: str) -> None:
    """Raises InputError unless each of ``starts`` ran once, in the order given."""
    for name in starts:
        count = seen.order.count(name)
        if count != 1:
            runs = [each for each in dict.fromkeys(seen.order) if seen.order.count(each) == 1]
            raise InputError(
                "{name} runs {count} times in a forward of {model}, so that no stage can begin "
                "there; parts that run once: {names}",
                name=name,
                count=count,
                model=model,
                names=listed(runs),
            )
    ran = [name for name in seen.order if name in starts]
    if ran != list(starts):
        raise InputError(
            "{model} runs its parts in another order than the stages are named in: {asked}; name "
            "them as it runs them: {ran}",
            model=model,
            asked=listed(starts),
            ran=listed(ran),
        )
