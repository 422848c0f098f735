"""The schedule that a rank's stages run by: torch's runtime, loaded with any order of actions.

pipeline                 adds the messages itself
validate                 runs the forwards alone
Messages, time_messages  name the message that fails, and time those that a recorded step sends
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.distributed.pipelining import PipelineStage

from serried.action import Action, ActionKind
from serried.finding import said
from serried.runtime.groups.lost_peers import MessageLost
from serried.runtime.recorder.patches import Patch
from serried.runtime.recorder.torch_private import (
    FORWARD_ONLY,
    RESHARD,
    UNSHARD,
    TorchAction,
    TorchRuntime,
    schedules,
)
from serried.runtime.recorder.tracer import Mark, Tracer


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
        # Of the training's order forwards and their messages stay. What it gathers and drops in
        # between is gathered once before them and dropped once after.
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
    """Says which message it is, and with whom."""

    kind: ActionKind
    stage: int
    microbatch: int
    peer: int

    def keep(self, tracer: Tracer, start: Mark) -> None:
        """Keeps a span from ``start`` to now."""
        tracer.keep_since(start, self.kind, self.stage, self.microbatch, self.peer)

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
    """Holds what a stage gives the runtime to post, labelled; ``time_messages`` sees the label."""

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
def time_messages(tracer: Tracer) -> Iterator[None]:
    """Times the posting of labelled sends and the waiting for labelled receives.

    The runtime posts a receive early and waits for it just before the computation that needs it;
    only that wait is a receive's time.
    """

    def posting(original: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def post(operations: list[dist.P2POp], desc: str | None = None) -> list[Any]:
            label = getattr(operations, "label", None)
            # A label of no operations has peer -1, and nothing to time.
            if label is None or label.peer < 0:
                return original(operations, desc)
            start = tracer.mark() if tracer.is_on else 0
            with label.named():
                works = Messages(original(operations, desc))
            works.label = label
            if label.kind in SENDS:
                label.keep(tracer, start)
            return works

        return post

    def waiting(original: Callable[..., None]) -> Callable[..., None]:
        def wait(works: list[Any]) -> None:
            label = getattr(works, "label", None)
            if label is None:
                original(works)
                return
            start = tracer.mark() if tracer.is_on else 0
            with label.named():
                original(works)
            if label.kind not in SENDS:
                label.keep(tracer, start)

        return wait

    patches = Patch(schedules, "_batch_p2p", posting), Patch(schedules, "_wait_batch_p2p", waiting)
    for patch in patches:
        patch.put_in()
    try:
        yield
    finally:
        for patch in patches:
            patch.take_out()
