"""Where ``serried diagnose --watch`` sends the figures of a job: ``--export KIND[=WHERE]``.

    otlp[=http://host:4318]     OpenTelemetry's own SDK, by its OTLP exporter over HTTP
    tensorboard=DIR             TensorBoard's event files
    wandb[=PROJECT]             Weights & Biases' own client, as it is logged in
    mlflow[=TRACKING_URI]       MLflow's own client

Each takes what the watch sees (``told.py``); the job itself sends nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from serried.diagnose.watch.watching import Notice
from serried.errors import EnvironmentProblem, InputError, SerriedError, listed
from serried.views.cli.diagnose.told import WatchedFamily, WatchedState, WatchListener, families

_SPLIT = re.compile(r"(?P<kind>\w+)(?:=(?P<where>.+))?", re.S)
_UNITS = {"_seconds": "s", "_ratio": "1"}


def exporter_of(asked: str, job: str) -> WatchListener:
    """Returns what exports the figures of a job, as ``KIND[=WHERE]`` asks for.

    Raises InputError for another kind or place, and EnvironmentProblem where its client is missing.
    """
    found = _SPLIT.fullmatch(asked)
    if found is None or found["kind"] not in _MAKERS:
        raise InputError(
            "--export {asked} is none; it takes {known}, each with =WHERE behind it",
            asked=asked[:60],
            known=listed(_MAKERS, last="or"),
        )
    kind, where = found["kind"], found["where"] or ""
    try:
        return _MAKERS[kind](where, job)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("serried"):
            raise
        raise EnvironmentProblem(
            "--export {kind} needs {package}, which is not installed; pip install '{extra}' adds "
            "it",
            kind=kind,
            package=error.name,
            extra=f"serried[{kind}]",
        ) from error
    except SerriedError:
        raise
    except Exception as error:  # clients of others have errors of their own: no login, no store
        reason = str(error).split("\n")[0]
        raise EnvironmentProblem(
            "--export {kind} cannot begin: {reason}", kind=kind, reason=reason
        ) from error


def scalars(found: list[WatchedFamily]) -> dict[str, float]:
    """Returns figures as experiment trackers name them, a rank's behind its number.

    >>> scalars([WatchedFamily("serried_rank_step", "", {"3": 7.0}, "rank")])
    {'serried/rank_step/3': 7.0}
    """
    return {
        "/".join(
            ["serried", each.name.removeprefix("serried_"), *([label] if label else [])]
        ): value
        for each in found
        for label, value in each.values.items()
    }


class OtlpExporter:
    """Sends figures by OpenTelemetry's SDK, which does so beside the watch and tries again."""

    def __init__(self, where: str, job: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource

        # Without an address, and for all else, the SDK's own variables count (OTEL_EXPORTER_…).
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=_endpoint(where)))
        resource = Resource.create({"service.name": "serried"})
        self.job = job
        self.provider = MeterProvider([reader], resource=resource)
        self.meter = self.provider.get_meter("serried")
        self.instruments: dict[str, Any] = {}
        self.notices: Counter[str] = Counter()
        self.counted: Counter[tuple[str, str]] = Counter()

    def hear(self, notice: Notice) -> None:
        """Counts one thing that the watch said."""
        self.notices[notice.kind] += 1

    def tell(self, state: WatchedState) -> None:
        """Sets what was seen now, which is sent at the next interval."""
        for each in families(state, self.notices):
            instrument = self._instrument(each)
            for label, value in each.values.items():
                attributes = {"job": self.job} | ({each.label: label} if each.label else {})
                if each.is_counted:
                    instrument.add(value - self.counted[each.name, label], attributes)
                    self.counted[each.name, label] = int(value)
                else:
                    instrument.set(value, attributes)

    def linger(self) -> None:
        """Sends what was told last."""
        self.provider.shutdown()

    def _instrument(self, each: WatchedFamily) -> Any:
        if each.name not in self.instruments:
            unit = next((unit for end, unit in _UNITS.items() if each.name.endswith(end)), "")
            made = self.meter.create_counter if each.is_counted else self.meter.create_gauge
            self.instruments[each.name] = made(each.name, unit=unit, description=each.text)
        return self.instruments[each.name]


def _endpoint(where: str) -> str | None:
    """Returns the address of a receiver; one without a path gets that of OTLP's metrics."""
    if not where:
        return None
    parts = urlsplit(where)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(
            "--export otlp={where} is no address of a receiver; one is http://localhost:4318",
            where=where[:60],
        )
    return where if parts.path.strip("/") else f"{where.rstrip('/')}/v1/metrics"


class TrackerExporter:
    """Logs figures by step into an experiment tracker: once for each step that all ranks began."""

    def __init__(self, log: Callable[[int, Mapping[str, float]], None], close: Callable[[], None]):
        self.log, self.close = log, close
        self.notices: Counter[str] = Counter()
        self.latest = -1

    def hear(self, notice: Notice) -> None:
        """Counts one thing that the watch said."""
        self.notices[notice.kind] += 1

    def tell(self, state: WatchedState) -> None:
        """Logs what was seen now, where the job is at another step or has ended."""
        steps = [each.step for each in state.look.ranks.values() if each.step >= 0]
        step = min(steps, default=-1)
        if step < 0 or (step == self.latest and not state.has_ended):
            return
        self.latest = step
        self.log(step, scalars(list(families(state, self.notices))))

    def linger(self) -> None:
        """Closes the log."""
        self.close()


def _tensorboard(where: str, job: str) -> WatchListener:
    from serried.runtime.run.tensorboard import EventFile, require_tensorboard

    require_tensorboard()
    if not where:
        raise InputError("--export tensorboard needs a folder: --export tensorboard=logs")
    file = EventFile(Path(where) / job)
    return TrackerExporter(file.add, file.close)


def _wandb(where: str, job: str) -> WatchListener:
    import wandb

    run = wandb.init(project=where or "serried", name=job, job_type="serried-watch")
    return TrackerExporter(lambda step, found: run.log(dict(found), step=step), run.finish)


def _mlflow(where: str, job: str) -> WatchListener:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(where or None)
    experiment = client.get_experiment_by_name("serried")
    number = experiment.experiment_id if experiment else client.create_experiment("serried")
    run = client.create_run(number, run_name=job).info.run_id

    def log(step: int, found: Mapping[str, float]) -> None:
        for name, value in found.items():
            client.log_metric(run, name, value, step=step)

    return TrackerExporter(log, lambda: client.set_terminated(run))


_MAKERS: dict[str, Callable[[str, str], WatchListener]] = {
    "otlp": OtlpExporter,
    "tensorboard": _tensorboard,
    "wandb": _wandb,
    "mlflow": _mlflow,
}
