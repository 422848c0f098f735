"""Step lines: what they say of steps, in bounded memory however many they are."""

from __future__ import annotations

import pytest

from serried.diagnose.evidence.quote import NOBODY, Numbering, Speaker
from serried.diagnose.steps.folding import MOST_ROWS
from serried.diagnose.steps.of_lines import StepLines

RANKS = (0, 1)


def heard(lines: list[str], speaker: Speaker = NOBODY) -> StepLines:
    found = StepLines()
    found.hear("console.log", speaker, 1, [line.encode() for line in lines])
    return found


@pytest.mark.parametrize(
    ("line", "ms"),
    [
        ("step 7 compute_ms 46.5 step_ms 99.5", 99.5),
        ("global_step=7, step_time_s: 0.25", 250.0),
        (" iteration  7/ 500 | elapsed time per iteration (ms): 1234.5 | lm loss: 2.1", 1234.5),
        ("Step 7/100 1.5 s/step", 1500.0),
        ("▏▏▏ 7% step 7 [00:54<4:54, 2.5s/it]", 2500.0),
    ],
)
def test_lines_of_several_frameworks_are_read(line: str, ms: float) -> None:
    found = heard([f"[rank3]: {line}"])
    assert found.steps[3].row(7)["step"] == pytest.approx(ms * 1e6)


def test_a_share_of_the_steps_is_no_number_of_a_step() -> None:
    assert not heard(["[rank0]: Steps:  24%|██▌ | 364/1500 [5:14:11<15:58:09, 50.79s/it]"]).steps


def test_a_long_job_is_kept_in_bounded_rows_with_its_latest_steps() -> None:
    count = 5 * MOST_ROWS
    found = StepLines()
    for rank in RANKS:
        lines = [f"step {n} compute_ms 4 step_ms {10 + (n >= 4096)}".encode() for n in range(count)]
        found.hear(f"rank_{rank}.log", Speaker(rank, Numbering.GLOBAL), 1, lines)

    whole, latest = found.table(), found.table(is_latest=True)
    assert whole is not None
    assert latest is not None
    assert (len(whole), whole.width) == (count // 8 - 1, 8)
    assert whole.period_ns.tolist() == [1e7 + 1e6 * (n >= 4096) for n in range(8, count, 8)]
    assert (len(latest), latest.width, latest.steps[-1]) == (MOST_ROWS, 1, count - 1)
    assert all(len(folded) <= MOST_ROWS for folded in found.steps.values())


def test_a_console_and_the_files_of_single_ranks_count_once() -> None:
    lines = [f"step {n} step_ms 10" for n in range(6)]
    found = heard([f"[default0]:{line}" for line in lines])
    found.hear("rank_0.log", Speaker(0), 1, [line.encode() for line in lines])
    assert not found.is_mixed


def test_two_ranks_that_go_by_one_number_are_not_taken_for_one() -> None:
    lines = [f"[default0]:step {n} step_ms {ms}" for n in range(6) for ms in (10, 14)]
    assert heard(lines).table() is None


def test_sizes_of_axes_are_no_places() -> None:
    lines = [f"[rank{rank}]: rank {rank} runs with tp=2 pp=4" for rank in RANKS]
    lines += [f"[rank{r}]: step {n} compute_ms 4 step_ms 9" for r in RANKS for n in range(6)]
    table = heard(lines).table()
    assert table is not None
    assert not table.has_pipeline
    assert not table.exchange


def test_a_number_that_is_the_rank_by_chance_is_not_taken_for_it() -> None:
    rows = [
        f"2026-01-02T03:00:{second:02d}Z [rank3]: step {second} step_ms {10 + second}"
        for second in range(3, 40)
    ]
    found = heard(rows)
    assert list(found.steps) == [3]
    assert sorted(found.steps[3].latest) == list(range(3, 40))


@pytest.mark.parametrize("carry", ['{{"log": "{0}\\n"}}', "\x1b[36m{0}\x1b[0m", "&gt; {0}", "{0}"])
def test_lines_are_read_alike_whatever_carries_them(carry: str) -> None:
    rows = [
        carry.format(f"[rank{rank}]: step {n} data_ms {n % 7}.5 step_ms {n}.25 lr 1.2E-05")
        for n in range(8, 120)
        for rank in (0, 11)
    ]
    found = heard(rows)
    assert sorted(found.steps) == [0, 11]
    for folded in found.steps.values():
        assert dict(folded.latest) == {
            n: {"step": n * 1e6 + 0.25e6, "data": (n % 7) * 1e6 + 0.5e6} for n in range(8, 120)
        }


def test_lines_of_another_form_within_those_of_one_keep_their_place() -> None:
    rows = [f"[rank0]: step {n} step_ms {n if n % 10 else f'{n}.0 (slow)'}" for n in range(1, 50)]
    found = heard(rows)
    assert list(found.steps[0].latest) == list(range(1, 50))


def test_a_line_is_no_steps_in_a_file_of_nobody_and_is_in_a_ranks() -> None:
    rows = [f"iteration {n} step_ms 9".encode() for n in range(6)]
    found = heard([row.decode() for row in rows])
    assert not found.steps
    found.hear("rank_4.log", Speaker(4), 1, rows)
    assert sorted(found.steps[4].latest) == list(range(6))


def test_moments_of_a_long_job_are_kept_for_each_row() -> None:
    rows = [
        f"[2026-01-{1 + n // 86400:02d} {n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}] "
        f"[rank0]: step {n} step_ms 1000"
        for n in range(20_000)
    ]
    found = StepLines()
    for at in range(0, len(rows), 3000):
        found.hear("job.log", NOBODY, at, [row.encode() for row in rows[at : at + 3000]])
    table = found.table()
    assert table is not None
    apart = {round(each / 1e9) for each in table.began_ns[1:] - table.began_ns[:-1]}
    assert apart and min(apart) > 0 and max(apart) <= 2 * table.width
