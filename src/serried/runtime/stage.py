"""Pipeline stages that record their work, and the schedule that runs a rank's stages.

torch's own runtime executes the actions that ``serried.schedule`` gives; it derives the
messages, and each stage notes when each piece of its work began and ended:

    RECV_F ├─wait─┤ F ├─compute─┤ SEND_F ├post┤  …  RECV_B ├─wait─┤ B ├─compute─┤ SEND_B
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.pipelining import PipelineStage

from serried.runtime.emulate import EmulatedStage
from serried.runtime.groups import RankGroups
from serried.runtime.model import Stage
from serried.runtime.recording import Recording
from serried.runtime.settings import VOCABULARY, TrainSettings
from serried.runtime.torch_private import Messages, ScheduleRuntime, pipeline
from serried.schedule import Schedule
from serried.span import ActionKind


class RecordedStage(PipelineStage):
    """Runs a Stage under torch's schedule runtime and records what it does."""

    def __init__(
        self, stage: Stage, settings: TrainSettings, groups: RankGroups, recording: Recording
    ) -> None:
        inputs, outputs = _examples(settings, stage)
        # With example tensors at both ends torch infers nothing by running the stage.
        super().__init__(
            stage,
            stage.stage,
            settings.num_stages,
            groups.device,
            input_args=inputs,
            output_args=outputs,
            group=groups.group("pp"),
        )
        self.recording = recording
        self._forward_from = (0, 0)

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        """Computes a forward; the last stage's ends with its loss."""
        start = self.recording.now()
        output = super().forward_one_chunk(fwd_chunk_id, *args, **kwargs)
        self._emulate(ActionKind.F, start)
        if self.is_last:
            self._forward_from = (start, fwd_chunk_id)
        else:
            self._add(ActionKind.F, start, fwd_chunk_id)
        return output

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Computes the loss of the microbatch that was just forwarded."""
        submodule = self.submod
        assert isinstance(submodule, Stage)
        loss = submodule.loss(output, target)
        start, microbatch = self._forward_from
        self._add(ActionKind.F, start, microbatch)
        return loss

    def backward_one_chunk(
        self,
        bwd_chunk_id: int,
        loss: Any = None,
        full_backward: bool = True,
        last_backward: Any = False,
    ) -> None:
        """Computes a full backward, or its input half."""
        start = self.recording.now()
        kind = ActionKind.B if full_backward else ActionKind.I
        super().backward_one_chunk(bwd_chunk_id, loss, full_backward, last_backward)
        self._emulate(kind, start)
        self._add(kind, start, bwd_chunk_id)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """Computes a backward's weight half."""
        start = self.recording.now()
        super().backward_weight_one_chunk(bwd_chunk_id, last_backward)
        self._emulate(ActionKind.W, start)
        self._add(ActionKind.W, start, bwd_chunk_id)

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """Averages gradients over microbatches and data parallel ranks."""
        start = self.recording.now()
        super().perform_reduce_grad(grad_scale_factor)
        self._add(ActionKind.REDUCE_GRAD, start, -1)

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

    def _emulate(self, kind: ActionKind, start_ns: int) -> None:
        if isinstance(self.submod, EmulatedStage):
            self.submod.take(kind, start_ns)

    def _add(self, kind: ActionKind, start_ns: int, microbatch: int) -> None:
        self.recording.add(kind, start_ns, self.recording.now(), self.stage_index, microbatch)


def make_runtime(stages: Sequence[RecordedStage], schedule: Schedule) -> ScheduleRuntime:
    """Returns torch's runtime for this rank's stages, loaded with all ranks' actions."""
    # Only the last stage of the model has a loss, and only the rank that holds it asks for one.
    return pipeline(stages, schedule, schedule.num_microbatches, stages[-1].loss)


def _examples(settings: TrainSettings, stage: Stage) -> tuple[Tensor, Tensor]:
    """Returns empty tensors shaped as a microbatch's input and output of ``stage``."""
    shape = (settings.microbatch_size, settings.model.seq_len)
    kind: dict[str, Any] = {
        "dtype": getattr(torch, settings.dtype),
        "device": "meta",
        "requires_grad": True,
    }
    hidden = torch.empty(*shape, settings.model.hidden, **kind)
    text = torch.empty(*shape, dtype=torch.int64, device="meta")
    scores = torch.empty(*shape, VOCABULARY, **kind)
    return (hidden if stage.stage else text), (scores if stage.is_last else hidden)
