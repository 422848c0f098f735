"""A receiver of OTLP over HTTP that keeps what it is sent."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

Points = dict[tuple[str, ...], float]


class Receiver(HTTPServer):
    """Receives OTLP over HTTP, as a collector does, and keeps the points that it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.points: Points = {}
        self.units: dict[str, str] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def take(self, body: bytes) -> None:
        request = ExportMetricsServiceRequest.FromString(body)
        for resource in request.resource_metrics:
            for metric in (each for scope in resource.scope_metrics for each in scope.metrics):
                self.units[metric.name] = metric.unit
                data = metric.gauge if metric.HasField("gauge") else metric.sum
                for point in data.data_points:
                    named = {each.key: each.value.string_value for each in point.attributes}
                    assert named.pop("job")
                    value = point.as_double if point.HasField("as_double") else point.as_int
                    self.points[(metric.name, *named.values())] = value


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        assert self.path == "/v1/metrics"
        body = self.rfile.read(int(self.headers["content-length"]))
        is_packed = self.headers.get("content-encoding") == "gzip"
        self.server.take(gzip.decompress(body) if is_packed else body)
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Receives in a thread while a test runs."""
    server = Receiver()
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
