"""What a run tells on stderr: lines, and a bar below them only on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from serried.runtime.job.report import (
    Event,
    MemoryPeaks,
    RankReport,
    Resumed,
    Saved,
    Started,
    StepDone,
    Validated,
)
from serried.runtime.job.settings import TrainSettings
from serried.views.cli.train.progress import TrainProgress

RANK = RankReport(
    rank=0,
    pid=1,
    device="cpu",
    coordinates={},
    groups={},
    modules=(),
    parameter_bytes=0,
    reads_data=True,
)
EVENTS: list[Event] = [
    Started("run", (RANK,)),
    Resumed(3, "runs/step-000003"),
    StepDone(3, 5.5, 12.0),
    Validated(4, 5.25, 35200, 1.0),
    Saved(4, "runs/step-000004", 1.0),
    Saved(6, "runs/step-000006", 1.0, "No space left on device"),
    MemoryPeaks(8, (1024,)),  # told with the summary
]
LINES = [
    "1 rank (tp 1, pp 1, dp 1; megatron tp-cp-ep-dp-pp) ready on cpu",
    "resumed from runs/step-000003: 3 steps are done",
    "step 3  emulated compute  12 ms",
    "after 4 steps  loss 5.2500 on 35,200 held out bytes",
    "saved runs/step-000004",
    "could not save runs/step-000006: No space left on device; training goes on",
]


def told(console: Console) -> None:
    with TrainProgress(TrainSettings(world_size=1, steps=8), console) as progress:
        for event in EVENTS:
            progress.tell(event)


def test_each_event_is_a_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    told(Console(file=io.StringIO(), force_terminal=False))
    printed = capsys.readouterr()
    assert printed.err.splitlines() == LINES
    assert printed.out == ""


def test_each_line_is_said_in_chinese_where_that_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    told(Console(file=io.StringIO(), force_terminal=False))
    assert capsys.readouterr().err.splitlines() == [
        "1 个 rank（tp 1、pp 1、dp 1；megatron tp-cp-ep-dp-pp）已就绪，在 cpu 上",
        "从 runs/step-000003 接着训练：已完成 3 步",
        "step 3  模拟计算  12 ms",
        "4 步之后  留出的 35,200 字节上 loss 5.2500",
        "已保存 runs/step-000004",
        "无法保存 runs/step-000006：磁盘没有空间了；训练继续",
    ]


def test_on_a_terminal_a_bar_stands_below_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    screen = io.StringIO()
    told(Console(file=screen, force_terminal=True, width=100, _environ={}))
    shown = screen.getvalue() + capsys.readouterr().err
    assert all(line in shown for line in LINES)
    assert "4/8" in shown and "loss 5.5000" in shown
    assert "\x1b[?25h" in shown  # the cursor is there again at the end


def test_a_run_that_fails_leaves_no_bar_behind() -> None:
    screen = io.StringIO()
    progress = TrainProgress(
        TrainSettings(world_size=1, steps=8), Console(file=screen, force_terminal=True, _environ={})
    )
    with pytest.raises(KeyboardInterrupt), progress:
        progress.tell(EVENTS[1])
        raise KeyboardInterrupt
    assert screen.getvalue().count("\x1b[?25h") == 1
