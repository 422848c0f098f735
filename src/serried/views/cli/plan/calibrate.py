"""``serried plan --calibrate``: constants fitted to tables of steps and to recorded runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serried.plan.asked import cluster_asked
from serried.plan.catalog import model_asked
from serried.views.cli.output import show, width, write
from serried.views.cli.plan.options import plan_constants

if TYPE_CHECKING:
    from serried.plan.recorded_job import RecordedJob

RECORDINGS = (".json", ".gz", ".pftrace", ".sqlite", ".parquet", ".spans")
"""Endings of files that hold a recorded run; any other file is a table."""


def calibrated(options: Mapping[str, Any]) -> int:
    """Fits constants to what --calibrate names, prints what moved, and writes the file.

    Raises InputError for a file or run that holds no measured step, and for steps of one job that
    contradict each other.
    """
    from serried.plan.calibration.calibrate import calibrate, with_strange
    from serried.plan.calibration.document import constants_text
    from serried.plan.calibration.rows import read_table
    from serried.plan.time.constants import shipped
    from serried.views.plan.calibrated import calibration_parts

    given = options["calibrate"]
    folders = [read_table(path) for path in given if not is_recorded(path)]
    rows = [row for folder in folders for row in folder.rows if row.step_s]
    runs = [(path, _run(path, options)) for path in given if is_recorded(path)]
    requests = [*(row.request for row in rows), *(run.request for _, run in runs)]
    known = with_strange(plan_constants(options) or shipped(), requests)
    found = calibrate(
        [*(f"{row.table} {row.name}" for row in rows), *(str(path) for path, _ in runs)],
        requests,
        [*(row.step_s or 0.0 for row in rows), *(run.step_s for _, run in runs)],
        known,
    )
    left_out = [each for folder in folders for each in folder.left_out]
    if options["output"] is not None:
        write(constants_text(found.constants), options["output"])
    show(*calibration_parts(found, known, left_out, columns=width(), lang=options["lang"]))
    return 0


def is_recorded(path: Path) -> bool:
    """Tells whether a path is a recorded run: a folder, a store, or a file of another tool."""
    return path.is_dir() or path.suffix.lower() in RECORDINGS


def _run(path: Path, options: Mapping[str, Any]) -> RecordedJob:
    from serried.plan.recorded_job import recorded_job
    from serried.trace.formats.reading import read_trace
    from serried.views.cli.progress import told
    from serried.views.layout.advice import warned

    trace = read_trace([path], listener=told(options["lang"]))
    for warning in trace.warnings:
        click.echo(warned(warning, lang=options["lang"]), err=True)
    model, cluster = options["model"], options["cluster"]
    return recorded_job(
        trace,
        model=model_asked(model) if model else None,
        cluster=cluster_asked(cluster) if cluster else None,
    )
