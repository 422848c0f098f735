"""A real job is scraped while it trains, while it dies, and after it has died."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

from tests.runtime.test_watched_job import COMMAND, TRAIN, until
from tests.views.cli.diagnose.test_metrics import Samples, scraped

STILL = ("serried_still_seconds",)
WATCH = "diagnose --watch --metrics 0 --still 5 --every 0.2"


def test_a_scrape_is_answered_while_the_job_trains_and_while_it_dies(tmp_path: Path) -> None:
    found: Samples = {}

    def has(*name: str) -> bool:
        found.clear()
        found.update(scraped(url))
        return name in found

    folder = tmp_path / "pp2"
    folder.mkdir()
    with (
        subprocess.Popen(
            [*COMMAND, *TRAIN.split(), str(folder)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as training,
        subprocess.Popen(
            [*COMMAND, *WATCH.split(), str(folder)], stderr=subprocess.PIPE, text=True
        ) as watch,
    ):
        try:
            assert watch.stderr is not None
            (url,) = re.findall(r"http://\S+/metrics", watch.stderr.readline())
            until(lambda: has("serried_step_seconds"))
            # Two stages, four microbatches, 12 + 24 ms each: five of them one after the other.
            assert found["serried_step_seconds",] > 0.18
            assert 0.15 < found["serried_bubble_ratio",] < 1
            assert found["serried_world_size",] == found["serried_ranks", "running"] == 2
            assert found["serried_rank_step", "0"] >= found["serried_steps_measured",] >= 1
            os.killpg(training.pid, signal.SIGKILL)
            for _ in range(20):  # whatever the files are like in this moment, it is answered
                assert has("serried_step_seconds")
            until(lambda: has("serried_notices_total", "still") and found[STILL] >= 5)
            assert has("serried_step_seconds")  # what was measured last stays
        finally:
            watch.kill()
            if training.poll() is None:
                os.killpg(training.pid, signal.SIGKILL)
