"""What ``serried train`` tells while it runs, on stderr: lines, and on a terminal a bar below."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from serried.errors import listed
from serried.views.cli.language import current_language
from serried.views.sentences import tell

if TYPE_CHECKING:
    from serried.runtime.job.report import Event, Learned, Saved, StepDone
    from serried.runtime.job.settings import TrainSettings

PROGRESS_LINES = 20
"""About how many steps are told of, however many there are."""


class TrainProgress:
    """Prints a readable line a step, fewer when steps are many; only rank 0 is told anything."""

    def __init__(self, settings: TrainSettings, console: Console | None = None) -> None:
        self._settings = settings
        self._lang = current_language()
        self._every = -(-settings.steps // PROGRESS_LINES)
        console = console or Console(stderr=True, highlight=False)
        self._task: TaskID | None = None
        self._bar: Progress | None = None
        if console.is_terminal:
            columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
            what = TextColumn("{task.description}")
            self._bar = Progress(what, *columns, console=console, transient=True)

    def __enter__(self) -> TrainProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar and self._task is not None:
            self._bar.stop()

    def tell(self, event: Event) -> None:
        """Prints what ``event`` tells, if its turn has come."""
        for line in self._lines(event):
            if self._bar and self._task is not None:
                self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
            else:
                click.echo(line, err=True)
        if self._bar:
            self._move(self._bar, event)

    def _move(self, bar: Progress, event: Event) -> None:
        """Moves the bar to where the run is; it stands there from the first news on."""
        from serried.runtime.job.report import Resumed, StepDone

        if self._task is None:
            self._task = bar.add_task(tell("training", self._lang), total=self._settings.steps)
            bar.start()
        # StepDone numbers steps from 0, so one more is done; Resumed counts steps that are done.
        if isinstance(event, Resumed):
            bar.update(self._task, completed=event.step)
        elif isinstance(event, StepDone):
            if event.loss is None:
                what = tell("emulated compute", self._lang)
            else:
                what = f"loss {event.loss:.4f}"
            bar.update(self._task, completed=event.step + 1, description=what)

    def _lines(self, event: Event) -> Iterator[str]:
        from serried.runtime.job.report import LogLost, Resumed, Saved, Started, StepDone, Validated

        settings, lang = self._settings, self._lang
        if isinstance(event, Started):
            ranks, device = ranks_of(settings, lang), event.ranks[0].device
            yield tell("{ranks} ready on {device}", lang, ranks=ranks, device=device)
        elif isinstance(event, Resumed):
            yield tell(
                "resumed from {path}: 1 step is done"
                if event.step == 1
                else "resumed from {path}: {steps} steps are done",
                lang,
                path=event.path,
                steps=event.step,
            )
        elif isinstance(event, Validated):
            yield tell(
                "after {steps} steps  loss {loss:.4f} on {num_bytes:,} held out tokens"
                if settings.has_tokens
                else "after {steps} steps  loss {loss:.4f} on {num_bytes:,} held out bytes",
                lang,
                steps=event.step,
                loss=event.loss,
                num_bytes=event.num_bytes,
            )
        elif isinstance(event, StepDone):
            # The last step is always told, whatever the interval; its loss is what people look for.
            if event.step % self._every == 0 or event.step == settings.steps - 1:
                number = f"{event.step:>{len(str(settings.steps - 1))}}"
                what = "  ".join(_words(event, lang))
                yield f"step {number}  {what}  {event.duration_ms:.0f} ms"
            if event.learned and event.learned.is_skipped:
                yield _skipped(event.step, event.learned, lang)
        elif isinstance(event, Saved):
            yield _saved(event, lang)
        elif isinstance(event, LogLost):
            yield tell(
                "{path} cannot be written any more: {reason}; training goes on without it",
                lang,
                path=event.path,
                reason=event.reason,
            )


def _words(done: StepDone, lang: str) -> Iterator[str]:
    """Yields what a step's line says of it, in the words that every framework's log uses."""
    if done.learned is None:
        yield tell("emulated compute", lang)
        return
    yield f"loss {done.loss:.4f}"
    yield f"norm {done.learned.norm:.3g}"
    yield f"lr {done.learned.lr:.2e}"
    if done.learned.loss_scale:
        yield f"scale {done.learned.loss_scale:g}"
    yield f"{done.tokens_per_s:,.0f} tokens/s"


def _skipped(step: int, learned: Learned, lang: str) -> str:
    scale = learned.loss_scale or 0
    return tell(
        "step {step} taught nothing: float16 gradients overflowed; "
        "loss scale {scale:g} -> {half:g}",
        lang,
        step=step,
        scale=scale,
        half=scale / 2,
    )


def _saved(event: Saved, lang: str) -> str:
    if event.reason is None:
        return tell("saved {path}", lang, path=event.path)
    return tell(
        "could not save {path}: {reason}; training goes on",
        lang,
        path=event.path,
        reason=event.reason,
    )


def ranks_of(settings: TrainSettings, lang: str) -> str:
    """Says how many ranks there are and how they are placed."""
    sizes = {"tp": settings.tp, "pp": settings.pp, "dp": settings.dp}
    sizes |= {name: size for name, size in _more_sizes(settings).items() if size > 1}
    return tell(
        "1 rank ({sizes}; {framework} {order})"
        if settings.world_size == 1
        else "{count} ranks ({sizes}; {framework} {order})",
        lang,
        count=settings.world_size,
        sizes=listed((f"{name} {size}" for name, size in sizes.items()), limit=len(sizes)),
        framework=settings.layout.framework,
        order=settings.layout.order,
    )


def _more_sizes(settings: TrainSettings) -> dict[str, int]:
    return {"cp": settings.cp, "ep": settings.ep, "zero": settings.zero}
