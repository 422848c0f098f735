"""Training says that it needs a name of torch which has moved; a recorder does without."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from torch.distributed.pipelining import schedules

from serried.errors import EnvironmentProblem
from serried.runtime.recorder import torch_private


def test_a_torch_that_moved_these_parts_is_named_with_the_version_that_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(schedules, "_PipelineScheduleRuntime")
    assert torch_private.__file__
    spec = importlib.util.spec_from_file_location("again", torch_private.__file__)
    assert spec and spec.loader
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)  # a recorder does without
    with pytest.raises(EnvironmentProblem) as raised:
        vars(again)["__getattr__"]("TorchRuntime")  # what an import from it calls
    assert str(raised.value) == (
        f"torch {torch.__version__} moved parts that training needs; install the version serried "
        "was checked with: pip install 'torch==2.13.0'"
    )
