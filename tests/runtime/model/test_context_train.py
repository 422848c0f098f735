"""Runs cut along the sequence and the experts lose what one process loses, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

from serried.action import ActionKind, Span
from serried.runtime.job.report import Event, StepDone
from serried.runtime.job.settings import ModelSizes, OptimizerSettings, TrainSettings
from serried.runtime.model.experts import Experts
from serried.runtime.model.model import FeedForward, Parts, Stage
from serried.runtime.recording.training import TrainingRecorder
from serried.runtime.run.loop import RankTrainer
from serried.runtime.training.mesh import make_train_mesh
from serried.trace.model.record import read_rank_record
from tests.runtime.rank_group import PATIENCE_S, run_ranks
from tests.runtime.reference import batch_of

WORLD_SIZE = 4
RUN = TrainSettings(
    world_size=WORLD_SIZE,
    model=ModelSizes(layers=1, hidden=32, heads=8, kv_heads=4, seq_len=16),
    optimizer=OptimizerSettings(lr_schedule="constant", clip=0),
    global_batch_size=8,
    microbatches=1,
    steps=4,
    device="cpu",
    dtype="float64",
    timeout_s=PATIENCE_S,
)
EXPERTS = replace(RUN.model, experts=4)
BALANCED = replace(EXPERTS, balance=0.5)
BRIEF = replace(RUN, steps=3, microbatches=2, model=replace(RUN.model, layers=2))
BOTH = replace(BRIEF, model=replace(BRIEF.model, experts=4))
SETTINGS = {
    "ring, cp 2, dp 2": replace(RUN, cp=2),
    "ring-two-pass, cp 2, dp 2": replace(RUN, cp=2, cp_form="ring-two-pass"),
    "ulysses, cp 4": replace(RUN, cp=4, cp_form="ulysses"),
    "all-gather, cp 2, dp 2": replace(RUN, cp=2, cp_form="all-gather"),
    "ep 4, float32": replace(RUN, ep=4, model=EXPERTS, dtype="float32"),
    "ring, cp 2, pp 2, split backward": replace(BRIEF, cp=2, pp=2, schedule="zb-h1"),
    "ring, cp 2, dp 2, recomputed": replace(BRIEF, cp=2, recompute="selective"),
    "ep 2, pp 2, split backward": replace(BOTH, ep=2, pp=2, schedule="zb-h1"),
    "ep 4, ring, cp 2, dp 2": replace(BOTH, ep=4, cp=2),
    "ep 2, edp 2, balanced": replace(RUN, ep=2, model=BALANCED),
}
"""A few steps of each form, of experts, and of what they go with.

Twenty steps of each, and of both over tensor parallel ranks, are rows of the parity matrix, a
soak."""
TOLERANCE = {"float64": 1e-9, "float32": 1e-5}


RECORDED = "ring, cp 2, pp 2, split backward"


def losses(folder: Path) -> Iterator[tuple[str, Any]]:
    """Is what each rank does: every run, one after another; one of them is recorded."""
    for name, settings in SETTINGS.items():
        settings = replace(settings, trace_dir=folder if name == RECORDED else None)
        mesh = make_train_mesh(settings, torch.device("cpu"), timedelta(seconds=PATIENCE_S))
        recorder = TrainingRecorder.of(settings, run="r", rank=dist.get_rank(), backend="gloo")
        trainer = RankTrainer(settings, mesh, recorder)
        told: list[Event] = []
        trainer.run("r", told.append)
        recorder.close()
        yield name, [event.loss for event in told if isinstance(event, StepDone)]


@dataclass(frozen=True)
class Ran:
    """What came of the runs: losses as each rank knows them, and what each rank recorded."""

    losses: list[dict[str, list[float]]]
    spans: list[list[Span]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All runs, on one group of processes."""
    traces = tmp_path_factory.mktemp("traces")
    told = run_ranks(losses, WORLD_SIZE, tmp_path_factory.mktemp("train"), traces)
    return Ran(
        told, [list(read_rank_record(file).spans) for file in sorted(traces.glob("*.spans"))]
    )


@pytest.fixture(scope="module")
def alone() -> dict[ModelSizes, list[float]]:
    """The losses of one process in float64, by its model."""
    return {sizes: plain_losses(sizes) for sizes in {each.model for each in SETTINGS.values()}}


def plain_losses(sizes: ModelSizes) -> list[float]:
    """Trains the whole model in this process, one plain backward a step."""

    def feed_forward(sizes: ModelSizes) -> torch.nn.Module:
        if not sizes.experts:
            return FeedForward(sizes)
        return Experts(sizes.hidden, sizes.ffn, sizes.experts, sizes.top_k, balance=sizes.balance)

    model = Stage(sizes, Parts(feed_forward=feed_forward), stage=0, num_stages=1)
    model.draw_weights(RUN.seed)
    model.double()
    learning = RUN.optimizer
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning.lr, weight_decay=learning.weight_decay
    )
    found = []
    for step in range(RUN.steps):
        inputs, targets = batch_of(replace(RUN, model=sizes), step)
        loss = model.loss(model(inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("name", SETTINGS)
def test_a_run_loses_what_one_process_loses(
    name: str, ran: Ran, alone: dict[ModelSizes, list[float]]
) -> None:
    asked = SETTINGS[name]
    wanted = alone[asked.model][: asked.steps]
    for rank in ran.losses:
        np.testing.assert_allclose(rank[name], wanted, rtol=TOLERANCE[asked.dtype], atol=0)


def test_waits_of_the_ring_are_recorded_within_the_computation_they_belong_to(ran: Ran) -> None:
    # Each of two stages has one layer: forward K V come once, backward once again, and the
    # gradients twice. Weight halves need no other rank, but on stage 0, whose input half is
    # empty: there they are all of the backward.
    once = {ActionKind.F: 1, ActionKind.B: 1 + 2}
    waits = [
        {**once, ActionKind.I: 0, ActionKind.W: 1 + 2},
        {**once, ActionKind.I: 1 + 2, ActionKind.W: 0},
    ]
    for rank, spans in enumerate(ran.spans):
        rings = [span for span in spans if span.action.kind is ActionKind.RING]
        assert {span.peer for span in rings} == {rank ^ 1}
        for span in spans:
            action = span.action
            if action.kind in waits[action.stage]:
                inside = [
                    each
                    for each in rings
                    if span.start_ns <= each.start_ns and each.end_ns <= span.end_ns
                ]
                assert len(inside) == waits[action.stage][action.kind], action
                own = (span.step, action.stage, action.microbatch)
                assert all(
                    (each.step, each.action.stage, each.action.microbatch) == own for each in inside
                )
