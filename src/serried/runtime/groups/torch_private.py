"""Every private name of torch that serried uses, checked against torch 2.13.0.

replicate                data parallelism on the FSDP2 machinery (DDP refuses DTensors)
pipeline                 runs any order of actions on stages, adding the messages itself; or its
                         forwards alone
Messages, time_messages  hooks around posting messages and waiting for them
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.pipelining import PipelineStage

from serried.action import Action, ActionKind
from serried.errors import EnvironmentProblem
from serried.finding import said
from serried.runtime.groups.lost_peers import MessageLost
from serried.runtime.recorder.clock import Mark

CHECKED_VERSION = "2.13.0"

try:
    from torch.distributed._composable.replicate_with_fsdp import replicate
    from torch.distributed.pipelining import schedules
    from torch.distributed.pipelining.schedules import FORWARD, RECV_F, RESHARD, SEND_F, UNSHARD
    from torch.distributed.pipelining.schedules import _Action as TorchAction
    from torch.distributed.pipelining.schedules import _batch_p2p as _post
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime as TorchRuntime
    from torch.distributed.pipelining.schedules import _wait_batch_p2p as _wait
except ImportError as error:
    raise EnvironmentProblem(
        "torch {found} moved parts that training needs; install the version serried was checked "
        "with: pip install 'torch=={checked}'",
        found=torch.__version__,
        checked=CHECKED_VERSION,
    ) from error

__all__ = ["Messages", "ScheduleRuntime", "pipeline", "replicate", "time_messages"]


class ScheduleRuntime(TorchRuntime):
    """Runs actions on stages, with the last stage's microbatches in any order.

    torch keeps losses in the order of their forwards but looks them up by microbatch, so that a
    last stage that runs microbatch 1 before 0 would start backwards from the wrong loss.
    """

    gathering: Callable[[int], AbstractContextManager[None]] = staticmethod(
        lambda stage: nullcontext()
    )
    """Surrounds the wait for a stage's gathered parameters, given the stage's number."""

    def _assert_unsharded(self, stage: Any) -> None:
        waits = stage.stage_index in self.unshard_ops
        with self.gathering(stage.stage_index) if waits else nullcontext():
            super()._assert_unsharded(stage)

    def _maybe_compute_loss(
        self,
        stage: PipelineStage,
        output: Tensor,
        target_mbs: list[Tensor],
        mb_index: int,
        loss_kwargs: object = None,
    ) -> None:
        if stage.is_last:
            losses: list[Any] = self._internal_losses
            losses.extend([None] * (self._n_microbatches - len(losses)))
            loss: Any = self._loss_fn
            losses[mb_index] = loss(output, target_mbs[mb_index])

    def validate(self, *inputs: Tensor, target: Tensor | None, losses: list[Tensor]) -> None:
        """Runs the forwards of all microbatches, in the order that training runs them."""
        orders = self.pipeline_order_with_comms
        own = orders[self.rank]
        stages = dict.fromkeys(action.stage_index for action in own if action.stage_index >= 0)
        forwards = [part for action in own for part in action.sub_actions or (action,)]
        self.pipeline_order_with_comms = {
            self.rank: [
                *(TorchAction(stage, UNSHARD) for stage in stages),
                *(each for each in forwards if each.computation_type in FORWARD_ONLY),
                *(TorchAction(stage, RESHARD) for stage in stages),
            ]
        }
        try:
            self.eval(*inputs, target=target, losses=losses, return_outputs=False)
        finally:
            self.pipeline_order_with_comms = orders


FORWARD_ONLY = (FORWARD, SEND_F, RECV_F)


def pipeline(
    stages: Sequence[PipelineStage],
    order: Iterable[Iterable[Action]],
    microbatches: int,
    loss: Callable[[Tensor, Tensor], Tensor],
) -> ScheduleRuntime:
    """Returns torch's runtime for this rank's ``stages``, loaded with every rank's ``order``.

    Stages are where their actions stand; what two of one rank hand over is no message. The
    two halves of an overlapped pair run one after the other. Gradients of microbatches are
    summed. torch writes an action as serried does.
    """
    runtime = ScheduleRuntime(  # type: ignore[no-untyped-call]
        list(stages), microbatches, loss_fn=loss, scale_grads=False
    )
    ranks = [[TorchAction.from_str(str(action)) for action in actions] for actions in order]
    runtime._prepare_schedule_with_comms(dict(enumerate(ranks)))
    return runtime


@dataclass(frozen=True)
class _Label:
    kind: ActionKind
    stage: int
    microbatch: int
    peer: int

    @contextmanager
    def named(self) -> Iterator[None]:
        """Says which message it was where its body fails."""
        try:
            yield
        except RuntimeError as error:
            name = f"{self.stage}{self.kind.name}{self.microbatch}"
            raise MessageLost(said("message {name}", name=name), self.peer, error) from error


SENDS = (ActionKind.SEND_F, ActionKind.SEND_B)


class Messages(list[Any]):
    """Is the list that a stage gives the runtime, labelled; the hooks see the label again."""

    label: _Label

    @classmethod
    def labelled(
        cls, operations: list[dist.P2POp], kind: ActionKind, *, stage: int, microbatch: int
    ) -> Messages:
        """Labels ``operations``, all of one kind and with one peer."""
        messages = cls(operations)
        messages.label = _Label(kind, stage, microbatch, operations[0].peer if operations else -1)
        return messages


@contextmanager
def time_messages(
    now: Callable[[], Mark], record: Callable[[ActionKind, Mark, Mark, int, int, int], None]
) -> Iterator[None]:
    """Times the posting of labelled sends and the waiting for labelled receives.

    ``record`` gets kind, start, end, stage, microbatch and the peer's global rank. The
    runtime posts a receive early and waits for it just before the computation that needs
    it; only that wait is a receive's time.
    """

    def post(operations: list[dist.P2POp], desc: str | None = None) -> list[Any]:
        label = getattr(operations, "label", None)
        if label is None or label.peer < 0:
            return _post(operations, desc)
        start = now()
        with label.named():
            works = Messages(_post(operations, desc))
        works.label = label
        if label.kind in SENDS:
            record(label.kind, start, now(), label.stage, label.microbatch, label.peer)
        return works

    def wait(works: list[Any]) -> None:
        label = getattr(works, "label", None)
        if label is None:
            _wait(works)
            return
        start = now()
        with label.named():
            _wait(works)
        if label.kind not in SENDS:
            record(label.kind, start, now(), label.stage, label.microbatch, label.peer)

    schedules._batch_p2p, schedules._wait_batch_p2p = post, wait  # type: ignore[assignment]
    try:
        yield
    finally:
        schedules._batch_p2p, schedules._wait_batch_p2p = _post, _wait
