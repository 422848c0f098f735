"""Hooks into a training program that knows nothing of being recorded.

    model(batch)                                            ``forward``       0F0
    loss.backward()       torch.autograd.backward                             0B0
                          its end, waiting for what DDP or others launched    0ALL_REDUCE0
    optimizer.step()      torch's own hooks of every optimizer                OPTIMIZER
    DDP                                                     ``buckets``
    collectives, FSDP2's, DTensor's, DeepSpeed's            ``collectives``
    torch's pipelines                                       ``pipeline``
    next(loader)                                            ``loading``         data
    Megatron-core's                                         ``megatron``

Everything but the optimizer's counter is put in when a recorded step begins and taken out after
the last of those in a row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from serried.action import ActionKind
from serried.runtime.hooks.buckets import Buckets
from serried.runtime.hooks.collectives import Exchanges
from serried.runtime.hooks.forward import Forwards
from serried.runtime.hooks.loading import Loading
from serried.runtime.hooks.megatron import megatron_patches
from serried.runtime.hooks.pipeline import pipeline_patches
from serried.runtime.recorder.patches import Patch
from serried.runtime.recorder.torch_private import when_backward_is_done
from serried.runtime.recorder.tracer import Mark, Tracer

_B, _TAIL = ActionKind.B, ActionKind.ALL_REDUCE
LIBRARIES = frozenset(
    {"deepspeed.comm", "deepspeed.runtime.engine", "megatron.core.pipeline_parallel.schedules"}
)
"""Modules that are hooked once a program has loaded them."""


class ProgramHooks:
    """Owns all hooks of a session, and what they know of the step that runs."""

    def __init__(self, tracer: Tracer) -> None:
        self.has_stepped = self.are_in = False
        self._tracer, self._work = tracer, tracer.work
        self._work.when_launched = self._launched
        self._forwards = Forwards(tracer, self._found)
        self._buckets: Buckets | None = None
        self._backwards = 0
        self._has_launched = False
        """Whether something is on its way that the backward may have to wait for at its end."""
        self._computed: Mark | None = None
        """When the backward that runs had all gradients computed."""
        self._optimizer: tuple[int, Mark] | None = None
        self._exchanges = Exchanges(tracer)
        self.loading = Loading(tracer, lambda: self.has_stepped)
        self._patches: list[Patch] = []
        self._seen: frozenset[str] = frozenset()
        self._num_modules = 0
        self._counter = [
            register_optimizer_step_pre_hook(self._optimizer_begins),
            register_optimizer_step_post_hook(self._optimizer_ends),
        ]

    @property
    def num_stages(self) -> int:
        """Stages of the pipeline that was seen, 1 without one."""
        return self._work.num_stages

    def framework(self) -> str:
        """Returns the framework that the model seen belongs to."""
        root = self._forwards.root
        if root is not None and type(root).__module__.startswith("deepspeed."):
            return "deepspeed"
        return "fsdp" if root is not None and _is_sharded(root) else "custom"

    def put_in(self) -> None:
        """Puts all hooks into the program."""
        self._find_patches()
        self._num_modules = len(sys.modules)
        for patch in self._patches:
            patch.put_in()
        self.are_in = True
        self.loading.put_in()
        self._forwards.put_in()
        if self._buckets:
            self._buckets.put_in()

    def take_out(self) -> None:
        """Takes them out again, all but the counter of optimizer steps; at once or twice."""
        if not self.are_in:
            return
        self.are_in = False
        self.loading.take_out()
        for patch in reversed(self._patches):
            patch.take_out()
        self._forwards.take_out()
        if self._buckets:
            self._buckets.take_out()

    def close(self) -> None:
        """Takes out the counter too, and keeps what is still on its way."""
        if self._buckets:
            self._buckets.close()
        for handle in self._counter:
            handle.remove()

    def begin_step(self) -> None:
        """Starts to count a step's microbatches, and hooks what was loaded since the last."""
        # A module loaded since may hold functions to hook, as Megatron's do, and their number tells
        # of it at next to no cost.
        if self.are_in and len(sys.modules) != self._num_modules:
            held = self.loading.held
            self.take_out()
            self.put_in()
            self.loading.held = held
        self.has_stepped = False
        self._backwards, self._optimizer = 0, None
        self._work.reset()
        self._forwards.begin_step()
        if self._buckets:
            self._buckets.keep()
        self._exchanges.begin_step()

    def _found(self, root: nn.Module) -> None:
        self._buckets = Buckets(root, self._tracer)
        self._buckets.put_in()

    def _find_patches(self) -> None:
        """Finds what is to be patched, again when a library was loaded since."""
        seen = frozenset(LIBRARIES & sys.modules.keys())
        if self._patches and seen == self._seen:
            return
        self._seen = seen
        self._patches = [
            Patch(torch.autograd, "backward", self._timed_backward),
            *self._exchanges.patches(),
            *self.loading.patches(),
            *pipeline_patches(self._tracer),
            *megatron_patches(self._tracer),
        ]

    def _launched(self) -> None:
        if not self._has_launched:
            self._has_launched = when_backward_is_done(self._all_computed)

    def _all_computed(self) -> None:
        self._computed = self._tracer.mark()

    def _timed_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        work, tracer = self._work, self._tracer

        def backward(*args: Any, **options: Any) -> Any:
            # A backward inside another, as reentrant checkpointing runs it, lies in that one's
            # span, and those of a pipeline are timed by its own hooks.
            if work.is_pipeline or work.is_backward:
                return original(*args, **options)
            start, number = tracer.mark(), self._backwards
            work.is_backward, work.stage, work.microbatch = True, 0, number
            self._has_launched, self._computed = False, None
            try:
                return original(*args, **options)
            finally:
                work.is_backward, work.microbatch = False, -1
                self._backwards = number + 1
                if tracer.is_on:
                    end, computed = tracer.mark(), self._computed
                    tracer.keep(_B, start, end, 0, number)
                    if computed is not None:
                        tracer.keep(_TAIL, computed, end, 0, number)

        return backward

    def _optimizer_begins(self, optimizer: Any, args: Any, options: Any) -> None:
        if self._tracer.is_on and self._optimizer is None:
            self._optimizer = id(optimizer), self._tracer.mark()

    def _optimizer_ends(self, optimizer: Any, args: Any, options: Any) -> None:
        self.has_stepped = True
        begun = self._optimizer
        if begun and begun[0] == id(optimizer):
            self._optimizer = None
            self._tracer.keep_since(begun[1], ActionKind.OPTIMIZER)


def _is_sharded(root: nn.Module) -> bool:
    """Tells whether FSDP2 shards a module of ``root``."""
    return any(isinstance(each, dist.fsdp.FSDPModule) for each in root.modules())
