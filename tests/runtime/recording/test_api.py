"""The recorder's doors: which steps of a loop are recorded, as what, and what is left alone."""

from __future__ import annotations

import copy
import gc
import logging
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import serried
from serried.action import ActionKind
from serried.errors import InputError
from serried.frameworks import Sizes, layout
from serried.runtime.recorder.garbage import LEAST_NS
from serried.runtime.recorder.torch_private import loader_iterator
from serried.runtime.recording import api as recorder_doors
from serried.trace.measure.analysis import analyse
from serried.trace.measure.ranks.garbage import COLLECTION
from serried.trace.measure.ranks.period import PARTS
from serried.trace.measure.statistics import measure
from serried.trace.merge.in_memory import merge
from serried.trace.model.record import read_rank_record
from serried.trace.model.trace import Trace
from serried.views.web.trace.payload import NamedTrace, trace_payload
from tests.runtime.rank_processes import in_a_process

BATCHES = [torch.randn(2, 4) for _ in range(6)]


class Training:
    """Is a small model, its optimizer and its loop, as a user would write them."""

    def __init__(self, accumulate: int = 1) -> None:
        self.model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.accumulate = accumulate

    def batch(self, number: int, batch: torch.Tensor) -> None:
        self.model(batch).sum().backward()
        if (number + 1) % self.accumulate == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()


@pytest.fixture(autouse=True)
def _finished() -> Iterator[None]:
    yield
    recorder_doors.finish()


def trace_of(folder: Path) -> Trace:
    recorder_doors.finish()
    return merge([folder])


def actions(trace: Trace) -> dict[int, list[str]]:
    """Returns the actions of each step, those a user named under their names, but for ``data``."""
    every = with_data(trace)
    return {step: [each for each in said if each != "data"] for step, said in every.items()}


def with_data(trace: Trace) -> dict[int, list[str]]:
    """Returns the same with the loading of batches; when Python collects garbage is its own."""
    found: dict[int, list[str]] = {}
    for span in trace.spans:
        is_named = span.action.kind.name == "SPAN"
        said = trace.names[span.peer] if is_named else str(span.action)
        if said != COLLECTION:
            found.setdefault(span.step, []).append(said)
    return found


def test_a_garbage_collection_is_a_span_of_the_step_that_it_holds_up(tmp_path: Path) -> None:
    training = Training()
    for step, batch in enumerate(serried.record(BATCHES[:3], tmp_path, steps=(1, 3))):
        training.batch(step, batch)
        gc.collect()
        hears = list(gc.callbacks)
    trace = trace_of(tmp_path)
    is_named = trace.spans.kind == ActionKind.SPAN
    collections = trace.spans.where(is_named & (trace.spans.peer == trace.names.index(COLLECTION)))
    assert {*collections.step.tolist()} == {1, 2}
    assert ((collections.end_ns - collections.start_ns) >= LEAST_NS).all()
    assert len(gc.callbacks) == len(hears) - 1


def test_a_step_ends_where_the_optimizer_steps(tmp_path: Path) -> None:
    training = Training(accumulate=2)
    for number, batch in enumerate(serried.record(BATCHES, tmp_path)):
        training.batch(number, batch)
    step = ["0F0", "0B0", "0F1", "0B1", "OPTIMIZER"]
    assert actions(trace_of(tmp_path)) == {0: step, 1: step, 2: step}


def test_a_step_may_be_a_number_of_batches(tmp_path: Path) -> None:
    training = Training(accumulate=100)
    for number, batch in enumerate(serried.record(BATCHES, tmp_path, accumulate=3)):
        training.batch(number, batch)
    step = ["0F0", "0B0", "0F1", "0B1", "0F2", "0B2"]
    assert actions(trace_of(tmp_path)) == {0: step, 1: step}


@pytest.mark.parametrize("accumulate", [None, 1])
def test_a_loop_without_an_optimizer_is_told_how_to_end_its_steps(
    accumulate: int | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in serried.record(
        range(recorder_doors.MOST_BATCHES + 9), tmp_path, accumulate=accumulate
    ):
        pass
    assert [each.getMessage() for each in caplog.records] == (
        []
        if accumulate
        else [
            "no optimizer of torch has stepped in 64 batches, so that all are of step 0; "
            "serried.record(batches, accumulate=1) makes a step of each"
        ]
    )


STEP = ["0F0", "0B0", "OPTIMIZER"]


def test_the_loading_of_a_batch_is_of_the_step_that_it_is_for(tmp_path: Path) -> None:
    training = Training(accumulate=2)
    for number, batch in enumerate(serried.record(BATCHES, tmp_path)):
        training.batch(number, batch)
    # Nothing is hooked before the first recorded step, so its first batch is not seen.
    step = ["0F0", "0B0", "data", "0F1", "0B1", "OPTIMIZER"]
    assert with_data(trace_of(tmp_path)) == {0: step, 1: ["data", *step], 2: ["data", *step]}


def test_a_data_loader_is_seen_before_and_inside_the_steps_of_a_loop(tmp_path: Path) -> None:
    training, loader = Training(), DataLoader(TensorDataset(torch.randn(6, 4)))
    for step, (batch,) in enumerate(loader):
        with serried.record_steps(step, 1, 4, folder=tmp_path / "before"):
            training.batch(step, batch)
    first, *others = with_data(trace_of(tmp_path / "before")).values()
    assert (first, others) == (STEP, [["data", *STEP]] * 2)
    following = iter(loader)
    for step in range(4):
        with serried.record_steps(step, 1, 4, folder=tmp_path / "inside"):
            training.batch(step, *next(following))
    assert [*with_data(trace_of(tmp_path / "inside")).values()] == [["data", *STEP]] * 3


def test_a_library_that_is_loaded_meanwhile_loses_no_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = Training()
    for step, batch in enumerate(serried.record(BATCHES[:3], tmp_path)):
        monkeypatch.setitem(sys.modules, f"loaded_in_step_{step}", ModuleType("loaded"))
        training.batch(step, batch)
    assert [*with_data(trace_of(tmp_path)).values()] == [STEP, ["data", *STEP], ["data", *STEP]]


def test_a_batch_for_a_step_that_is_not_recorded_is_in_none(tmp_path: Path) -> None:
    training, following = Training(), iter(DataLoader(TensorDataset(torch.randn(9, 4))))
    (batch,) = next(following)
    for step in range(6):
        window = (0, 2) if step < 3 else (4, 6)
        with serried.record_steps(step, *window, folder=tmp_path):
            training.batch(step, batch)
            (batch,) = next(following)  # after the optimizer: for the step to come
    assert with_data(trace_of(tmp_path)) == {
        0: STEP,
        1: ["data", *STEP],
        4: STEP,
        5: ["data", *STEP],
    }


def test_a_loader_around_a_data_loader_counts_once(tmp_path: Path) -> None:
    training, loader = Training(), DataLoader(TensorDataset(torch.randn(3, 4)))
    for step, (batch,) in enumerate(serried.record(loader, tmp_path)):
        training.batch(step, batch)
    assert [*with_data(trace_of(tmp_path)).values()] == [STEP, ["data", *STEP], ["data", *STEP]]


def test_a_data_loader_has_its_own_next_again_after_the_recording(tmp_path: Path) -> None:
    own = loader_iterator.__next__
    training = Training()
    for step, batch in enumerate(serried.record(BATCHES[:2], tmp_path)):
        assert loader_iterator.__next__ is not own
        training.batch(step, batch)
    assert loader_iterator.__next__ is own


def test_a_slow_loader_is_found_by_its_own_time(tmp_path: Path) -> None:
    def slowly() -> Iterator[torch.Tensor]:
        for batch in BATCHES:
            time.sleep(0.02)
            yield batch

    training = Training()
    for step, batch in enumerate(serried.record(slowly(), tmp_path)):
        training.batch(step, batch)
    trace = trace_of(tmp_path)
    periods = analyse(trace).periods
    assert periods is not None and periods.has_data
    (rank,) = periods.ranks
    assert rank.data_ns >= 0.02e9
    parts = (getattr(rank, f"{part}_ns") for part in PARTS)
    assert sum(parts) == pytest.approx(rank.period_ns)


def test_steps_go_on_counting_in_the_next_epoch_and_in_the_same_file(tmp_path: Path) -> None:
    training = Training()
    for _ in range(2):
        for number, batch in enumerate(serried.record(BATCHES[:2], tmp_path)):
            training.batch(number, batch)
    assert sorted(actions(trace_of(tmp_path))) == [0, 1, 2, 3]


def test_only_steps_of_the_window_are_recorded(tmp_path: Path) -> None:
    training = Training()
    for number, batch in enumerate(serried.record(BATCHES, tmp_path, steps=(2, 4))):
        training.batch(number, batch)
    assert sorted(actions(trace_of(tmp_path))) == [2, 3]


def test_a_file_moves_the_window_of_a_running_job(tmp_path: Path) -> None:
    training = Training()
    for number, batch in enumerate(serried.record(BATCHES, tmp_path, steps=(0, 1))):
        if number == 2:
            (tmp_path / "steps").write_text("4:5")
        training.batch(number, batch)
    assert sorted(actions(trace_of(tmp_path))) == [0, 4]


def test_a_file_that_says_no_window_changes_nothing(tmp_path: Path) -> None:
    training = Training()
    (tmp_path / "steps").write_text("soon")
    for number, batch in enumerate(serried.record(BATCHES, tmp_path, steps=(1, 2))):
        training.batch(number, batch)
    assert sorted(actions(trace_of(tmp_path))) == [1]


def test_a_window_without_a_step_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        serried.record(BATCHES, tmp_path, steps=(3, 3))
    assert str(caught.value) == ("steps 3 to 3 hold none; give the first, and the one to stop at")


def test_no_batches_make_no_step(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        serried.record(BATCHES, tmp_path, accumulate=0)
    assert str(caught.value) == "accumulate=0 makes no step; give the batches of one, 1 or more"


def test_a_layout_of_other_ranks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        serried.record(BATCHES, tmp_path, layout=layout("fsdp", Sizes(8)))
    assert str(caught.value) == ("the layout is of 8 ranks, and this job has 1; give one of 1")


def test_a_framework_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="framework 'mine' is not known; those that are: "):
        serried.record(BATCHES, tmp_path, framework="mine")


@pytest.mark.parametrize("text", ["NONE", "KILL", "USR2:0", "USR2:many"])
def test_a_signal_that_cannot_be_caught_is_refused(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERRIED_TRACE_SIGNAL", text)
    with pytest.raises(InputError) as caught:
        serried.record(BATCHES, tmp_path)
    assert str(caught.value) == (
        f"SERRIED_TRACE_SIGNAL={text} names no signal that can be caught; give one such as USR2, "
        "or USR2:20 for 20 steps"
    )


def test_steps_of_a_loop_of_the_user_s_own_are_recorded_half_open(tmp_path: Path) -> None:
    training, told = Training(), []
    for step, batch in enumerate(BATCHES):
        with serried.record_steps(step, 1, 3, folder=tmp_path) as is_recorded:
            training.batch(step, batch)
            told.append(is_recorded)
    assert told == [False, True, True, False, False, False]
    assert actions(trace_of(tmp_path)) == {
        1: ["0F0", "0B0", "OPTIMIZER"],
        2: ["0F0", "0B0", "OPTIMIZER"],
    }


def test_training_stops_after_the_window_only_when_asked(tmp_path: Path) -> None:
    training, last = Training(), -1
    with pytest.raises(SystemExit) as ended:
        for step, batch in enumerate(BATCHES):
            with serried.record_steps(step, 1, 3, stop_training=True, folder=tmp_path):
                training.batch(step, batch)
                last = step
    assert (ended.value.code, last) == (0, 2)
    assert not read_rank_record(tmp_path / "rank-00000.spans").torn


def test_a_span_of_the_user_s_has_its_name_stage_and_microbatch(tmp_path: Path) -> None:
    for number in serried.record(range(2), tmp_path, accumulate=1):
        with serried.span("augment", microbatch=number, stage=3):
            pass
        with serried.span("读取"):
            pass
    trace = trace_of(tmp_path)
    assert actions(trace) == {0: ["augment", "读取"], 1: ["augment", "读取"]}
    mine = [span for span in trace.spans if trace.names[span.peer] != "data"]
    assert [str(span.action) for span in mine] == ["3SPAN0", "SPAN", "3SPAN1", "SPAN"]


def test_a_span_named_as_an_action_is_that_action(tmp_path: Path) -> None:
    for _ in serried.record(range(1), tmp_path):
        with serried.span("F", microbatch=2, stage=1):
            pass
    assert actions(trace_of(tmp_path)) == {0: ["1F2"]}


def test_names_reach_the_workbench(tmp_path: Path) -> None:
    for _ in serried.record(range(1), tmp_path):
        with serried.span("augment"):
            pass
    payload = trace_payload(NamedTrace("run", trace_of(tmp_path)))
    assert b'"names":["augment"]' in payload


def test_a_span_outside_recorded_steps_is_nothing(tmp_path: Path) -> None:
    with serried.span("before"):
        pass
    for _ in serried.record(range(2), tmp_path, steps=(1, 2), accumulate=1):
        with serried.span("inside"):
            pass
    with serried.span("after"):
        pass
    assert actions(trace_of(tmp_path)) == {1: ["inside"]}


def test_evaluation_is_not_training(tmp_path: Path) -> None:
    training = Training()
    for number, batch in enumerate(serried.record(BATCHES[:1], tmp_path)):
        training.batch(number, batch)
        training.model.eval()
        training.model(batch)
        training.model.train()
        with torch.no_grad():
            training.model(batch)
    assert actions(trace_of(tmp_path)) == {0: ["0F0", "0B0", "OPTIMIZER"]}


def test_the_program_s_functions_are_its_own_again_after_the_loop(tmp_path: Path) -> None:
    training, backward = Training(), torch.autograd.backward
    for number, batch in enumerate(serried.record(BATCHES[:2], tmp_path)):
        assert torch.autograd.backward is not backward
        training.batch(number, batch)
    assert torch.autograd.backward is backward
    assert not training.model._forward_hooks


def test_hooks_stay_between_recorded_steps_and_keep_nothing_there(tmp_path: Path) -> None:
    training, backward, between = Training(), torch.autograd.backward, []
    for step, batch in enumerate(BATCHES):
        with serried.record_steps(step, 1, 4, folder=tmp_path):
            training.batch(step, batch)
        between.append(torch.autograd.backward is not backward)
        training.batch(step, batch)
        with serried.span("between"):
            pass
    step_of_one = ["0F0", "0B0", "OPTIMIZER"]
    assert between == [False, True, True, False, False, False]
    assert actions(trace_of(tmp_path)) == {1: step_of_one, 2: step_of_one, 3: step_of_one}


def test_a_model_can_be_copied_and_saved_whole_while_it_is_recorded(tmp_path: Path) -> None:
    training = Training()
    for number, batch in enumerate(serried.record(BATCHES[:2], tmp_path / "run")):
        training.batch(number, batch)
        copied = copy.deepcopy(training.model)
        torch.save(training.model, tmp_path / "model")
        read = torch.load(tmp_path / "model", weights_only=False)
        for other in (copied, read):
            assert torch.equal(other(batch), training.model.eval()(batch))
        training.model.train()
    step = ["0F0", "0B0", "OPTIMIZER"]
    assert actions(trace_of(tmp_path / "run")) == {0: step, 1: step}


def test_a_span_may_be_called_as_the_kind_of_spans_is(tmp_path: Path) -> None:
    for _ in serried.record(range(1), tmp_path):
        with serried.span("SPAN"):
            pass
    assert actions(trace_of(tmp_path)) == {0: ["SPAN"]}


def test_an_error_in_a_step_gives_the_program_its_functions_back(tmp_path: Path) -> None:
    backward = torch.autograd.backward
    with pytest.raises(ZeroDivisionError), serried.record_steps(0, 0, 9, folder=tmp_path):
        assert torch.autograd.backward is not backward
        assert 1 / 0
    assert torch.autograd.backward is backward


def test_a_library_that_is_loaded_while_steps_are_recorded_is_hooked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ModuleType("deepspeed.comm")
    library.all_reduce = lambda: None  # type: ignore[attr-defined]
    monkeypatch.delitem(sys.modules, "deepspeed.comm", raising=False)
    for step in serried.record(range(2), tmp_path, accumulate=1):
        if step == 0:
            monkeypatch.setitem(sys.modules, "deepspeed.comm", library)
        library.all_reduce()
    assert actions(trace_of(tmp_path)) == {1: ["0ALL_REDUCE"]}


def test_an_error_in_the_loop_leaves_it_and_the_recording_whole(tmp_path: Path) -> None:
    training, backward = Training(), torch.autograd.backward
    with pytest.raises(ZeroDivisionError):
        for number, batch in enumerate(serried.record(BATCHES, tmp_path)):
            training.batch(number, batch)
            assert number < 1 or 1 / 0
    assert torch.autograd.backward is backward
    assert sorted(actions(trace_of(tmp_path))) == [0, 1]


def test_training_is_the_same_with_and_without_a_recording(tmp_path: Path) -> None:
    weights = []
    for folder in (None, tmp_path):
        torch.manual_seed(0)
        training = Training(accumulate=2)
        for number, batch in enumerate(serried.record(BATCHES, folder)):
            training.batch(number, batch)
        weights.append(next(training.model.parameters()).detach().clone())
    assert torch.equal(*weights)


def test_without_a_folder_batches_pass_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert list(serried.record(range(3))) == [0, 1, 2]
    with serried.record_steps(0, 0, 1) as is_recorded:
        assert not is_recorded
    assert list(tmp_path.iterdir()) == []


def test_the_environment_may_name_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERRIED_TRACE_DIR", str(tmp_path / "a" / "b"))
    training = Training()
    for number, batch in enumerate(serried.record(BATCHES, framework="deepspeed")):
        training.batch(number, batch)
    trace = trace_of(tmp_path / "a" / "b")
    assert (trace.job.framework, len(measure(trace).steps)) == ("deepspeed", 6)


def test_a_layout_says_how_the_ranks_stand(tmp_path: Path) -> None:
    training, alone = Training(), layout("fsdp", Sizes(1))
    for number, batch in enumerate(serried.record(BATCHES, tmp_path, layout=alone)):
        training.batch(number, batch)
    trace = trace_of(tmp_path)
    assert (trace.job.sizes, trace.warnings) == (dict(alone.sizes), ())
    assert trace.layout is not None
    assert trace.layout.kind("dp_shard").name == "dp_shard"


def test_an_earlier_recording_is_refused_before_the_loop(tmp_path: Path) -> None:
    for _ in serried.record(range(1), tmp_path):
        with serried.span("F", 0, 0):
            pass
    recorder_doors.finish()
    with pytest.raises(InputError) as caught:
        serried.record(range(1), tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/rank-00000.spans holds an earlier recording; "
        "choose another folder or remove it"
    )


def test_an_elastic_restart_records_into_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for attempt in range(2):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", str(attempt))
        for _ in serried.record(range(1), tmp_path):
            with serried.span("F", 0, 0):
                pass
        recorder_doors.finish()
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*.spans"))] == [
        "rank-00000.spans",
        "restart-1/rank-00000.spans",
    ]


def test_a_folder_that_cannot_be_made_is_said_once_and_the_training_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    problem = (
        f"{tmp_path}/file/a cannot be recorded: Not a directory; "
        "choose a folder with space that can be written"
    )
    batches = serried.record(range(3), tmp_path / "file" / "a", accumulate=1)
    assert caplog.messages == [f"{problem}; the training goes on"]
    for _ in batches:
        with serried.span("F", 0, 0):
            pass
    recorder_doors.finish()
    # The loading of the second and the third batch are two of them.
    assert caplog.messages[1:] == [f"5 spans were not recorded: {problem}"]


def train_beyond_the_disk(folder: Path) -> None:
    logging.basicConfig(format="%(message)s")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    gc.disable()  # a collection that takes long is a span of its own
    for step in range(40):
        with serried.record_steps(step, 0, 40, folder=folder):
            for microbatch in range(1000):
                with serried.span("F", microbatch, 0):
                    pass
    recorder_doors.finish()
    sys.stdout.write("trained\n")


def test_training_goes_on_when_the_disk_is_full_and_the_loss_is_counted(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert in_a_process(train_beyond_the_disk, folder) == 0
    recording = read_rank_record(folder / "rank-00000.spans")
    kept = len(recording.spans)
    first, last = folder.with_suffix(".err").read_text().splitlines()
    assert folder.with_suffix(".out").read_text() == "trained\n"
    assert first.endswith("choose a folder with space that can be written; the training goes on")
    assert last == (
        f"{40_000 - kept} spans were not recorded: {folder}/rank-00000.spans cannot be recorded: "
        "File too large; choose a folder with space that can be written"
    )
    assert kept > 0
    assert recording.lost == 40_000 - kept
    (told,) = (each for each in merge([folder]).warnings if each.kind == "lost")
    assert str(told.evidence[0]) == (
        f"the disk of rank 0 was full: {40_000 - kept} of its spans are lost, {kept} are kept"
    )


def train_until_killed(folder: Path) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [torch.randn(2, 4) for _ in range(6)]
    for number, batch in enumerate(serried.record(batches, folder)):
        loss = model(batch).sum()
        with serried.span("at work"):
            loss.backward()
            if number == 4:
                os.kill(os.getpid(), signal.SIGKILL)
        optimizer.step()


def test_a_killed_training_leaves_all_complete_spans_with_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    exit_code = in_a_process(train_until_killed, folder)
    trace = merge([folder])
    step = ["0F0", "at work", "0B0", "OPTIMIZER"]
    assert exit_code == -signal.SIGKILL
    assert actions(trace) == {**dict.fromkeys(range(4), step), 4: ["0F0", "0B0"]}
    assert trace.torn == (0,)


def test_importing_serried_loads_no_torch_before_a_door_is_used() -> None:
    code = (
        "import sys, serried; print('torch' in sys.modules, 'span' in dir(serried)); "
        "print(serried.span('outside') is not None, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False True", "True True"]


def test_a_name_that_is_no_door_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'serried' has no attribute 'nothing'"):
        serried.nothing  # noqa: B018
