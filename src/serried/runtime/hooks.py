"""Hooks of the recorder into a training program that knows nothing of it.

    model(batch)          the outermost module in training that has parameters    0F0
    loss.backward()       torch.autograd.backward                                 0B0
    optimizer.step()      torch's own hooks of every optimizer                    OPTIMIZER
    DDP, FSDP2                                              ``hooks_sharding``
    collectives, DTensor's and DeepSpeed's too              ``hooks_exchange``
    torch's pipelines                                       ``hooks_pipeline``
    Megatron-core's                                         ``hooks_megatron``

The first forward of a recorded step finds the outermost module, whose own hooks then do, for
hooks on all modules would slow each of them. Everything but the optimizer's counter is put in
when a recorded step begins and taken out after it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from serried.runtime.hooks_exchange import Exchanges
from serried.runtime.hooks_megatron import megatron_patches
from serried.runtime.hooks_pipeline import pipeline_patches
from serried.runtime.hooks_sharding import fsdp_patches, hook_ddp, is_sharded
from serried.runtime.patches import Patch, Work
from serried.runtime.recorder_clock import Mark
from serried.span import ActionKind

if TYPE_CHECKING:
    from serried.runtime.recorder import StepRecorder

LIBRARIES = frozenset(
    {"deepspeed.comm", "deepspeed.runtime.engine", "megatron.core.pipeline_parallel.schedules"}
)
"""Modules that are hooked once a program has loaded them."""


class Hooks:
    """Owns all hooks of one recorder, and what they know of the step that runs."""

    def __init__(self, recorder: StepRecorder) -> None:
        self.has_stepped = False
        self._recorder = recorder
        self._work = Work()
        self._forwards = self._backwards = 0
        self._root: nn.Module | None = None
        self._starts: dict[str, Any] = {}
        self._handles: list[RemovableHandle] = []
        self._exchanges = Exchanges(recorder.mark, self._keep_exchange, self._work)
        self._patches: list[Patch] = []
        self._seen: frozenset[str] = frozenset()
        self._counter = [
            register_optimizer_step_pre_hook(self._optimizer_begins),
            register_optimizer_step_post_hook(self._optimizer_ends),
        ]

    def framework(self) -> str:
        """Returns the framework that the model seen belongs to."""
        if self._root is not None and type(self._root).__module__.startswith("deepspeed."):
            return "deepspeed"
        return "fsdp" if self._root is not None and is_sharded(self._root) else "custom"

    def put_in(self) -> None:
        """Puts all hooks into the program."""
        self._find_patches()
        for patch in self._patches:
            patch.put_in()
        if self._root is None:
            self._handles = [
                register_module_forward_pre_hook(self._find_root),
            ]
        else:
            self._hook_root(self._root)

    def take_out(self) -> None:
        """Takes them out again, all but the counter of optimizer steps."""
        for patch in reversed(self._patches):
            patch.take_out()
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def close(self) -> None:
        """Takes out the counter too."""
        for handle in self._counter:
            handle.remove()

    def begin_step(self) -> None:
        """Starts to count a step's microbatches."""
        self.has_stepped = False
        self._forwards = self._backwards = 0
        self._starts.clear()
        self._work.reset()
        self._exchanges.begin_step()

    def _find_patches(self) -> None:
        """Finds what is to be patched, again when a library was loaded since."""
        seen = frozenset(LIBRARIES & sys.modules.keys())
        if self._patches and seen == self._seen:
            return
        self._seen = seen
        self._patches = [
            Patch(torch.autograd, "backward", self._timed_backward),
            *self._exchanges.patches(),
            *fsdp_patches(self._exchanges),
            *pipeline_patches(self._recorder, self._work),
            *megatron_patches(self._recorder, self._work),
        ]

    def _keep_exchange(self, kind: ActionKind, start: Mark, end: Mark) -> None:
        if self._recorder.is_on:
            work = self._work
            self._recorder.sink.keep(kind, start, end, work.stage, work.microbatch)

    def _find_root(self, module: nn.Module, args: Any) -> None:
        """Takes the first module that trains as the model, and lets all others go."""
        trains = module.training and torch.is_grad_enabled() and not self._work.is_pipeline
        if trains and any(each.requires_grad for each in module.parameters()):
            for handle in self._handles:
                handle.remove()
            self._root = module
            self._hook_root(module)
            self._forward_begins(module, args)

    def _hook_root(self, root: nn.Module) -> None:
        hook_ddp(root, self._recorder)
        self._handles = [
            root.register_forward_pre_hook(self._forward_begins, prepend=True),
            root.register_forward_hook(self._forward_ends),
        ]

    def _forward_begins(self, module: nn.Module, args: Any) -> None:
        if module.training and torch.is_grad_enabled() and not self._work.is_pipeline:
            self._work.begin(0, self._forwards)
            self._starts.setdefault("forward", self._recorder.mark())

    def _forward_ends(self, module: nn.Module, args: Any, output: Any) -> None:
        start = self._starts.pop("forward", None)
        if start is not None:
            self._work.end()
            self._recorder.add(ActionKind.F, start, 0, self._forwards)
            self._forwards += 1

    def _timed_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def backward(*args: Any, **options: Any) -> Any:
            if self._work.is_pipeline or self._work.is_backward:
                return original(*args, **options)
            start = self._recorder.mark()
            self._work.is_backward = True
            self._work.begin(0, self._backwards)
            try:
                return original(*args, **options)
            finally:
                self._work.is_backward = False
                self._work.end()
                self._recorder.add(ActionKind.B, start, 0, self._backwards)
                self._backwards += 1

        return backward

    def _optimizer_begins(self, optimizer: Any, args: Any, options: Any) -> None:
        if self._recorder.is_on:
            self._starts.setdefault("optimizer", (id(optimizer), self._recorder.mark()))

    def _optimizer_ends(self, optimizer: Any, args: Any, options: Any) -> None:
        self.has_stepped = True
        begun = self._starts.get("optimizer")
        if begun and begun[0] == id(optimizer):
            del self._starts["optimizer"]
            self._recorder.add(ActionKind.OPTIMIZER, begun[1])
