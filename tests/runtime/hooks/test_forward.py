"""The model's forwards are timed by the cheapest way that changes nothing of what they do."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MethodType
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

import serried
from serried.action import Span
from serried.runtime.recording import api as recorder_doors
from serried.trace.merge.in_memory import merge
from serried.trace.model.trace import Trace

STEPS = 4


class Net(nn.Module):
    """Is a model that fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, batch: torch.Tensor, *, fails: bool = False) -> torch.Tensor:
        with serried.span("inside"):
            if fails:
                raise ZeroDivisionError
        hidden: torch.Tensor = self.layer(batch)
        return hidden


class Counted:
    """Is a function that counts its calls."""

    def __init__(self, inner: Callable[..., torch.Tensor]) -> None:
        self.inner, self.count = inner, 0

    def __call__(self, *args: Any, **options: Any) -> torch.Tensor:
        self.count += 1
        return self.inner(*args, **options)


class Small(nn.Module):
    """Is a model with no spans of the user's, to be compiled in one piece."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(batch))


@pytest.fixture(autouse=True)
def _finished() -> Iterator[None]:
    yield
    recorder_doors.finish()


def steps(folder: Path) -> Iterator[int]:
    return iter(serried.record(range(STEPS), folder, accumulate=1))


def trace_of(folder: Path) -> Trace:
    recorder_doors.finish()
    return merge([folder])


def named(trace: Trace) -> list[Span]:
    """Returns the user's own spans: not the recorder's of the wait for each batch."""
    return [
        span
        for span in trace.spans
        if span.action.kind.name == "SPAN" and trace.names[span.peer] != "data"
    ]


def forwards(trace: Trace) -> list[tuple[int, str]]:
    return [(s.step, str(s.action)) for s in trace.spans if s.action.kind.name == "F"]


EACH_STEP = [(step, "0F0") for step in range(STEPS)]


def test_the_model_has_its_own_forward_again_after_a_recording(tmp_path: Path) -> None:
    model, wrapped = Net(), []
    for _ in steps(tmp_path):
        model(torch.randn(2, 4))
        wrapped.append("forward" in vars(model))
    assert wrapped == [False, True, True, True]  # it is found in the first step
    assert "forward" not in vars(model)
    assert forwards(trace_of(tmp_path)) == EACH_STEP


def test_a_model_with_hooks_begins_before_and_ends_after_them(tmp_path: Path) -> None:
    model = Net()

    def before(*args: Any) -> None:
        with serried.span("hook"):
            pass

    model.register_forward_pre_hook(before)
    for _ in steps(tmp_path):
        model(torch.randn(2, 4))
    trace = trace_of(tmp_path)
    assert forwards(trace) == EACH_STEP
    around = {span.step: span for span in trace.spans if span.action.kind.name == "F"}
    others = named(trace)
    assert len(others) == 2 * STEPS
    for span in others:
        one = around[span.step]
        assert one.start_ns <= span.start_ns <= span.end_ns <= one.end_ns


def test_a_forward_that_a_user_has_replaced_is_timed_and_stays(tmp_path: Path) -> None:
    model = Net()
    theirs = MethodType(lambda self, batch: Net.forward(self, 2 * batch), model)
    model.forward = theirs  # type: ignore[method-assign]
    for _ in steps(tmp_path):
        model(torch.randn(2, 4))
    assert model.forward is theirs
    assert forwards(trace_of(tmp_path)) == EACH_STEP


def test_a_forward_that_is_wrapped_while_it_is_recorded_stays_wrapped_and_is_timed_once(
    tmp_path: Path,
) -> None:
    model = Net()
    for step in steps(tmp_path):
        if step == 2:
            theirs = Counted(model.forward)
            model.forward = theirs  # type: ignore[method-assign]
        model(torch.randn(2, 4))
    with serried.record_steps(STEPS, STEPS, STEPS + 1, folder=tmp_path):
        model(torch.randn(2, 4))
    assert (theirs.count, model.forward is theirs) == (3, True)
    assert forwards(trace_of(tmp_path)) == [*EACH_STEP, (STEPS, "0F0")]


def test_a_forward_that_fails_is_left_out_and_does_not_begin_the_next(tmp_path: Path) -> None:
    model = Net()
    for step in steps(tmp_path):
        if step == 2:
            with pytest.raises(ZeroDivisionError):
                model(torch.randn(2, 4), fails=True)
        model(torch.randn(2, 4))
    trace = trace_of(tmp_path)
    assert forwards(trace) == EACH_STEP
    (failed, whole) = (span for span in named(trace) if span.step == 2)
    (forward,) = (s for s in trace.spans if s.step == 2 and s.action.kind.name == "F")
    assert failed.end_ns <= forward.start_ns <= whole.start_ns


def test_a_copy_of_the_model_runs_its_own_forward_and_is_not_the_model(tmp_path: Path) -> None:
    model = Net()
    for step in steps(tmp_path):
        model(torch.randn(2, 4))
        if step == 2:
            copied = copy.deepcopy(model)
            with torch.no_grad():
                copied.layer.weight.zero_()
                copied.layer.bias.zero_()
            assert not copied(torch.randn(2, 4)).any()
    assert forwards(trace_of(tmp_path)) == EACH_STEP


@pytest.mark.filterwarnings("ignore:Using `torch.compile:UserWarning")
@pytest.mark.filterwarnings("ignore:Dynamo does not know:UserWarning")
@pytest.mark.parametrize("way", ["module", "in place", "forward"])
def test_a_compiled_model_is_timed_and_not_compiled_again(way: str, tmp_path: Path) -> None:
    torch._dynamo.reset()
    net, counter = Small(), CompileCounter()
    model: Any = net
    if way == "module":
        model = torch.compile(net, backend=counter)
    elif way == "in place":
        net.compile(backend=counter)
    else:
        net.forward = torch.compile(net.forward, backend=counter)  # type: ignore[method-assign]
    model(torch.randn(2, 4)).sum().backward()
    once = counter.frame_count
    for _ in steps(tmp_path):
        model(torch.randn(2, 4)).sum().backward()
    model(torch.randn(2, 4)).sum().backward()
    assert (once, counter.frame_count) == (1, 1)
    assert [step for step, _ in forwards(trace_of(tmp_path))] == list(range(STEPS))


def test_a_model_shows_its_own_signature_while_it_is_recorded(tmp_path: Path) -> None:
    model, own = Net(), inspect.signature(Net().forward)
    for _ in serried.record(range(3), tmp_path):
        model(torch.ones(2, 4)).sum().backward()
        assert inspect.signature(model.forward) == own
    recorder_doors.finish()
