"""Every unidirectional schedule, as a CSV file, run by torch on gloo: one process's gradients."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch.distributed.tensor import DTensor

from serried.action import Action, ActionKind
from serried.pipeline import Request, Schedule, generate, to_csv
from serried.runtime.job.pipeline import RUNNABLE
from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.model.held_stage import HeldStage
from serried.runtime.model.model import Stage
from serried.runtime.recording.training import TrainingRecorder
from serried.runtime.run.loop import RankTrainer
from serried.runtime.run.worker import leave
from serried.runtime.training.mesh import make_train_mesh
from serried.runtime.training.schedule_runtime import time_messages
from serried.trace.model.record import read_rank_record
from tests.runtime.reference import batch_of
from tests.soaked import launched, rows

WORLD_SIZE = 4
PATIENCE_S = 60
RUN = TrainSettings(
    world_size=WORLD_SIZE,
    model=ModelSizes(layers=8, hidden=16, heads=2, seq_len=8),
    global_batch_size=16,
    steps=1,
    device="cpu",
    dtype="float64",
    timeout_s=PATIENCE_S,
)
Gradients = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Case:
    """A schedule over p ranks and m microbatches; dp takes the other ranks."""

    name: str
    p: int
    m: int
    chunks: int | None = None
    group: int | None = None

    def __str__(self) -> str:
        size = f"p{self.p}-m{self.m}" + (f"-v{self.chunks}" if self.chunks else "")
        return f"{self.name}-{size}" + (f"-g{self.group}" if self.group else "")

    def schedule(self) -> Schedule:
        """Makes the schedule."""
        return generate(self.name, Request(self.p, self.m, self.chunks, self.group))


PLAIN = tuple(Case(name, 2, 4) for name in RUNNABLE)
CASES = (
    *PLAIN,
    Case("1f1b", 2, 1),
    Case("interleaved-1f1b", 2, 4, chunks=4),
    Case("hanayo", 2, 4, chunks=4),
    *(Case(name, 4, 8) for name in ("zb-h2", "zbv", "v-min", "dualpipev", "looped-bfs")),
    Case("interleaved-zb", 4, 8),
    Case("interleaved-1f1b", 4, 8, group=8),
)

OUT_OF_ORDER = "0F0,0F1,0B1,0B0\n1F1,1B1,1F0,1B0\n"
"""A user's own: microbatch 1 overtakes microbatch 0 on the last stage."""

SPLIT_UNEVENLY = "2F0,2F1,2B0,2I1,2W1,,,,\n0F0,1F0,0F1,1F1,1B0,0B0,1I1,0I1,0W1,1W1\n"
"""A user's own: rank 1 holds the first two stages, rank 0 the last; one backward is whole."""


BY_NAME = {str(case): case for case in CASES}
SOAKED = {str(case) for case in PLAIN} - {"gpipe-p2-m4", "zbv-p2-m4"}
"""Each is another order of the same actions: two stand for all, beside the longer ones."""


@dataclass(frozen=True, eq=False)
class Ran:
    """What came of one schedule, a row for each rank: its gradients, stages and actions."""

    gradients: list[Gradients]
    held: list[list[int]]
    actions: list[list[tuple[Action, int]]]
    """What each rank recorded, with the peers of messages, in the order of starts."""


def run_rank(settings: list[TrainSettings], rank: int, store: str, channel: Connection) -> None:
    """Is one process of the group: runs every schedule once, one after another."""
    timeout = timedelta(seconds=PATIENCE_S)
    dist.init_process_group(
        "gloo",
        store=dist.FileStore(store, WORLD_SIZE),  # type: ignore[attr-defined]
        rank=rank,
        world_size=WORLD_SIZE,
        timeout=timeout,
    )
    made = {each.pp: each for each in settings}
    meshes = {pp: make_train_mesh(each, torch.device("cpu"), timeout) for pp, each in made.items()}
    for each in settings:
        recorder = TrainingRecorder.of(each, run="r", rank=rank, backend="gloo")
        trainer = RankTrainer(each, meshes[each.pp], recorder)
        recorder.begin_step(0)
        with time_messages(recorder.tracer):
            trainer.compute()
        recorder.close()
        held = [stage.stage for stage in trainer.models]
        channel.send((held, {n: g for stage in trainer.models for n, g in gradients_of(stage)}))
    dist.barrier()
    channel.close()
    leave(0)


def gradients_of(stage: HeldStage) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Gives a stage's gradients by the names of the whole model."""
    for name, parameter in stage.named_parameters():
        assert parameter.grad is not None
        whole = parameter.grad
        yield name, (whole.to_local() if isinstance(whole, DTensor) else whole).numpy()


@pytest.fixture(scope="module")
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Runs all cases on one group of processes, from files that torch could read too."""
    folder = tmp_path_factory.mktemp("schedules")
    chosen = launched(request, BY_NAME, SOAKED)
    texts = {name: (to_csv(case.schedule()), case.p, case.m) for name, case in chosen.items()}
    texts["out-of-order"] = (OUT_OF_ORDER, 2, 2)
    texts["split-unevenly"] = (SPLIT_UNEVENLY, 2, 2)
    settings = {}
    for name, (text, pp, m) in texts.items():
        path = folder / f"{name}.csv"
        path.write_text(text)
        settings[name] = replace(
            RUN, schedule=str(path), pp=pp, microbatches=m, trace_dir=folder / name
        )
        (folder / name).mkdir()
    answers = run_all(list(settings.values()), folder / "store")
    return {
        name: Ran(
            gradients=[gradients for _, gradients in of_ranks],
            held=[held for held, _ in of_ranks],
            actions=[recorded(file) for file in sorted((folder / name).glob("*.spans"))],
        )
        for name, of_ranks in zip(settings, answers, strict=True)
    }


def run_all(settings: list[TrainSettings], store: Path) -> list[list[tuple[list[int], Gradients]]]:
    """Starts the group of processes and returns, for each run, what each rank told of it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["serried.runtime.run.preload"])
    pipes = [context.Pipe(duplex=False) for _ in range(WORLD_SIZE)]
    ranks = [
        context.Process(target=run_rank, args=(settings, rank, str(store), far), daemon=True)
        for rank, (_, far) in enumerate(pipes)
    ]
    try:
        for process, (_, far) in zip(ranks, pipes, strict=True):
            process.start()
            far.close()
        return [[near.recv() for near, _ in pipes] for _ in settings]
    finally:
        for process in ranks:
            process.kill()
            process.join()


def recorded(file: Path) -> list[tuple[Action, int]]:
    """Returns what a rank recorded, in the order of its starts."""
    spans = sorted(read_rank_record(file).spans, key=lambda span: span.start_ns)
    return [(span.action, span.peer) for span in spans]


@pytest.fixture(scope="module")
def alone() -> Gradients:
    """The gradients of the whole batch, by one backward in this process."""
    model = Stage(RUN.model, stage=0, num_stages=1)
    model.draw_weights(RUN.seed)
    model.double()
    inputs, targets = batch_of(RUN, 0)
    model.loss(model(inputs), targets).backward()  # type: ignore[no-untyped-call]
    return dict(gradients_of(model))


OWN = ("out-of-order", "split-unevenly")


@pytest.mark.parametrize("name", [*rows(BY_NAME, SOAKED), *OWN])
def test_every_schedule_gives_the_gradients_of_a_single_process(
    name: str, ran: dict[str, Ran], alone: Gradients
) -> None:
    assert {held for rank in ran[name].gradients for held in rank} == alone.keys()
    for rank in ran[name].gradients:
        for weight, gradient in rank.items():
            np.testing.assert_allclose(gradient, alone[weight], rtol=0, atol=1e-9, err_msg=weight)


def test_the_gradients_are_far_above_the_tolerance(alone: Gradients) -> None:
    assert min(np.abs(gradient).max() for gradient in alone.values()) > 1e-6


@pytest.mark.parametrize("name", rows(BY_NAME, SOAKED))
def test_ranks_hold_stages_and_run_actions_where_and_as_the_schedule_says(
    name: str, ran: dict[str, Ran]
) -> None:
    case, it = BY_NAME[name], ran[name]
    schedule = case.schedule()
    compute = {ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W}
    for rank in range(WORLD_SIZE):
        row = rank // (WORLD_SIZE // case.p)
        assert it.held[rank] == [stage for _, stage in schedule.placement.stages_of(row)]
        ran_here = [action for action, _ in it.actions[rank] if action.kind in compute]
        assert ran_here == [part for action in schedule[row] for part in action.each]


@pytest.mark.parametrize("name", rows(BY_NAME, SOAKED))
def test_messages_cross_ranks_only_and_name_the_stage_and_the_peer(
    name: str, ran: dict[str, Ran]
) -> None:
    case = BY_NAME[name]
    schedule, width = case.schedule(), WORLD_SIZE // case.p
    holder = schedule.placement.rank_of[0].tolist()
    step = {
        ActionKind.SEND_F: 1,
        ActionKind.RECV_F: -1,
        ActionKind.SEND_B: -1,
        ActionKind.RECV_B: 1,
    }
    crossings = [
        (Action(kind, stage, microbatch), holder[stage + step[kind]], holder[stage])
        for kind in step
        for stage in range(len(holder))
        if 0 <= stage + step[kind] < len(holder) and holder[stage] != holder[stage + step[kind]]
        for microbatch in range(case.m)
    ]
    for rank, actions in enumerate(ran[name].actions):
        row, pipeline = divmod(rank, width)
        assert Counter((a, peer) for a, peer in actions if a.kind in step) == Counter(
            (action, peer * width + pipeline) for action, peer, at in crossings if at == row
        )
