"""Pipeline stages that record their work, each any module that maps one tensor to one.

torch's own runtime executes the actions that ``serried.pipeline`` gives; it derives the
messages, and each stage notes when each piece of its work began and ended:

    RECV_F ├─wait─┤ F ├─compute─┤ SEND_F ├post┤  …  RECV_B ├─wait─┤ B ├─compute─┤ SEND_B
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.distributed.pipelining import PipelineStage

from serried.action import ActionKind
from serried.runtime.job.settings import TrainSettings
from serried.runtime.model.emulate import EmulatedStage
from serried.runtime.model.held_stage import HeldStage
from serried.runtime.model.precision import compute_dtype
from serried.runtime.recorder.tracer import Mark
from serried.runtime.recording.training import TrainingRecorder
from serried.runtime.training.buffers import GradientBuffer
from serried.runtime.training.mesh import TrainMesh
from serried.runtime.training.schedule_runtime import Messages


class RecordedStage(PipelineStage):
    """Runs a stage under torch's schedule runtime and records what it does."""

    def __init__(
        self,
        module: nn.Module,
        number: int,
        num_stages: int,
        mesh: TrainMesh,
        recorder: TrainingRecorder,
        *,
        shapes: tuple[Tensor, Tensor],
        loss: Callable[..., Tensor],
        buffers: Sequence[GradientBuffer] = (),
    ) -> None:
        """Prepares stage ``number`` of ``num_stages``.

        ``shapes`` are a microbatch's input and output of it, on the meta device. ``loss`` takes
        the last stage's output and the targets; where it is measured on held out text, the word
        ``sum`` too. Gradients that stand in ``buffers`` are summed from there.
        """
        # With example tensors at both ends torch infers nothing by running the stage.
        super().__init__(
            module,
            number,
            num_stages,
            mesh.device,
            input_args=shapes[0],
            output_args=shapes[1],
            group=mesh.group("pp"),
        )
        self.recorder = recorder
        self.loss_factor = 1.0
        """What a microbatch's loss is multiplied by: loss scale / all that it is a mean over."""
        self.is_validating = False
        """Whether losses are sums, of held out text, that nothing is learned from."""
        self.buffers = buffers
        self._loss = loss
        self._forward_from: tuple[Mark, int] = (0, 0)
        self._begun_ns = 0

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Computes a forward; the last stage's ends with its loss."""
        start = self._begin(fwd_chunk_id)
        output = super().forward_one_chunk(fwd_chunk_id, *args, **kwargs)
        self._emulate(ActionKind.F)
        if self.is_last:
            self._forward_from = (start, fwd_chunk_id)
        else:
            self._end(start, ActionKind.F, fwd_chunk_id)
        return output

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Computes the loss, times ``loss_factor``, of the microbatch that was just forwarded."""
        if self.is_validating:
            return self._loss(output, target, "sum")
        loss = self._loss(output, target) * self.loss_factor
        start, microbatch = self._forward_from
        self._end(start, ActionKind.F, microbatch)
        return loss

    def backward_one_chunk(
        self,
        bwd_chunk_id: int,
        loss: Any = None,
        full_backward: bool = True,
        last_backward: Any = False,
    ) -> None:
        """Computes a full backward, or its input half."""
        start = self._begin(bwd_chunk_id)
        kind = ActionKind.B if full_backward else ActionKind.I
        super().backward_one_chunk(bwd_chunk_id, loss, full_backward, last_backward)
        self._emulate(kind)
        self._end(start, kind, bwd_chunk_id)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """Computes a backward's weight half."""
        start = self._begin(bwd_chunk_id)
        super().backward_weight_one_chunk(bwd_chunk_id, last_backward)
        self._emulate(ActionKind.W)
        self._end(start, ActionKind.W, bwd_chunk_id)

    def backward_maybe_with_nosync(
        self, backward_type: str, bwd_kwargs: dict[str, Any], last_backward: bool = False
    ) -> Any:
        """Runs a backward, or half of one, with the stage's weights gathered for a half.

        torch looks for the weights of a half among the module's parameters. Under ZeRO-3 those
        are the shards after a forward, which the graph does not know: all weight gradients would
        be missing, and nothing would say so (torch 2.13, pipelining/stage.py and _backward.py).
        """
        if backward_type != "full":
            for module in self.submod.modules():
                if isinstance(module, FSDPModule):
                    module.unshard()
        return super().backward_maybe_with_nosync(backward_type, bwd_kwargs, last_backward)

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """Sums gradients over data parallel ranks."""
        with self.recorder.tracer.exchange(ActionKind.REDUCE_GRAD, self.stage_index):
            super().perform_reduce_grad(grad_scale_factor)
            for buffer in self.buffers:
                buffer.reduce()

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        """Returns what receives the input, labelled."""
        return self._named(super().get_fwd_recv_ops(fwd_chunk_id), ActionKind.RECV_F, fwd_chunk_id)

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        """Returns what sends the output, labelled."""
        return self._named(super().get_fwd_send_ops(fwd_chunk_id), ActionKind.SEND_F, fwd_chunk_id)

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        """Returns what receives the output's gradient, labelled."""
        return self._named(super().get_bwd_recv_ops(bwd_chunk_id), ActionKind.RECV_B, bwd_chunk_id)

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        """Returns what sends the input's gradient, labelled."""
        return self._named(super().get_bwd_send_ops(bwd_chunk_id), ActionKind.SEND_B, bwd_chunk_id)

    def _named(self, ops: list[dist.P2POp], kind: ActionKind, microbatch: int) -> Messages:
        return Messages.labelled(ops, kind, stage=self.stage_index, microbatch=microbatch)

    def _begin(self, microbatch: int) -> Mark:
        """Says whose the exchanges are that come; returns when the computation begins."""
        begun = self.recorder.begin(self.stage_index, microbatch)
        # Emulated compute counts from here: read before the mark, a rank that loses its core in
        # between would be recorded with less than the time it was given.
        self._begun_ns = time.monotonic_ns()
        return begun

    def _emulate(self, kind: ActionKind) -> None:
        if isinstance(self.submod, EmulatedStage):
            self.submod.take(kind, self._begun_ns)

    def _end(self, start: Mark, kind: ActionKind, microbatch: int) -> None:
        self.recorder.end(start, kind, self.stage_index, microbatch)


def shapes_of(settings: TrainSettings, stage: HeldStage) -> tuple[Tensor, Tensor]:
    """Returns empty tensors shaped as a microbatch's input and output of ``stage``."""
    length = settings.model.seq_len // settings.cp
    stream = length // settings.tp if settings.sequence_parallel else length
    vocabulary = settings.vocabulary // (settings.tp if settings.loss_parallel else 1)
    batch = settings.microbatch_size
    kind: dict[str, Any] = {
        "dtype": compute_dtype(settings),
        "device": "meta",
        "requires_grad": True,
    }
    hidden = torch.empty(batch, stream, settings.model.hidden, **kind)
    text = torch.empty(batch, length, dtype=torch.int64, device="meta")
    scores = torch.empty(batch, length, vocabulary, **kind)
    return (hidden if stage.stage else text), (scores if stage.is_last else hidden)
