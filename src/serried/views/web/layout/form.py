"""The page's form of a job, made from the table of sizes: a module of the page, written here.

python -m serried.views.web.layout.form    writes static/desk/state/sizes.js again
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from serried.mesh.sizes import PLACES, SIZES, TABLE, SizeField

MODULE = Path(__file__).parents[1] / "static" / "desk" / "state" / "sizes.js"
RANKS = ("world_size", *PLACES)
"""Sizes that say how many ranks there are and where they sit, in a row of their own."""
SPLITS = ("tp", "pp", "cp")
"""Sizes of the row below, which shows as well what they leave: dp."""
EXACT = 2**53 - 1
"""The largest number that the page holds exactly."""
OPENS_WITH = {"world_size": 16, "tp": 2, "pp": 4}
"""The job that a page shows when nothing asks for another."""


def module() -> str:
    """Returns the module: every size of the form, and what each size of a job is called."""
    asked = [*SIZES, *PLACES, "nvlink_domain"]
    rows = [_row(TABLE[name]) for name in asked if name != "dp"]
    labels = {name: dict(each.label) for name, each in TABLE.items()}
    return "\n".join(
        [
            "// The sizes of a job, from the table of Python; layout/form.py writes this module.",
            "",
            "/** Every size that the form asks for, in the table's order. */",
            "export const SIZES = /** @type {const} */ ([",
            *(line for row in rows for line in _lines(row)),
            "]);",
            "",
            "/** Names by language. @type {Record<string, Record<string, string>>} */",
            "export const LABELS = {",
            *(f"  {name}: {_object(label)}," for name, label in labels.items()),
            "};",
            "",
        ]
    )


def _row(size: SizeField) -> dict[str, object]:
    start = OPENS_WITH.get(size.name, size.default)
    return {
        "name": size.name,
        "form": size.form,
        "part": "ranks" if size.name in RANKS else "splits" if size.name in SPLITS else "more",
        "usual": "" if size.default is None else str(size.default),
        "start": "" if start is None else str(start),
        "least": size.least,
        "most": min(size.most, EXACT),
    }


def _lines(row: Mapping[str, object]) -> Iterator[str]:
    yield "  {"
    yield from (f"    {key}: {json.dumps(value)}," for key, value in row.items())
    yield "  },"


def _object(values: Mapping[str, str]) -> str:
    told = (f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items())
    return f"{{ {', '.join(told)} }}"


if __name__ == "__main__":
    MODULE.write_text(module(), encoding="utf-8")
