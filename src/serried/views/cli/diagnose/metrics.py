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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, make_wsgi_app, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from serried.diagnose.watch.watching import Notice
from serried.errors import EnvironmentProblem, InputError
from serried.views.cli.diagnose.told import WatchedFamily, WatchedState, families

LINGER_S = 60.0
"""How long the figures of a job that ended are offered, where nobody has scraped them yet."""
HOST = "127.0.0.1"
WsgiAnswer = Callable[[dict[str, Any], Any], Iterable[bytes]]
"""A WSGI application: what answers a request."""
_ADDRESS = re.compile(r"(?:(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:\[\]]+):)?(?P<port>\d{1,9})")


@dataclass(eq=False)
class JobMetrics(Collector):
    """Tells Prometheus what the watch saw last of one job; ``folder`` names the job."""

    folder: str
    _told: tuple[WatchedState, threading.Event] | None = None
    """What was seen last, and whether a scrape of it was sent."""
    _findings: Counter[str] = field(default_factory=Counter)

    def hear(self, notice: Notice) -> None:
        """Counts one thing that the watch said."""
        self._findings[notice.kind] += 1

    def tell(self, state: WatchedState) -> None:
        """Puts what was seen now in the place of what was seen before."""
        self._told = state, threading.Event()

    def linger(self, most_s: float = LINGER_S) -> None:
        """Waits until what was told last is scraped, ``most_s`` seconds at most."""
        if self._told is not None:
            self._told[1].wait(most_s)

    def scrape(self) -> Callable[[], None]:
        """Begins a scrape; what it returns is called once the answer was sent."""
        return (lambda: None) if self._told is None else self._told[1].set

    def describe(self) -> list[Metric]:
        """Returns nothing: what there is depends on the job."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yields the families of one scrape."""
        told, notices = self._told, dict(self._findings)
        if told is None:
            return
        for each in families(told[0], notices):
            yield self._family(each)

    def _family(self, each: WatchedFamily) -> Metric:
        made = CounterMetricFamily if each.is_counted else GaugeMetricFamily
        labels = ("job", each.label) if each.label else ("job",)
        family = made(each.name, each.text, labels=labels)
        for value_of_label, value in each.values.items():
            names = (self.folder, value_of_label) if each.label else (self.folder,)
            family.add_metric(names, value)
        return family


@dataclass(frozen=True)
class _Sending:
    """Holds an answer of the server, which closes it after the last byte has left."""

    parts: Iterable[bytes]
    close: Callable[[], None]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.parts)


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
    server.set_app(answering(metrics, make_wsgi_app(registry)))
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{server.server_port}/metrics"


def answering(metrics: JobMetrics, answer: WsgiAnswer) -> WsgiAnswer:
    """Returns what answers a scrape and then lets a watch go that waits for its last one."""

    def answer_and_tell(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        has_sent = metrics.scrape()  # of what stands now: what is told meanwhile waits for the next
        return _Sending(answer(environ, start_response), has_sent)

    return answer_and_tell


def _read_address(text: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise InputError(
            "--metrics {text} is no port; it takes PORT or HOST:PORT, such as 9464", text=text[:60]
        )
    return (found["host"] or HOST).strip("[]"), int(found["port"])
