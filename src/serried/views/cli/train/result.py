"""What ``serried train`` prints when a run is over: its loss or times, its memory, its files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from serried.errors import listed
from serried.views.cli.language import current_language
from serried.views.cli.output import show
from serried.views.cli.train.progress import ranks_of
from serried.views.cli.train.ranks import (
    buffer_parts,
    measured_memory,
    planned_memory,
    rank_table,
)
from serried.views.sentences import tell

if TYPE_CHECKING:
    from serried.runtime.job.report import Saved, TrainResult
    from serried.runtime.job.settings import TrainSettings


def show_result(settings: TrainSettings, result: TrainResult, *, explain: bool) -> None:
    """Prints what came of a run; ``explain`` adds what each rank holds."""
    lang = current_language()
    if explain:
        show(rank_table(result.ranks), "")
        if result.ranks[0].buffers:
            show(*buffer_parts(result.ranks), "")
        show(*planned_memory(settings, result.ranks), "")
    show(_summary(settings, result, lang))
    if result.memory:
        show(measured_memory(settings, result.ranks, result.memory))
    for line in _kept(settings, result, lang):
        show(line)
    folder = settings.trace_dir
    if folder and any(folder.glob("rank-*.spans")):
        show(tell("trace: {folder} (serried trace merge {folder})", lang, folder=folder))


def _summary(settings: TrainSettings, result: TrainResult, lang: str) -> str:
    """Returns the line that says what was learned, or waited, and how long a step took."""
    # Emulated stages learn nothing, so their fixed times stand where the loss would.
    if settings.emulated:
        what = tell(
            "emulated compute (forward {forward:g} ms, backward {backward:g} ms)",
            lang,
            forward=settings.emulated.forward_ms,
            backward=settings.emulated.backward_ms,
        )
    else:
        what = f"loss {result.losses[0]:.4f} -> {result.losses[-1]:.4f}"
    return tell(
        "1 step on {ranks}: {done}, median step {step_ms:.0f} ms"
        if len(result.steps) == 1
        else "{steps} steps on {ranks}: {done}, median step {step_ms:.0f} ms",
        lang,
        steps=len(result.steps),
        ranks=ranks_of(settings, lang),
        done=what,
        step_ms=median(step.duration_ms for step in result.steps),
    )


def _kept(settings: TrainSettings, result: TrainResult, lang: str) -> Iterator[str]:
    """Yields a line for each file that the run has left, and for each that it could not write."""
    checkpoints = settings.checkpoints
    lost = {each.path: each.reason for each in result.lost}
    for path in (settings.log_file, settings.tensorboard):
        # A log that broke off is told under either name; of whole ones only the log file is named.
        if path and str(path) in lost:
            reason = lost[str(path)]
            yield tell("not all of the log is in {path}: {reason}", lang, path=path, reason=reason)
        elif path and path == settings.log_file:
            yield tell("log: {path}", lang, path=path)
    if checkpoints.folder:
        yield from _checkpoints(checkpoints.folder, result.saved, lang)
    if checkpoints.export and result.is_saved:
        yield tell("model: {path}", lang, path=checkpoints.export)
    elif checkpoints.export:
        yield tell(
            "no model was written to {path}, as the last checkpoint was not",
            lang,
            path=checkpoints.export,
        )


def _checkpoints(folder: Path, saved: tuple[Saved, ...], lang: str) -> Iterator[str]:
    missing = [each for each in saved if each.reason is not None]
    if len(missing) < len(saved):
        yield tell("checkpoints: {folder}", lang, folder=folder)
    if missing:
        yield tell(
            "could not be saved: {names}; {reason}",
            lang,
            names=listed(Path(each.path).name for each in missing),
            reason=missing[-1].reason,
        )
