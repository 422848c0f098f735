"""Hooks into torch.distributed.pipelining: any of its schedules, under its own action names.

    stage.forward_one_chunk(2)      3F2          stage.backward_one_chunk(2)     3B2 or 3I2
    stage.backward_weight_…(2)      3W2          stage.perform_reduce_grad       3REDUCE_GRAD
    posting what get_fwd_send_ops gave           3SEND_F2, with the rank it goes to
    waiting for what get_fwd_recv_ops gave       3RECV_F2, with the rank it comes from

1F1B posts a send and a receive as one batch, so each operation carries its own label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from serried.action import ActionKind
from serried.runtime.recorder.patches import Patch, Wrap
from serried.runtime.recorder.torch_private import PipelineStageBase, schedules
from serried.runtime.recorder.tracer import CurrentWork, Mark, Tracer

_LABEL = "serried_label"
_SENDS = (ActionKind.SEND_F, ActionKind.SEND_B)
Label = tuple[ActionKind, int, int, int]
"""Kind, stage, microbatch and the peer's global rank."""


class _Works(list[Any]):
    """Holds what a posted batch is waited for by, with the labels of its receives."""

    labels: list[Label]


def pipeline_patches(tracer: Tracer) -> list[Patch]:
    """Returns the patches of stages and messages; none where this torch has moved them."""
    if schedules is None or PipelineStageBase is None:
        return []
    stage_patches = [
        Patch(PipelineStageBase, "forward_one_chunk", _computing(tracer, _forward)),
        Patch(PipelineStageBase, "backward_one_chunk", _computing(tracer, _backward)),
        Patch(PipelineStageBase, "backward_weight_one_chunk", _computing(tracer, _weight)),
        Patch(PipelineStageBase, "perform_reduce_grad", _computing(tracer, _reduce)),
    ]
    labels = {
        "get_fwd_recv_ops": ActionKind.RECV_F,
        "get_fwd_send_ops": ActionKind.SEND_F,
        "get_bwd_recv_ops": ActionKind.RECV_B,
        "get_bwd_send_ops": ActionKind.SEND_B,
    }
    return [
        *(Patch(owner, "step", _stepping(tracer.work)) for owner in _schedules()),
        *stage_patches,
        *(
            Patch(PipelineStageBase, name, _labelled(tracer.work, kind))
            for name, kind in labels.items()
        ),
        Patch(schedules, "_batch_p2p", _posting(tracer)),
        Patch(schedules, "_wait_batch_p2p", _waiting(tracer)),
    ]


def _forward(options: dict[str, Any]) -> ActionKind:
    return ActionKind.F


def _backward(options: dict[str, Any]) -> ActionKind:
    return ActionKind.B if options.get("full_backward", True) else ActionKind.I


def _weight(options: dict[str, Any]) -> ActionKind:
    return ActionKind.W


def _reduce(options: dict[str, Any]) -> ActionKind:
    return ActionKind.REDUCE_GRAD


def _schedules() -> list[Any]:
    """Returns the classes whose ``step`` runs all microbatches of a step."""
    names = ("PipelineScheduleSingle", "PipelineScheduleMulti")
    return [owner for name in names if (owner := getattr(schedules, name, None)) is not None]


def _stepping(work: CurrentWork) -> Wrap:
    """Says that a schedule runs: what it computes beside its stages' methods is no action.

    In its first step torch runs every stage's module once more, to learn the shapes of what it
    gives on (torch 2.13, pipelining/stage.py).
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def step(schedule: Any, *args: Any, **options: Any) -> Any:
            # torch's schedules of one stage a rank have _stage, those of several _stages.
            stages = getattr(schedule, "_stages", None) or [getattr(schedule, "_stage", None)]
            work.num_stages = getattr(stages[0], "group_size", work.num_stages)
            was, work.is_pipeline = work.is_pipeline, True
            try:
                return original(schedule, *args, **options)
            finally:
                work.is_pipeline = was

        return step

    return wrap


def _computing(tracer: Tracer, kind_of: Callable[[dict[str, Any]], ActionKind]) -> Wrap:
    """Times a stage's method, whose first argument is the microbatch."""
    work = tracer.work

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(stage: Any, number: int, *args: Any, **options: Any) -> Any:
            work.num_stages = stage.group_size
            kind = kind_of(options)
            # perform_reduce_grad is given a factor in the microbatch's place.
            microbatch = -1 if kind == ActionKind.REDUCE_GRAD else number
            start = tracer.mark()
            was, work.is_pipeline = work.is_pipeline, True
            work.begin(stage.stage_index, microbatch)
            try:
                return original(stage, number, *args, **options)
            finally:
                work.is_pipeline = was
                work.end()
                tracer.keep_since(start, kind, stage.stage_index, microbatch)

        return call

    return wrap


def _labelled(work: CurrentWork, kind: ActionKind) -> Wrap:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(stage: Any, number: int) -> Any:
            work.num_stages = stage.group_size
            operations = original(stage, number)
            for each in operations:
                setattr(each, _LABEL, (kind, stage.stage_index, number, each.peer))
            return operations

        return call

    return wrap


def _posting(tracer: Tracer) -> Wrap:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(operations: list[Any], desc: str | None = None) -> list[Any]:
            labels = _labels(operations)
            start = tracer.mark()
            works = _Works(original(operations, desc))
            works.labels = [label for label in labels if label[0] not in _SENDS]
            _keep_since(tracer, start, [label for label in labels if label[0] in _SENDS])
            return works

        return call

    return wrap


def _waiting(tracer: Tracer) -> Wrap:
    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(works: list[Any]) -> None:
            start = tracer.mark()
            original(works)
            _keep_since(tracer, start, getattr(works, "labels", []))

        return call

    return wrap


def _labels(operations: list[Any]) -> list[Label]:
    """Returns each label once: a stage's tensors travel as one message."""
    found = [getattr(each, _LABEL, None) for each in operations]
    return list(dict.fromkeys(label for label in found if label is not None))


def _keep_since(tracer: Tracer, start: Mark, labels: list[Label]) -> None:
    for label in labels:
        tracer.keep_since(start, *label)
