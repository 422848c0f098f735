"""Hooks around the forwards of the model: the outermost module in training that has parameters.

    not known yet        a hook of all modules, until the first of them is called     slow
    known                its ``forward`` wrapped, as an attribute of its own          fast
    has hooks, compiled  hooks of its own: they begin before the others, as FSDP2's,
                         and compiled code takes another ``forward`` for a new model

A module with any hook is called by a longer way through torch, a cost of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils.hooks import RemovableHandle

from serried.action import ActionKind
from serried.runtime.recorder.tracer import Mark, Tracer

_F = ActionKind.F
_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class NoHooks:
    """Stands for the hooks of a recorder in a model that was read back from a file."""

    def _begins(self, module: nn.Module, args: Any) -> None:
        pass

    def _ends(self, module: nn.Module, args: Any, output: Any) -> None:
        pass


class Forwards:
    """Finds the model, which ``found`` is told, and times its forwards as microbatches 0, 1, …"""

    def __init__(self, tracer: Tracer, found: Callable[[nn.Module], None]) -> None:
        self.root: nn.Module | None = None
        self._found = found
        self._tracer, self._work = tracer, tracer.work
        self._count = 0
        self._start: Mark | None = None
        self._handles: list[RemovableHandle] = []
        self._ours: MethodType | None = None
        self._is_new = False
        """Whether the model was found since the last step began."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Forwards:
        """Returns these: a copy of a model has its hooks, and they know their own model."""
        return self

    def __reduce__(self) -> tuple[type[NoHooks], tuple[()]]:
        """Leaves a model that is saved whole with hooks that do nothing."""
        return NoHooks, ()

    def put_in(self) -> None:
        """Hooks the model, or all modules until it is known."""
        if self.root is None:
            self._handles = [register_module_forward_pre_hook(self._find_root)]
        elif _is_plain(self.root):
            self._ours = MethodType(self._timed(type(self.root).forward), self.root)
            vars(self.root)["forward"] = self._ours
        else:
            self._hook(self.root)

    def take_out(self) -> None:
        """Gives the model back as it was."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self._ours and vars(self.root).get("forward") is self._ours:
            del vars(self.root)["forward"]
        self._ours = None

    def begin_step(self) -> None:
        """Counts from 0 again, and hooks the model for good that the last step found."""
        self._count, self._start = 0, None
        if self._is_new and self._handles:
            self.take_out()
            self.put_in()
        self._is_new = False

    def _find_root(self, module: nn.Module, args: Any) -> None:
        """Takes the first module that trains as the model, and lets all others go."""
        trains = module.training and torch.is_grad_enabled() and not self._work.is_pipeline
        trains = trains and self._tracer.is_on
        if trains and any(each.requires_grad for each in module.parameters()):
            self.take_out()
            self.root, self._is_new = module, True
            self._hook(module)  # torch has looked up its forward by now
            self._found(module)
            self._begins(module, args)

    def _hook(self, root: nn.Module) -> None:
        self._handles = [
            root.register_forward_pre_hook(self._begins, prepend=True),
            root.register_forward_hook(self._ends),
        ]

    # What follows stands in every microbatch, behind computation that has emptied the processor's
    # caches: each further function or object costs far more there than in a loop of its own.

    def _timed(self, original: Any) -> Any:
        """Returns a ``forward`` of the model's; of a copy of the model it is its own."""
        root, work, tracer = self.root, self._work, self._tracer
        is_grad_enabled = torch.is_grad_enabled

        @wraps(original)  # libraries read a forward's signature
        def forward(module: nn.Module, *args: Any, **options: Any) -> Any:
            if (
                module is not root
                or not tracer.is_on
                or work.is_pipeline
                or self._start is not None
                or not module.training
                or not is_grad_enabled()
            ):
                return original(module, *args, **options)
            number = self._count
            work.stage, work.microbatch = 0, number
            self._start = start = tracer.mark()
            try:
                output = original(module, *args, **options)
            except BaseException:
                self._start, work.microbatch = None, -1
                raise
            self._start, work.microbatch, self._count = None, -1, number + 1
            tracer.keep(_F, start, tracer.mark(), 0, number)
            return output

        return forward

    def _begins(self, module: nn.Module, args: Any) -> None:
        work = self._work
        # Only a training forward of the whole model counts: not one of a part of it, of an
        # evaluation, or in a pipeline, whose own hooks time it.
        if (
            module is self.root
            and module.training
            and not work.is_pipeline
            and torch.is_grad_enabled()
        ):
            work.stage, work.microbatch = 0, self._count
            if self._start is None:
                self._start = self._tracer.mark()

    def _ends(self, module: nn.Module, args: Any, output: Any) -> None:
        start = self._start
        if start is not None and module is self.root:
            self._start, self._work.microbatch = None, -1
            tracer = self._tracer
            if tracer.is_on:
                tracer.keep(_F, start, tracer.mark(), 0, self._count)
            self._count += 1


def _is_plain(root: nn.Module) -> bool:
    """Tells whether nothing but the model's class says what its call does."""
    return not (
        any(getattr(root, name, None) for name in _HOOKS)
        or "forward" in vars(root)
        or getattr(root, "_compiled_call_impl", None) is not None
        or not inspect.isfunction(getattr(type(root), "forward", None))
    )
