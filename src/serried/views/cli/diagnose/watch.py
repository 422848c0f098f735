"""``serried diagnose --watch``: looks at a running job's folder until it ends, and speaks."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serried.diagnose.diagnosis import Diagnosis
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.diagnose.watch.figures import figures_in
from serried.diagnose.watch.following import FollowedJob
from serried.diagnose.watch.lifetime import Lifetime
from serried.diagnose.watch.look import JobLook
from serried.diagnose.watch.watching import Notice, Watch
from serried.errors import EnvironmentProblem, InputError, SerriedError
from serried.finding import said
from serried.views.cli.diagnose.told import WatchedState, WatchListener
from serried.views.cli.output import width
from serried.views.diagnose.document import diagnosis_document
from serried.views.diagnose.text import diagnosis_lines
from serried.views.explain.plain import wrap
from serried.views.sentences import say

if TYPE_CHECKING:
    from serried.views.cli.diagnose.metrics import JobMetrics

SCHEMA = "serried.watch/1"
UNTOLD = said(
    "what lies there does not tell why: put each rank's stack beside it (py-spy dump --pid PID > "
    "rank_N.stack.txt) and run serried diagnose, and use serried.guard() in the next run"
)
_AS_BEFORE = said("the verdict is the one above")
GIVES_WAY = 5
"""By how much a watch that goes with a job lets the job's own processes go first."""
UNSAID = said(
    "the process that this watch goes with has ended, and the job did not say that it has; the "
    "watch ends"
)


@dataclass(frozen=True)
class Watching:
    """Holds how a job is watched: where, how often, how long it may stand still, how it is told."""

    folder: Path
    every_s: float
    still_s: float | None
    is_once: bool
    is_json: bool
    lang: str
    metrics: str | None = None
    """Where its figures are served, as [HOST:]PORT; None serves none."""
    exports: tuple[str, ...] = ()
    """Where they are sent, as KIND[=WHERE]."""
    pid: int | None = None
    """The process that the watch goes with; None watches until the job ends."""


def watch_job(asked: Watching) -> int:
    """Follows a job until it ends, or until Ctrl-C; returns 1 where something was found.

    Raises InputError for a folder that is none, times that cannot be, and a process that is none.
    """
    # Beside a job that has just begun, its folder may be yet to come.
    is_awaited = asked.pid is not None and not asked.folder.exists()
    if not is_awaited and not asked.folder.is_dir():
        raise InputError(
            "{path} is no folder; --watch takes the folder in which the ranks write",
            path=asked.folder,
        )
    if not (asked.every_s > 0 and (asked.still_s is None or asked.still_s > 0)):
        raise InputError("--still and --every are seconds, more than 0")
    lifetime = None if asked.pid is None else _beside(asked.pid)
    listeners = _listeners(asked)
    click.echo(say(said("watching {folder} …", folder=asked.folder), asked.lang), err=True)
    has_found, verdict = False, ""
    try:
        for notice in _notices(asked, listeners, lifetime):
            has_found = has_found or notice.is_finding
            verdict = _tell(notice, asked, verdict)
            if notice.is_finding and asked.is_once:
                break
        for listener in listeners:
            listener.linger()
    except KeyboardInterrupt:
        pass  # whoever watches has seen enough
    return 1 if has_found else 0


def _listeners(asked: Watching) -> list[WatchListener]:
    """Returns what takes the job's figures; raises for what cannot be had."""
    found: list[WatchListener] = []
    if asked.exports:
        from serried.views.cli.diagnose.exports import exporter_of

        job = asked.folder.resolve().name
        found += [exporter_of(each, job) for each in asked.exports]
    return found if asked.metrics is None else [*found, _served(asked, asked.metrics)]


def _served(asked: Watching, address: str) -> JobMetrics:
    """Returns what tells Prometheus of the job; raises EnvironmentProblem without its client."""
    try:
        from serried.views.cli.diagnose.metrics import JobMetrics, serve_metrics
    except ModuleNotFoundError as error:
        # A missing module of serried's own is a mistake of serried, and no extra would add it.
        if (error.name or "").startswith("serried"):
            raise
        raise EnvironmentProblem(
            "--metrics needs {package}, which is not installed; pip install '{extra}' adds it",
            package=error.name,
            extra="serried[metrics]",
        ) from error
    metrics = JobMetrics(asked.folder.resolve().name)
    url = serve_metrics(metrics, address)
    click.echo(say(said("figures for Prometheus: {url}", url=url), asked.lang), err=True)
    return metrics


def _beside(pid: int) -> Lifetime:
    """Returns the lifetime of the job's process, to which this one leaves the machine."""
    lifetime = Lifetime(pid)
    if hasattr(os, "nice"):
        os.nice(GIVES_WAY)
    return lifetime


def _notices(
    asked: Watching, listeners: Sequence[WatchListener], lifetime: Lifetime | None
) -> Iterator[Notice]:
    job, watch, is_over = FollowedJob(asked.folder), Watch(asked.still_s), False
    while not watch.has_ended and not is_over:
        look = job.look()
        notices = watch.hear(look)
        is_over = lifetime is not None and lifetime.is_over(look.time, watch.moved_at)
        if is_over and not watch.has_ended:
            notices.append(Notice(look.time, "gone", UNSAID))
        if listeners:
            _put(listeners, notices, look, job, watch)
        yield from notices
        if not watch.has_ended and not is_over:
            time.sleep(asked.every_s)


def _put(
    listeners: Sequence[WatchListener],
    notices: Sequence[Notice],
    look: JobLook,
    job: FollowedJob,
    watch: Watch,
) -> None:
    """Gives what was seen to those who take it, before any of it is told at length."""
    figures = figures_in(job.latest)
    state = WatchedState(look, figures, watch.moved_at, watch.allowed_s, watch.has_ended)
    for listener in listeners:
        for notice in notices:
            listener.hear(notice)
        listener.tell(state)


def _tell(notice: Notice, asked: Watching, told: str) -> str:
    """Prints a notice with its cause, once for each; returns the verdict that was told last."""
    why = _why(asked.folder) if notice.asks_why else None
    verdict = str(why.causes[0].verdict) if why else told
    if asked.is_json:
        click.echo(json.dumps(_document(notice, why, asked.lang), ensure_ascii=False))
        return verdict
    moment = datetime.fromtimestamp(notice.time).astimezone().strftime("%H:%M:%S")
    lines = [f"{moment} {say(notice.sentence, asked.lang)}"]
    if why is not None and verdict == told:
        lines.append(f"  {say(_AS_BEFORE, asked.lang)}")
    elif why is not None:
        shown = diagnosis_lines(why, lang=asked.lang, width=max(width() - 2, 20))
        lines += [f"  {line}" if line else "" for line in shown]
    elif notice.asks_why:
        lines += [f"  {line}" for line in wrap(say(UNTOLD, asked.lang), max(width() - 2, 20))]
    click.echo("\n".join(lines))
    return verdict


def _why(folder: Path) -> Diagnosis | None:
    """Returns the verdict of all that lies there; None where it tells nothing, or is in motion."""
    try:
        found = diagnosed(gather([folder]))
    except (SerriedError, OSError):
        return None
    return found if found.found else None


def _document(notice: Notice, why: Diagnosis | None, lang: str) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "time": datetime.fromtimestamp(notice.time, UTC).isoformat(timespec="milliseconds"),
        "kind": notice.kind,
        "sentence": say(notice.sentence, lang),
        "ranks": None if notice.ranks is None else list(notice.ranks),
        "is_finding": notice.is_finding,
        "evidence": None if notice.quote is None else str(notice.quote),
        "missing_evidence": [say(UNTOLD, lang)] if notice.asks_why and why is None else [],
        "diagnosis": None if why is None else diagnosis_document(why, lang),
    }
