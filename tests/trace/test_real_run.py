"""A run that really took place, by processes and messages, merges into a whole timeline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from serried.action import ActionKind
from serried.trace.formats.chrome import write_chrome
from serried.trace.measure.statistics import measure
from serried.trace.merge.in_memory import merge
from serried.trace.model.trace import Trace
from tests.trace.chrome_rules import checked

P, TP, M, STEPS = 2, 2, 3, range(1, 3)
TRAIN = f"""train --nproc {P * TP} --pp {P} --tp {TP} --microbatches {M} --global-batch-size {M}
    --steps 4 --trace-steps {STEPS.start}:{STEPS.stop}
    --compute emulated --forward-ms 3 --backward-ms 6 --trace-dir"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("real") / "run"
    code = "from serried.views.cli.main import main; main()"
    command = [sys.executable, "-c", code, *TRAIN.split(), str(folder)]
    subprocess.run(command, check=True, timeout=240, capture_output=True)
    return merge([folder])


def test_every_rank_of_the_window_is_there_and_closed(trace: Trace) -> None:
    assert trace.ranks == tuple(range(P * TP))
    assert (trace.torn, trace.missing, trace.warnings) == ((), (), ())
    assert set(trace.spans.step.tolist()) == set(STEPS)
    assert trace.layout is not None
    assert trace.is_emulated


def test_every_step_is_complete_and_all_its_messages_pair(trace: Trace) -> None:
    stats = measure(trace)

    assert [step.step for step in stats.steps] == list(STEPS)
    assert stats.messages.spans == stats.messages.expected_spans == 4 * (P - 1) * M * TP * 2
    assert stats.messages.pairs == stats.messages.spans // 2
    assert stats.bubble is not None and 0 < stats.bubble < 1
    assert stats.ideal is not None


def test_no_message_arrives_before_it_is_sent(trace: Trace) -> None:
    alignment = measure(trace).alignment

    assert (alignment.num_hosts, alignment.causality_violations) == (1, 0)
    assert alignment.checked > 0


def test_its_chrome_file_keeps_all_spans_and_arrows(trace: Trace, tmp_path: Path) -> None:
    write_chrome(trace, tmp_path / "trace.json")

    found = checked((tmp_path / "trace.json").read_text(encoding="utf-8"))

    assert len(found.slices) == len(trace.spans)
    assert len(found.arrows) == measure(trace).messages.pairs
    names = {event["name"] for event in found.slices}
    assert {"forward", "backward", "optimizer", "send forward", "receive backward wait"} <= names


def test_each_rank_computes_every_microbatch_forward_and_backward(trace: Trace) -> None:
    for kind in (ActionKind.F, ActionKind.B):
        assert (trace.spans.kind == kind).sum() == P * TP * M * len(STEPS)
