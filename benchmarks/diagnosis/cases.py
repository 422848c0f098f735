"""Logs with their truth: one folder of excerpts and a ``cases.json`` that says what each tells.

A case names the excerpt (``file``), what its thread establishes (``class``, ``kind``,
``culprit_ranks``: null where no rank may be named), whether the root stands in the excerpt
(``root_in_log``: yes, partly, no) and the figures of its collective.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FIELDS = ("op", "seq", "numel_in", "numel_out", "timeout_ms", "pg")
"""Figures of a collective that must be read as they are printed."""


@dataclass(frozen=True)
class Case:
    """Holds one excerpt and its truth."""

    name: str
    file: Path
    cause_class: str
    kind: str
    culprits: tuple[int, ...] | None
    collective: Mapping[str, Any]

    @property
    def tells_culprit(self) -> bool:
        """Whether the log tells who it was."""
        return bool(self.culprits)


def read_cases(folder: Path) -> list[Case]:
    """Returns the cases of a folder, in their order."""
    return [
        Case(
            name=row.get("id") or row["file"],
            file=folder / row["file"],
            cause_class=row["class"],
            kind=row["kind"],
            culprits=None if row["culprit_ranks"] is None else tuple(row["culprit_ranks"]),
            collective=row.get("collective") or {},
        )
        for row in json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    ]
