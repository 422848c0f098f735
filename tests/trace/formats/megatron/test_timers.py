"""Megatron's printed timers are read in all their forms, whatever else stands in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.errors import InputError
from serried.trace.formats.megatron.statistics import TimerStatistics, measure_timers
from serried.trace.formats.megatron.timers import TimerLog, read_timer_log, timer_log
from serried.trace.formats.reading import read_trace

LOGS = Path(__file__).parents[3] / "goldens" / "traces" / "megatron_timers"
ITERATION = (
    " iteration {:8d}/     100 | consumed samples: 8 | elapsed time per iteration (ms): {:.1f} |"
    " global batch size:     8 |\n"
)


def written(folder: Path, *lines: str | bytes) -> Path:
    path = folder / "rank3.log"
    path.write_bytes(b"".join(each.encode() if isinstance(each, str) else each for each in lines))
    return path


@pytest.mark.parametrize("form", ["max", "minmax", "all"])
def test_what_megatrons_own_timers_print_is_read(form: str) -> None:
    log = read_timer_log(LOGS / f"{form}.log")
    assert log.form == form
    assert (log.world_size, log.seq_length) == (4, 1024)
    assert log.sizes == {"dp": 2, "cp": 1, "tp": 1, "pp": 2}
    assert [each.number for each in log.iterations] == [1, 5, 10]
    # Iteration 1 is printed before its interval is over, checkpoints are of no step.
    assert [block.iteration for block in log.blocks] == [5, 10]
    assert [block.most["backward-compute"] for block in log.blocks] == [395.57, 397.54]
    assert len(log.blocks[0].most) == 12
    assert all((form == "max") != bool(block.least) for block in log.blocks)


def test_every_ranks_times_are_kept_and_ranks_without_the_timer_are_not_there() -> None:
    by_rank = read_timer_log(LOGS / "all.log").blocks[1].by_rank
    assert by_rank["backward-compute"] == {0: 323.2, 1: 326.43, 2: 329.66, 3: 397.54}
    assert set(by_rank["forward-recv"]) == {2, 3}


def test_the_oldest_form_is_of_the_printing_rank(tmp_path: Path) -> None:
    times = "time (ms) | forward-compute: 193.77 | backward-compute: 73.02 | optimizer: 63.01\n"
    log = read_timer_log(written(tmp_path, ITERATION.format(10, 356.2), times))
    assert log.form == "one rank"
    assert log.blocks[0].most == {
        "forward-compute": 193.77,
        "backward-compute": 73.02,
        "optimizer": 63.01,
    }


def test_prefixes_noise_and_lines_without_end_change_nothing(tmp_path: Path) -> None:
    lines = (LOGS / "all.log").read_bytes().splitlines(keepends=True)
    noise = [b"\xff\xfe not text \x00\n", b"x" * 200_000 + b"\n", b"warning: rank 7: slow\n"]
    path = tmp_path / "noisy.log"
    path.write_bytes(
        b"".join(b"[default3]:" + line + noise[at % 3] for at, line in enumerate(lines))
    )
    clean = read_timer_log(LOGS / "all.log")
    found = read_timer_log(path)
    assert (found.blocks, found.iterations) == (clean.blocks, clean.iterations)


@pytest.mark.parametrize("form", ["max", "minmax", "all"])
def test_a_log_whose_iterations_go_back_is_said_to_hold_two_runs(tmp_path: Path, form: str) -> None:
    text = (LOGS / f"{form}.log").read_bytes()
    (found,) = read_timer_log(written(tmp_path, text, text)).findings
    at = text.count(b"\n") + 1 + text[: text.index(b" iteration  ")].count(b"\n")
    assert f"in line {at} iteration 1 comes after 10; " in str(found)
    assert not read_timer_log(LOGS / f"{form}.log").findings


def test_a_log_that_goes_on_after_a_restart_holds_one_run(tmp_path: Path) -> None:
    block = "max time across ranks (ms):\n    optimizer .......: 5.00\n"
    numbers = (5, 10, 10, 15)  # 10 as another rank printed it
    lines = [ITERATION.format(n, 10.0 + at) + block for at, n in enumerate(numbers)]
    assert not read_timer_log(written(tmp_path, *lines)).findings
    again = [*lines, ITERATION.format(12, 10.0) + block]
    (found,) = read_timer_log(written(tmp_path, *again)).findings
    assert "in line 13 iteration 12 comes after 15; " in str(found)


def test_first_lines_of_every_step_count(tmp_path: Path) -> None:
    block = "max time across ranks (ms):\n    optimizer .......: 5.00\n"
    lines = [ITERATION.format(n, 10.0) + block for n in (1, 2, 3)]
    assert len(read_timer_log(written(tmp_path, *lines)).blocks) == 3


@pytest.mark.parametrize(
    "text",
    [
        "max time across ranks (ms):\n",
        "(min, max) time across ranks (ms):\n    save-checkpoint ....: (1.00, 2.00)\n",
        "times across ranks (ms):\n     rank  0: 1.0\n",
        "(min, max) time across ranks (ms):\n    optimizer ....: (nan, inf)\n",
    ],
)
def test_a_log_without_a_time_of_a_step_says_what_to_ask_for(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, ITERATION.format(1, 10.0), text)
    with pytest.raises(InputError, match=r"no whole interval of Megatron's timers; run past"):
        read_timer_log(path)


def test_a_folder_is_searched_and_two_logs_are_refused(tmp_path: Path) -> None:
    text = (LOGS / "max.log").read_text()
    (tmp_path / "stdout.log").write_text(text)
    (tmp_path / "stderr.log").write_text("nothing here\n")
    found = timer_log([tmp_path])
    assert found is not None and found.path == tmp_path / "stdout.log"
    (tmp_path / "again.txt").write_text(text)
    with pytest.raises(InputError, match=r"again\.txt and .*stdout\.log each hold Megatron's"):
        timer_log([tmp_path])
    assert timer_log([LOGS.parent / "paddle" / "single"]) is None


def test_no_timeline_is_made_of_totals() -> None:
    with pytest.raises(InputError, match="totals of a step without time stamps, so no timeline"):
        read_trace([LOGS / "all.log"])


# ----------------------------------------------------------------------- statistics


def measured(form: str = "all", **sizes: int) -> tuple[TimerLog, TimerStatistics]:
    log = read_timer_log(LOGS / f"{form}.log")
    return log, measure_timers(log, sizes)


def test_a_step_is_the_mean_iteration_after_the_first() -> None:
    _, found = measured()
    assert found.step_ms == pytest.approx((817.4 + 822.4) / 2)
    assert found.tflops == pytest.approx(123.4)
    assert found.samples_per_s == pytest.approx((32 / 0.8174 + 32 / 0.8224) / 2)
    assert found.tokens_per_s == pytest.approx(1024 * (found.samples_per_s or 0))


def test_a_ranks_parts_add_up_to_its_forward_backward_time() -> None:
    log, found = measured()
    for rank in found.ranks:
        whole = [block.by_rank["forward-backward"][rank.rank] for block in log.blocks]
        parts = rank.forward_ms + rank.backward_ms + rank.messages_ms + rank.rest_ms
        assert parts == pytest.approx(sum(whole) / len(whole))
        busy = rank.forward_ms + rank.backward_ms
        assert rank.not_computing == pytest.approx(1 - busy / parts)


def test_ranks_are_compared_within_their_stage_by_the_logs_own_sizes() -> None:
    _, found = measured()
    assert [rank.stage for rank in found.ranks] == [0, 0, 1, 1]
    slow = found.ranks[3].slower or 0
    assert slow == pytest.approx((166.035 + 396.555) / (164.43 + 328.835) - 1, abs=2e-3)
    assert abs(found.ranks[0].slower or 0) < 0.02


def test_sizes_given_stand_before_those_of_the_log() -> None:
    _, found = measured(pp=4)
    assert [rank.stage for rank in found.ranks] == [0, 1, 2, 3]
    assert {rank.slower for rank in found.ranks} == {None}


@pytest.mark.parametrize("form", ["max", "minmax"])
def test_without_every_ranks_times_only_the_extremes_are_known(form: str) -> None:
    _, found = measured(form)
    assert found.ranks == ()
    backward = next(each for each in found.timers if each.name == "backward-compute")
    assert backward.most_ms == pytest.approx((395.57 + 397.54) / 2)
    assert (backward.least_ms is None) == (form == "max")


def test_more_ranks_than_the_log_says_there_are_is_refused(tmp_path: Path) -> None:
    text = (LOGS / "all.log").read_text().replace("rank  3:", "rank  9:")
    with pytest.raises(InputError, match="has times of 10 ranks and says that there are 4"):
        measure_timers(read_timer_log(written(tmp_path, text)))


def test_lines_that_took_no_time_count_for_nothing(tmp_path: Path) -> None:
    block = "max time across ranks (ms):\n    optimizer .......: 5.00\n"
    lines = [ITERATION.format(n, ms) + block for n, ms in ((1, 0.0), (2, 30.0), (3, 10.0))]
    assert measure_timers(read_timer_log(written(tmp_path, *lines))).step_ms == 10
    nothing = read_timer_log(written(tmp_path, ITERATION.format(1, 0.0) + block))
    with pytest.raises(InputError, match="no iteration line with a time beside its timers"):
        measure_timers(nothing)
