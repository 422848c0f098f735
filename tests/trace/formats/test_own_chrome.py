"""Chrome JSON that serried wrote comes back as the trace that it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.formats.chrome import write_chrome
from serried.trace.formats.reading import read_trace
from serried.trace.model.trace import Trace
from tests.trace.alike import differences
from tests.trace.recorded_run import Run

RUN = Run(pp=2, tp=1, dp=2, num_microbatches=4, num_steps=2)


@pytest.fixture
def run(tmp_path: Path) -> Trace:
    return read_trace([RUN.write(tmp_path / "run")])


def written(trace: Trace, folder: Path) -> Path:
    path = folder / "written.json"
    write_chrome(trace, path)
    return path


def test_a_run_is_the_same_again(run: Trace, tmp_path: Path) -> None:
    assert differences(run, read_trace([written(run, tmp_path)])) == []


def test_another_tools_trace_is_the_same_again(tmp_path: Path) -> None:
    found = read_trace([Path(__file__).parents[2] / "goldens" / "traces" / "megatronapp"])
    assert differences(found, read_trace([written(found, tmp_path)])) == []


def test_names_that_a_user_gave_come_back(run: Trace, tmp_path: Path) -> None:
    kind, peer = run.spans.kind.copy(), run.spans.peer.copy()
    kind[:2], peer[:2] = ActionKind.SPAN, (1, 0)
    spans = replace(run.spans, kind=kind, peer=peer)
    named = replace(run, spans=spans, names=("augment", "load"))
    assert differences(named, read_trace([written(named, tmp_path)])) == []


def damaged(whole: Trace, /, folder: Path, **metadata: Any) -> Path:
    path = written(whole, folder)
    document = json.loads(path.read_text())
    document["metadata"] |= metadata
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    "metadata",
    [
        {"job": 3},
        {"job": {"framework": "megatron"}},
        {"hosts": []},
        {"hosts": [{"name": 1, "ranks": [0], "offset_ns": 0}]},
        {"ranks": [7]},
        {"names": [[]]},
        {"run": None},
    ],
    ids=str,
)
def test_what_does_not_hold_together_is_refused(
    run: Trace, tmp_path: Path, metadata: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="is damaged"):
        read_trace([damaged(run, folder=tmp_path, **metadata)])


def test_a_file_that_was_cut_off_says_no_run_and_is_refused(run: Trace, tmp_path: Path) -> None:
    path = written(run, tmp_path)
    path.write_bytes(path.read_bytes()[:-3000])
    with pytest.raises(InputError, match="merge the recordings again"):
        read_trace([path])


def test_two_runs_and_sizes_are_refused(run: Trace, tmp_path: Path) -> None:
    path = written(run, tmp_path)
    other = tmp_path / "other.json"
    other.write_text(path.read_text().replace('"step":1', '"step":5'))
    with pytest.raises(InputError, match="give one of them"):
        read_trace([path, other])
    with pytest.raises(InputError, match="leave out --pp"):
        read_trace([path], {"pp": 4})
