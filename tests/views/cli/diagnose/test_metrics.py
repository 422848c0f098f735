"""``serried diagnose --watch --metrics``: what Prometheus gets, and what is refused."""

from __future__ import annotations

import builtins
import json
import re
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from serried.diagnose.watch.figures import LatestFigures, RankFigures
from serried.diagnose.watch.look import JobLook, RankIs, RankLook
from serried.diagnose.watch.watching import Notice
from serried.finding import said
from serried.views.cli.diagnose.metrics import JobMetrics, answering, serve_metrics
from serried.views.cli.diagnose.told import WatchedState
from tests.conftest import Call

DASHBOARD = Path(__file__).parents[4] / "deploy" / "grafana.json"
FIGURES = LatestFigures(
    num_steps=22,
    step_s=0.5,
    microbatches_per_s=16.0,
    idle=0.25,
    has_pipeline=True,
    ranks=(RankFigures(0, 0.3, 0.1, 0.05), RankFigures(1, 0.3, 0.15, None)),
)
LOOK = JobLook(
    1000.0,
    {0: RankLook(0, 50, 7), 1: RankLook(1, 40, 6, RankIs.GONE), 2: RankLook(2, 0)},
    world_size=4,
)
Samples = dict[tuple[str, ...], float]


def scraped(url: str) -> Samples:
    """Returns every sample of a scrape, by its name and the values of its labels but the job."""
    answer = httpx.get(url)
    assert answer.status_code == 200
    return {
        (
            sample.name,
            *(value for key, value in sample.labels.items() if key != "job"),
        ): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def told(*, figures: LatestFigures | None = FIGURES, has_ended: bool = False) -> JobMetrics:
    metrics = JobMetrics("pp4")
    metrics.hear(Notice(1000.0, "gone", said("a rank is gone"), (1,)))
    metrics.tell(WatchedState(LOOK, figures, 0.0, 30.0, has_ended))
    return metrics


def test_a_scrape_tells_what_the_watch_saw_last() -> None:
    found = scraped(serve_metrics(told(), "0"))
    assert found["serried_step_seconds",] == 0.5
    assert found["serried_bubble_ratio",] == 0.25
    assert ("serried_idle_ratio",) not in found
    assert found["serried_rank_lateness_seconds", "0"] == 0.05
    assert ("serried_rank_lateness_seconds", "1") not in found  # it has no like
    assert found["serried_ranks", "gone"] == 1
    assert found["serried_ranks", "running"] == 2
    assert found["serried_rank_step", "1"] == 6
    assert ("serried_rank_step", "2") not in found  # it has begun no step
    assert found["serried_world_size",] == 4
    assert found["serried_notices_total", "gone"] == 1
    assert found["serried_still_seconds",] > found["serried_still_allowed_seconds",] == 30


def test_a_job_without_figures_still_tells_how_it_goes() -> None:
    found = scraped(serve_metrics(told(figures=None, has_ended=True), "127.0.0.1:0"))
    assert found["serried_job_ended",] == 1
    assert found["serried_still_seconds",] == 0  # what has ended stalls no more
    assert ("serried_step_seconds",) not in found


def test_before_the_first_look_a_scrape_is_empty() -> None:
    assert scraped(serve_metrics(JobMetrics("pp4"), "0")) == {}


def test_the_end_of_a_job_waits_until_it_is_scraped() -> None:
    metrics = told(has_ended=True)
    url = serve_metrics(metrics, "0")
    scraped(url)
    metrics.linger(60)  # comes back at once, or the test ends by its time limit
    metrics.tell(WatchedState(LOOK, None, 0.0, 30.0, True))
    metrics.linger(0.01)


def test_a_watch_goes_only_once_the_last_scrape_was_sent() -> None:
    metrics = told(has_ended=True)
    answer: Any = answering(metrics, lambda *_: [b"figures"])({}, None)
    lingering = threading.Thread(target=metrics.linger)
    lingering.start()
    assert list(answer) == [b"figures"]
    lingering.join(0.05)
    assert lingering.is_alive()
    answer.close()  # as the server does after the last byte
    lingering.join()


@pytest.mark.parametrize("address", ["", "port", "65536", "127.0.0.1:", "a b:1", "-1", "1:2:3"])
def test_what_is_no_address_is_said_in_a_sentence(
    address: str, serried: Call, tmp_path: Path
) -> None:
    found = serried("diagnose", "--watch", str(tmp_path), "--metrics", address)
    assert (found.code, "it takes PORT or HOST:PORT" in found.err) == (2, True)


def test_a_port_that_is_taken_is_said_in_a_sentence(serried: Call, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        found = serried("diagnose", "--watch", str(tmp_path), "--metrics", port, "--lang", "zh")
    assert (found.code, f"用不了 127.0.0.1 的端口 {port}" in found.err) == (3, True)


def test_a_missing_client_is_said_with_what_adds_it(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = builtins.__import__

    def without(name: str, *rest: Any) -> object:
        if name.startswith("prometheus_client"):
            raise ModuleNotFoundError("no", name="prometheus_client")
        return imported(name, *rest)

    monkeypatch.delitem(sys.modules, "serried.views.cli.diagnose.metrics")
    monkeypatch.setattr(builtins, "__import__", without)
    found = serried("diagnose", "--watch", str(tmp_path), "--metrics", "0")
    assert (found.code, "pip install 'serried[metrics]'" in found.err) == (3, True)


def test_the_dashboard_asks_for_every_figure_and_for_no_other() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"serried_\w+", target["expr"])
    }
    with_pipeline = scraped(serve_metrics(told(), "0"))
    unlike = LatestFigures(22, 0.5, 16.0, 0.25, False, FIGURES.ranks)
    without = scraped(serve_metrics(told(figures=unlike), "0"))
    offered = {name for name, *_ in (*with_pipeline, *without)}
    told_apart = {"serried_look_timestamp_seconds", "serried_job_ended", "serried_steps_measured"}
    assert asked == offered - told_apart
