"""A tracker for Accelerate of a few lines, as its documentation describes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from accelerate.tracking import GeneralTracker


class JsonLines(GeneralTracker):
    """Tracks into a file, one JSON line a step; takes the place of TensorBoard and others."""

    name, requires_logging_directory = "jsonl", False

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "log.jsonl"

    @property
    def tracker(self) -> Path:
        return self.path

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self.log({"config": values})

    def log(self, values: dict[str, Any], step: int | None = None, **more: Any) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **values}) + "\n")
