"""Hooks of the recorder into a training program that knows nothing of it.

    model(batch)                                            ``hooks_forward``     0F0
    loss.backward()       torch.autograd.backward                                 0B0
                          its end, waiting for what DDP or others launched in it  0ALL_REDUCE0
    optimizer.step()      torch's own hooks of every optimizer                    OPTIMIZER
    DDP, FSDP2                                              ``hooks_sharding``
    collectives, DTensor's and DeepSpeed's too              ``hooks_exchange``
    torch's pipelines                                       ``hooks_pipeline``
    Megatron-core's                                         ``hooks_megatron``

Everything but the optimizer's counter is put in when a recorded step begins and taken out after
the last of those in a row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from serried.action import ActionKind
from serried.runtime.hooks.collectives import Exchanges
from serried.runtime.hooks.forward import Forwards
from serried.runtime.hooks.megatron import megatron_patches
from serried.runtime.hooks.pipeline import pipeline_patches
from serried.runtime.hooks.sharding import Buckets, fsdp_patches, is_sharded
from serried.runtime.recorder.clock import Mark
from serried.runtime.recorder.patches import Patch, Work
from serried.runtime.recorder.torch_private import when_backward_is_done

if TYPE_CHECKING:
    from serried.runtime.recording.session import StepRecorder


_B, _TAIL = ActionKind.B, ActionKind.ALL_REDUCE
LIBRARIES = frozenset(
    {"deepspeed.comm", "deepspeed.runtime.engine", "megatron.core.pipeline_parallel.schedules"}
)
"""Modules that are hooked once a program has loaded them."""


class Hooks:
    """Owns all hooks of one recorder, and what they know of the step that runs."""

    def __init__(self, recorder: StepRecorder) -> None:
        self.has_stepped = self.are_in = False
        self._recorder = recorder
        self._work = Work()
        self._sink = recorder.sink
        self._work.when_launched = self._launched
        self._forwards = Forwards(recorder, self._work, self._found)
        self._buckets: Buckets | None = None
        self._backwards = 0
        self._has_launched = False
        """Whether something is on its way that the backward may have to wait for at its end."""
        self._computed: Mark | None = None
        """When the backward that runs had all gradients computed."""
        self._optimizer: tuple[int, Mark] | None = None
        self._exchanges = Exchanges(recorder.mark, self._keep_exchange, self._work)
        self._patches: list[Patch] = []
        self._seen: frozenset[str] = frozenset()
        self._num_modules = 0
        self._counter = [
            register_optimizer_step_pre_hook(self._optimizer_begins),
            register_optimizer_step_post_hook(self._optimizer_ends),
        ]

    def framework(self) -> str:
        """Returns the framework that the model seen belongs to."""
        root = self._forwards.root
        if root is not None and type(root).__module__.startswith("deepspeed."):
            return "deepspeed"
        return "fsdp" if root is not None and is_sharded(root) else "custom"

    def put_in(self) -> None:
        """Puts all hooks into the program."""
        self._find_patches()
        self._num_modules = len(sys.modules)
        for patch in self._patches:
            patch.put_in()
        self.are_in = True
        self._forwards.put_in()
        if self._buckets:
            self._buckets.put_in()

    def take_out(self) -> None:
        """Takes them out again, all but the counter of optimizer steps; at once or twice."""
        if not self.are_in:
            return
        self.are_in = False
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
        if self.are_in and len(sys.modules) != self._num_modules:
            self.take_out()
            self.put_in()
        self.has_stepped = False
        self._backwards, self._optimizer = 0, None
        self._work.reset()
        self._forwards.begin_step()
        if self._buckets:
            self._buckets.keep()
        self._exchanges.begin_step()

    def _found(self, root: nn.Module) -> None:
        self._buckets = Buckets(root, self._recorder, self._work)
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
            *fsdp_patches(self._exchanges),
            *pipeline_patches(self._recorder, self._work),
            *megatron_patches(self._recorder, self._work),
        ]

    def _keep_exchange(self, kind: ActionKind, start: Mark, end: Mark) -> None:
        recorder, work = self._recorder, self._work
        if recorder.is_on:
            recorder.sink.keep(kind, start, end, work.stage, work.microbatch)

    def _launched(self) -> None:
        if not self._has_launched:
            self._has_launched = when_backward_is_done(self._all_computed)

    def _all_computed(self) -> None:
        self._computed = self._sink.mark()

    def _timed_backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        work, sink, recorder = self._work, self._sink, self._recorder

        def backward(*args: Any, **options: Any) -> Any:
            if work.is_pipeline or work.is_backward:
                return original(*args, **options)
            start, number = sink.mark(), self._backwards
            work.is_backward, work.stage, work.microbatch = True, 0, number
            self._has_launched, self._computed = False, None
            try:
                return original(*args, **options)
            finally:
                work.is_backward, work.microbatch = False, -1
                self._backwards = number + 1
                if recorder.is_on:
                    end, computed = sink.mark(), self._computed
                    sink.keep(_B, start, end, 0, number)
                    if computed is not None:
                        sink.keep(_TAIL, computed, end, 0, number)

        return backward

    def _optimizer_begins(self, optimizer: Any, args: Any, options: Any) -> None:
        if self._recorder.is_on and self._optimizer is None:
            self._optimizer = id(optimizer), self._sink.mark()

    def _optimizer_ends(self, optimizer: Any, args: Any, options: Any) -> None:
        self.has_stepped = True
        begun = self._optimizer
        if begun and begun[0] == id(optimizer):
            self._optimizer = None
            self._recorder.add(ActionKind.OPTIMIZER, begun[1])
