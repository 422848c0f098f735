"""The table of limits: each row is one that a reader holds to."""

from __future__ import annotations

import re
from pathlib import Path

import serried
from serried import limits
from serried.limits import Limit

SOURCES = Path(serried.__file__).parent
HELD = re.compile(r"\b(\w+)\.most\b")
ROWS = {name: row for name, row in vars(limits).items() if isinstance(row, Limit)}


def test_each_row_bounds_something_in_a_unit() -> None:
    assert all(row.most > 0 and row.unit and row.bounds for row in ROWS.values())


def test_each_row_is_held_to_by_a_reader() -> None:
    readers = [path for path in SOURCES.rglob("*.py") if path.name != "limits.py"]
    held = {name for path in readers for name in HELD.findall(path.read_text(encoding="utf-8"))}
    assert ROWS.keys() - held == set()


def test_rows_stand_in_the_table_and_nowhere_else() -> None:
    own = re.compile(r"(?m)^_?(?:LIMIT|MOST)_\w+ = \d[\d_*< ]*$")
    launch = list((SOURCES / "launch").rglob("*.py"))
    assert [path.name for path in launch if own.search(path.read_text(encoding="utf-8"))] == []
