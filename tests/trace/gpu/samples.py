"""Public profiles of GPUs, and what another program measures of them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from serried.trace.formats.reading import read_recording
from serried.trace.gpu.activity import GpuTrace

FOLDER = Path(__file__).parents[2] / "goldens" / "traces" / "hta"
"""Samples of HolisticTraceAnalysis (f4d0062, MIT), cut down by their authors."""
GOLDEN: dict[str, Any] = json.loads((FOLDER / "hta_0.5.0.json").read_text())
"""What HolisticTraceAnalysis 0.5.0 measures, written by ``tests/oracle/holistic.py``."""
MEASURED: dict[str, dict[str, Any]] = GOLDEN["files"]


@cache
def sample(*names: str) -> GpuTrace:
    """Returns profiles, read once."""
    found = read_recording([FOLDER / name for name in names])
    assert isinstance(found, GpuTrace)
    return found
