"""Tracebacks in which torch repeats what another process raised."""

from __future__ import annotations

from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.text.python import RepeatedTraceback, Tracebacks

REPEATED = """Traceback (most recent call last):
  File "train.py", line 19, in main
  File "torch/_utils.py", line 794, in reraise
ValueError: Caught ValueError in DataLoader worker process 1.
Original Traceback (most recent call last):
  File "torch/utils/data/_utils/worker.py", line 374, in _worker_loop
  File "data.py", line 14, in __getitem__
ValueError: sample 21 is broken
"""


def exceptions(text: str) -> list[tuple[str, object]]:
    tracebacks = Tracebacks()
    lines = enumerate(text.splitlines(), 1)
    signs = [s for number, row in lines for s in tracebacks.read(log_line(row, "x", number))]
    signs += tracebacks.cut()
    return [(s.text, s.facts["frames"]) for s in signs if s.kind == "exception"]


def test_what_a_worker_of_the_loader_raised_is_told_where_it_was_raised() -> None:
    [(text, frames)] = exceptions(REPEATED)
    assert text == "ValueError: sample 21 is broken"
    assert isinstance(frames, tuple)
    assert frames[-1] == ("data.py", 14, "__getitem__")


def test_where_its_own_words_are_cut_off_the_repeated_ones_are_told() -> None:
    cut = REPEATED[: REPEATED.index('  File "torch/utils')]
    assert [text for text, _ in exceptions(cut)] == [
        "ValueError: Caught ValueError in DataLoader worker process 1."
    ]


def test_dots_in_the_place_of_left_out_lines_do_not_end_a_repeated_traceback() -> None:
    repeated = RepeatedTraceback()
    rows = [
        "-- Process 1 terminated with the following error:",
        ".",
        "...",
        "AssertionError",
        "end",
    ]
    own = [repeated.own(log_line(row, "x", number)) for number, row in enumerate(rows, 1)]
    assert [line.speaker.rank for line in own] == [1, 1, 1, 1, None]
