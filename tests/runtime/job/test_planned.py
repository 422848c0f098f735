"""The planned memory is what autograd keeps, what ranks hold, and what a real step allocates."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile, record_function

from serried.plan.reference.activations import held_output, keeps_stream, stream_itself
from serried.plan.reference.memory import rank_memories, stage_bytes
from serried.runtime.job.planned import training_of, unplanned
from serried.runtime.job.settings import Emulated, ModelSizes, OptimizerSettings, TrainSettings
from serried.runtime.model.held_stage import HeldStage
from serried.runtime.model.precision import compute_dtype
from serried.runtime.recording.training import TrainingRecorder
from serried.runtime.run.loop import RankTrainer, make_models
from serried.runtime.training.buffers import local_of
from serried.runtime.training.mesh import make_train_mesh
from serried.runtime.training.parallelize import parameter_bytes, parts_of
from tests.runtime.fake_ranks import as_rank
from tests.runtime.rank_group import run_ranks
from tests.soaked import rows

SIZES = ModelSizes(layers=3, hidden=48, heads=4, seq_len=40)
ONE = TrainSettings(1, model=SIZES, global_batch_size=6, microbatches=2)
TWO = replace(ONE, world_size=2, global_batch_size=12)


class Kept:
    """Counts what autograd keeps, each storage once, but for weights, angles and ``given``."""

    def __init__(self, model: HeldStage, given: Tensor) -> None:
        owned = [*model.parameters(), *model.buffers(), given]
        self._seen = {local_of(each).untyped_storage().data_ptr() for each in owned}
        self._storages: list[torch.UntypedStorage] = []
        self.num_bytes = 0

    def pack(self, tensor: Tensor) -> Tensor:
        local = local_of(tensor)
        storage = getattr(local, "elem", local).untyped_storage()  # of one that is waited for
        if storage.data_ptr() not in self._seen:
            self._seen.add(storage.data_ptr())
            self._storages.append(storage)  # or another tensor may come to the same place
            self.num_bytes += storage.nbytes()
        return tensor


def kept_by_autograd(settings: TrainSettings, model: HeldStage, stage: int) -> int:
    """Runs a forward, and the loss where ``stage`` is the last; returns what is kept for it."""
    training = training_of(settings, "cpu")
    length = settings.model.seq_len // settings.cp
    text = torch.zeros(settings.microbatch_size, length, dtype=torch.int64)
    kept = Kept(model, text)
    stream = training.stream_tokens // settings.microbatch_size
    shape = settings.microbatch_size, stream, settings.model.hidden
    hidden = torch.zeros(shape, dtype=compute_dtype(settings), requires_grad=True)
    with saved_tensors_hooks(kept.pack, lambda tensor: tensor):
        output = model(hidden if stage else text)
        loss = model.loss(output, text) if model.is_last else output
    assert loss.requires_grad
    of_mean = training.wide_bytes if model.is_last else 0  # the number that the loss was divided by
    return kept.num_bytes - of_mean


def planned(settings: TrainSettings, stage: int) -> int:
    """Returns what the plan says that a forward keeps, with what came in from another stage."""
    training = training_of(settings, "cpu")
    is_last = stage == settings.num_stages - 1
    kept = stage_bytes(training, stage).kept
    kept -= held_output(training, is_last=True) if is_last else 0
    comes = stage > 0 and (keeps_stream(training) or settings.recompute == "full")
    return kept + (stream_itself(training) if comes else 0)


SHARED = replace(SIZES, kv_heads=2, dropout=0.1, tie=True)
CASES = {
    "float32": ONE,
    "float64": replace(ONE, dtype="float64"),
    "bfloat16 with buffers": replace(ONE, dtype="bfloat16", dp_style="buffer"),
    "float16 with buffers": replace(ONE, dtype="float16", dp_style="buffer"),
    "attention again": replace(ONE, recompute="selective"),
    "layers again": replace(ONE, recompute="full"),
    "shared heads, dropout": replace(ONE, model=SHARED),
    "other sizes": replace(ONE, model=ModelSizes(5, hidden=64, heads=8, kv_heads=1, seq_len=24)),
    "pp": replace(TWO, pp=2),
    "pp, bfloat16": replace(TWO, pp=2, dtype="bfloat16", dp_style="buffer"),
    "pp, layers again": replace(TWO, pp=2, recompute="full", microbatches=4),
    "pp in a V": replace(TWO, pp=2, schedule="zbv", model=replace(SIZES, layers=4)),
    "tp": replace(TWO, tp=2),
    "tp, bfloat16": replace(TWO, tp=2, dtype="bfloat16", dp_style="buffer"),
    "tp, sequence": replace(TWO, tp=2, sequence_parallel=True),
    "tp, sequence, layers again": replace(TWO, tp=2, sequence_parallel=True, recompute="full"),
    "tp, sequence, shared heads": replace(TWO, tp=2, sequence_parallel=True, model=SHARED),
    "ulysses": replace(TWO, cp=2, cp_form="ulysses", dp_style="buffer"),
    "ring in two passes": replace(TWO, cp=2, cp_form="ring-two-pass", dp_style="buffer"),
}


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_a_forward_keeps_to_the_byte_what_is_planned(settings: TrainSettings) -> None:
    for rank in range(settings.pp):
        with as_rank(rank, settings) as mesh:
            for model in make_models(settings, mesh, parts_of(settings, mesh)):
                kept = kept_by_autograd(settings, model, model.stage)
                assert kept == planned(settings, model.stage)


@pytest.mark.parametrize(
    "settings",
    [
        ONE,
        replace(TWO, tp=2),
        replace(TWO, pp=2, dtype="bfloat16"),
        replace(TWO, dtype="bfloat16", dp_style="buffer", model=SHARED),
        replace(TWO, zero=1),
        replace(TWO, world_size=4, tp=2, zero=3, dtype="bfloat16"),
    ],
    ids=["one", "tp", "pp", "buffer", "zero 1", "tp and zero 3"],
)
def test_ranks_hold_the_parameters_that_are_planned(settings: TrainSettings) -> None:
    for rank in range(settings.world_size):
        with as_rank(rank, settings) as mesh:
            held = parameter_bytes(make_models(settings, mesh, parts_of(settings, mesh)))
            plan = rank_memories(training_of(settings, "cpu"))[mesh.coordinate("pp")]
        assert held == plan.parameters


def most_allocated(settings: TrainSettings, folder: str) -> Iterator[tuple[str, int]]:
    """Trains two steps on this rank; yields what tensors took at most in the second."""
    warnings.simplefilter("ignore")  # the step reads gradients of what is no leaf
    torch.set_num_threads(1)
    rank = dist.get_rank()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        mesh = make_train_mesh(settings, torch.device("cpu"), timedelta(seconds=60))
        recorder = TrainingRecorder.of(
            settings, run="", rank=rank, backend="gloo", num_local_ranks=settings.world_size
        )
        trainer = RankTrainer(settings, mesh, recorder)
        trainer.warm_up()
        trainer.step()
        dist.barrier()
        with record_function("measured"):
            trainer.step()
    path = Path(folder) / f"{rank}.json"
    recorded.export_chrome_trace(str(path))
    yield "peak", _most_within(json.loads(path.read_text())["traceEvents"])
    yield "place", mesh.coordinate("pp")


def _most_within(events: list[dict[str, Any]]) -> int:
    """Returns the most bytes that stood while the event ``measured`` lasted."""
    [step] = [each for each in events if each.get("name") == "measured" and "dur" in each]
    changes = [each for each in events if each.get("name") == "[memory]"]
    standing, most = 0, 0
    for each in sorted(changes, key=lambda change: change["ts"]):
        standing += each["args"]["Bytes"]
        if step["ts"] <= each["ts"] <= step["ts"] + step["dur"]:
            most = max(most, standing)
    return most


WIDE = ModelSizes(layers=2, hidden=96, heads=4, seq_len=96, kv_heads=2)
REAL = TrainSettings(1, model=WIDE, global_batch_size=8, microbatches=2, steps=3, device="cpu")
CUT = replace(REAL, world_size=2, pp=2, microbatches=8, model=replace(WIDE, layers=4))
SMALL = replace(REAL, model=ModelSizes(2, hidden=256, heads=4, seq_len=8), global_batch_size=2)


STEPS = {
    "float32": REAL,
    "one microbatch": replace(REAL, microbatches=1),
    "bfloat16": replace(REAL, dtype="bfloat16"),
    "bfloat16 with buffers": replace(REAL, dtype="bfloat16", dp_style="buffer"),
    "float16 with buffers": replace(
        REAL, dtype="float16", dp_style="buffer", optimizer=OptimizerSettings(loss_scale=1.0)
    ),
    "attention again": replace(REAL, recompute="selective"),
    "layers again": replace(REAL, recompute="full"),
    "few bytes": SMALL,
    "few bytes, bfloat16": replace(SMALL, dtype="bfloat16"),
    "few bytes, buffers": replace(SMALL, dtype="bfloat16", dp_style="buffer"),
    "pp": replace(REAL, world_size=2, pp=2, microbatches=4),
    "pp, chunks": replace(CUT, schedule="interleaved-1f1b"),
    "pp in a V": replace(CUT, schedule="1f1b-v"),
    "dp": replace(REAL, world_size=2),
}
SOAKED = {
    *("one microbatch", "bfloat16", "bfloat16 with buffers"),
    *("few bytes, buffers", "pp", "pp in a V"),
}


@pytest.mark.parametrize("name", rows(STEPS, SOAKED))
def test_a_real_step_allocates_at_most_what_is_planned(name: str, tmp_path: Path) -> None:
    settings = STEPS[name]
    plan = rank_memories(training_of(settings, "cpu"))
    found = run_ranks(most_allocated, settings.world_size, tmp_path, settings, str(tmp_path))
    for each in found:
        # What is left is torch's state of random numbers for each layer to run again, 5 KB.
        assert each["peak"] == pytest.approx(plan[each["place"]].peak, rel=0.003)


@pytest.mark.parametrize("schedule", rows(["zb-h1", "zbv"], {"zb-h1"}))
def test_split_backwards_allocate_about_what_is_planned(schedule: str, tmp_path: Path) -> None:
    settings = replace(CUT, schedule=schedule)
    plan = rank_memories(training_of(settings, "cpu"))
    for each in run_ranks(most_allocated, 2, tmp_path, settings, str(tmp_path)):
        assert each["peak"] == pytest.approx(plan[each["place"]].peak, rel=0.02)


def test_the_plan_knows_each_moment_at_which_a_step_may_hold_most() -> None:
    moments = {name: rank_memories(training_of(each, "cpu"))[0] for name, each in STEPS.items()}
    assert moments["bfloat16"].moment == "computing"
    assert moments["few bytes"].moment == "learning"
    assert moments["few bytes, bfloat16"].moment == "reducing"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (replace(ONE, emulated=Emulated()), "emulated compute"),
        (replace(ONE, model=replace(SIZES, experts=4)), "an expert"),
        (replace(TWO, cp=2, cp_form="all-gather"), "all-gather attention"),
        (replace(TWO, pp=2, schedule="zb-h1", recompute="full"), "for each weight"),
    ],
)
def test_what_is_not_planned_is_said(settings: TrainSettings, words: str) -> None:
    assert words in str(unplanned(settings))
    assert unplanned(ONE) is None
