"""PyTorch's CSV of actions: written, read, and refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from serried.errors import InputError
from serried.pipeline import Request, Schedule, generate, read_csv, to_csv
from tests.pipeline.strategies import schedules


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "plan.csv"
    path.write_text(text, encoding="utf-8")
    return path


@given(schedules())
def test_a_schedule_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[Schedule, Request]
) -> None:
    schedule, _ = case
    path = tmp_path_factory.mktemp("csv") / "plan.csv"
    path.write_text(to_csv(schedule), encoding="utf-8")
    again = read_csv(path)
    assert (again.code == schedule.code).all()
    assert (again.first == schedule.first).all()
    assert (again.placement.rank_of == schedule.placement.rank_of).all()
    assert again.num_microbatches == schedule.num_microbatches


def test_rows_are_of_equal_length() -> None:
    rows = to_csv(generate("dualpipev", Request(4, 8))).splitlines()
    assert len({row.count(",") for row in rows}) == 1


def test_messages_and_empty_cells_are_read_over(tmp_path: Path) -> None:
    text = "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD\n,1RECV_F0,1F0,1B0,1SEND_B0,\n"
    assert to_csv(read_csv(file(tmp_path, text))) == "0F0,0B0\n1F0,1B0\n"


def test_rows_of_unequal_length_are_read_as_pytorch_writes_them(tmp_path: Path) -> None:
    assert read_csv(file(tmp_path, "0F0,,0B0\n,1F0,1B0,,\n")).num_microbatches == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0F0,0X0\n", "{path}, row 1, cell 2: '0X0' is not an action; one reads "
                      "<stage><kind><microbatch>, such as 3F2"),
        ("0F0,0B0\n1F0,F0\n", "{path}, row 2, cell 2: 'F0' is not an action; one reads "
                              "<stage><kind><microbatch>, such as 3F2"),
        ("0F0,0B0\n1F0\n", "{path} is ragged: row 2 has 1 cells, row 1 has 2; plan.csv lacks 1B0, "
                           "which rank 1 must run"),
        ("0F0,0B0\n2F0,2B0\n", "stage 1 of plan.csv is on no rank; its stages are 0 to 2, each on "
                               "one"),
        ("0F0,0B0,1F0\n1B0,,\n", "stage 1 of plan.csv is on ranks 0 and 1; a stage is on one rank"),
        ("0F0,0B0\n,\n1F0,1B0\n", "rank 1 of plan.csv has no actions; a schedule has a row for "
                                  "each rank that computes, and no other"),
        ("", "plan.csv has no actions; a schedule has a row for each rank"),
        ("0F0,0B0,0F0\n1F0,1B0,\n", "plan.csv runs 0F0 2 times; each action stands once"),
        ("0F0,0B99999\n", "plan.csv has 2 actions, too few for 1 stages and the 100000 "
                          "microbatches that it names"),
        ("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n",
         "plan.csv deadlocks, each rank waiting for what the next has put behind its own: "
         "rank 0: 0B0 ← 1B0, rank 1: 1F1 ← 0F1"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_run_is_told_why(tmp_path: Path, text: str, sentence: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(InputError) as error:
        read_csv(path)
    assert str(error.value) == sentence.format(path=path)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv cannot be read: No such file"):
        read_csv(tmp_path / "none.csv")


@pytest.mark.parametrize("data", [b"\xff\xfe0F0", b"0F0," + b"x" * 200_000])
def test_what_is_no_csv_text_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "plan.csv"
    path.write_bytes(data)
    with pytest.raises(InputError) as error:
        read_csv(path)
    assert str(error.value) == (
        f"{path} is no CSV text; a schedule has a row for each rank, such as 0F0,0F1,0B0,0B1"
    )


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    with path.open("wb") as file:
        file.truncate(50 << 20)
    with pytest.raises(InputError) as error:
        read_csv(path)
    assert str(error.value) == (
        f"{path} holds more than 32 MB, the most that serried reads of a schedule"
    )


def test_a_long_or_broken_cell_is_shown_in_short(tmp_path: Path) -> None:
    for cell, shown in (("x" * 90_000, "x" * 40 + "…"), ('"0F0\nB"', "0F0 B")):
        with pytest.raises(InputError) as error:
            read_csv(file(tmp_path, f"0F0,{cell}\n"))
        assert f"cell 2: '{shown}' is not an action; " in str(error.value)
    with pytest.raises(InputError, match="is not an action"):
        read_csv(file(tmp_path, "0F" + "9" * 5000))
