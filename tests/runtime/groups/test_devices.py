"""GPUs tell what they held at most; CPUs tell nothing."""

from __future__ import annotations

import pytest
import torch

from serried.plan.reference.memory import rank_memories
from serried.runtime.groups.devices import begin_counting, gathered_peaks
from serried.runtime.job.planned import training_of
from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.run import launch
from tests.runtime.rank_group import needs_gpu


def test_cpus_tell_nothing() -> None:
    begin_counting(torch.device("cpu"))
    assert gathered_peaks(torch.device("cpu"), 3) is None


@needs_gpu
def test_a_gpu_holds_about_what_is_planned() -> None:
    sizes = ModelSizes(layers=8, hidden=1024, heads=16, seq_len=1024)
    settings = TrainSettings(1, model=sizes, steps=2, dtype="bfloat16", device="cuda")
    measured = launch.train(settings).memory
    assert measured is not None
    planned = rank_memories(training_of(settings, "cuda"))[0].peak
    assert measured.peak_bytes[0] == pytest.approx(planned, rel=0.05)
