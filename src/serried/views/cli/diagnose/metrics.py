"""The figures of a watched job for Prometheus: ``serried diagnose --watch DIR --metrics PORT``.

    the watch     after each look   tell(state)   one value, put in the old one's place
    Prometheus    GET /metrics      collect()     reads that value; nothing is measured

Prometheus' own client library serves them, in threads, so that a scrape is answered whatever the
job does meanwhile. OpenTelemetry's collector scrapes the same address.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from serried.diagnose.watch.figures import LatestFigures
from serried.diagnose.watch.look import JobLook, RankIs
from serried.diagnose.watch.watching import Notice
from serried.errors import EnvironmentProblem, InputError

LINGER_S = 60.0
"""How long the figures of a job that ended are offered, where nobody has scraped them yet."""
HOST = "127.0.0.1"
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:\[\]]+):)?(?P<port>\d{1,9})")


@dataclass(frozen=True)
class WatchedState:
    """Holds what is told of a job between two looks."""

    look: JobLook
    figures: LatestFigures | None
    moved_at: float
    """When the job last went on, in seconds since 1970."""
    allowed_s: float
    """How long it may stand still."""
    has_ended: bool


@dataclass(eq=False)
class JobMetrics(Collector):
    """Tells Prometheus what the watch saw last of one job; ``folder`` names the job."""

    folder: str
    _state: WatchedState | None = None
    _findings: Counter[str] = field(default_factory=Counter)
    _was_scraped: threading.Event = field(default_factory=threading.Event)

    def hear(self, notice: Notice) -> None:
        """Counts one thing that the watch said."""
        self._findings[notice.kind] += 1

    def tell(self, state: WatchedState) -> None:
        """Puts what was seen now in the place of what was seen before."""
        self._state = state
        self._was_scraped.clear()

    def linger(self, most_s: float = LINGER_S) -> None:
        """Waits until what was told last is scraped, ``most_s`` seconds at most."""
        self._was_scraped.wait(most_s)

    def describe(self) -> list[Metric]:
        """Returns nothing: what there is depends on the job."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yields the families of one scrape."""
        state, findings = self._state, dict(self._findings)
        if state is None:
            return
        yield from _progress(state, self.folder)
        if state.figures is not None:
            yield from _steps(state.figures, self.folder)
        told = CounterMetricFamily(
            "serried_notices",
            "What the watch said of the job, by its kind.",
            labels=("job", "kind"),
        )
        for kind, count in sorted(findings.items()):
            told.add_metric((self.folder, kind), count)
        yield told
        self._was_scraped.set()


def _progress(state: WatchedState, job: str) -> Iterator[Metric]:
    look = state.look
    yield _gauge(
        "serried_look_timestamp_seconds", "When the job was last looked at.", job, look.time
    )
    still = 0.0 if state.has_ended else max(0.0, time.time() - state.moved_at)
    yield _gauge("serried_still_seconds", "For how long no rank has gone on.", job, still)
    text = "For how long the job may stand still, as its own steps and pauses tell."
    yield _gauge("serried_still_allowed_seconds", text, job, state.allowed_s)
    yield _gauge("serried_job_ended", "1 where the job has ended.", job, float(state.has_ended))
    if look.world_size is not None:
        yield _gauge("serried_world_size", "Ranks of the job.", job, look.world_size)
    states = Counter(each.state for each in look.ranks.values())
    ranks = GaugeMetricFamily(
        "serried_ranks",
        "Ranks that wrote anything, by what became of them.",
        labels=("job", "state"),
    )
    for each in RankIs:
        ranks.add_metric((job, each.value), states[each])
    yield ranks
    steps = GaugeMetricFamily(
        "serried_rank_step", "The step that a rank began last.", labels=("job", "rank")
    )
    for rank, seen in look.ranks.items():
        if seen.step >= 0:
            steps.add_metric((job, str(rank)), seen.step)
    yield steps


def _steps(figures: LatestFigures, job: str) -> Iterator[Metric]:
    text = "Mean time from a step's start to the next one's, over the latest steps."
    yield _gauge("serried_step_seconds", text, job, figures.step_s)
    text = "Microbatches a second, of all replicas together."
    yield _gauge("serried_microbatches_per_second", text, job, figures.microbatches_per_s)
    text = "Share of the ranks' time in which they computed nothing, over the latest steps."
    name = "serried_bubble_ratio" if figures.has_pipeline else "serried_idle_ratio"
    yield _gauge(name, text, job, figures.idle)
    yield _gauge(
        "serried_steps_measured", "Steps that these figures are of.", job, figures.num_steps
    )
    for name, text, attribute in (
        ("serried_rank_compute_seconds", "Computing in a step, waits left out.", "compute_s"),
        ("serried_rank_wait_seconds", "Waiting in a step for messages and collectives.", "waits_s"),
        (
            "serried_rank_lateness_seconds",
            "How much longer than it the others of its stages wait in a step.",
            "waited_for_s",
        ),
    ):
        family = GaugeMetricFamily(name, text, labels=("job", "rank"))
        for rank in figures.ranks:
            if (value := getattr(rank, attribute)) is not None:
                family.add_metric((job, str(rank.rank)), value)
        yield family


def _gauge(name: str, text: str, job: str, value: float) -> Metric:
    family = GaugeMetricFamily(name, text, labels=("job",))
    family.add_metric((job,), value)
    return family


def serve_metrics(metrics: JobMetrics, address: str) -> str:
    """Serves what a job tells at ``[HOST:]PORT``, for as long as the process runs; returns its URL.

    Without a host only this machine can ask. Raises InputError for an address that is none, and
    EnvironmentProblem where the port cannot be had.
    """
    host, port = _read_address(address)
    registry = CollectorRegistry()
    registry.register(metrics)
    try:
        server, _ = start_http_server(port, host, registry)
    except socket.gaierror as error:
        raise InputError("{host} is no host that this machine knows", host=host) from error
    except OSError as error:
        raise EnvironmentProblem(
            "port {port} of {host} cannot be had ({reason}); --metrics 0 takes any that is free",
            port=port,
            host=host,
            reason=(error.strerror or str(error)).lower(),
        ) from error
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{server.server_port}/metrics"


def _read_address(text: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise InputError(
            "--metrics {text} is no port; it takes PORT or HOST:PORT, such as 9464", text=text[:60]
        )
    return (found["host"] or HOST).strip("[]"), int(found["port"])
