from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import Call

EMULATED = ("--compute", "emulated", "--forward-ms", "8", "--backward-ms", "16")


def test_layouts_are_planned_and_the_best_of_them_run_for_real(
    serried: Call, tmp_path: Path
) -> None:
    file = tmp_path / "tuned.json"
    job = ("--nproc", "2", "--layers", "4", "--steps", "4", "--global-batch-size", "8")
    done = serried("tune", *job, *EMULATED, "--best", "1", "--schedules", "1f1b", "-o", str(file))
    assert done.code == 0, done.err
    found = json.loads(file.read_text())
    planned = [each["planned_s"] for each in found["layouts"]]
    assert planned == sorted(planned)
    ran = [each for each in found["layouts"] if each["measured_s"]]
    assert [each["calibrates"] for each in ran].count(False) == 1
    # The model takes 4 microbatches x 24 ms, half of it on each of two ranks at the very least.
    assert all(each["measured_s"] > 0.04 for each in ran)
    assert found["best"] == min(ran, key=lambda each: each["measured_s"])["name"]
