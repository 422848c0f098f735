"""Prints how near plans come to what was measured: ``python -m benchmarks.accuracy FOLDER``.

A folder holds tables of measured steps, perf_*.csv, with its own perf_models.csv and gpu_specs.csv
(else the catalog's), and tables of papers and of memory; each that it has is printed.

    --format json    every row's prediction and interval
    --held-apart     also the errors of constants fitted without a row's own configuration, model,
                     GPU type or table, and of constants fitted to small jobs alone
    --fit            fit the constants to the folder and to the papers' tables beside it, with the
                     intervals that cross-validation shows, and write them to the catalog
    --intervals      write new intervals alone
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.accuracy import baselines, fitting, held_apart, llm_analysis, published
from benchmarks.accuracy.memory import document_memory, measured_memory, print_memory
from benchmarks.accuracy.memory_fits import print_refused
from benchmarks.accuracy.table import HEAD, Errors, line, parts, regrets
from serried.errors import InputError
from serried.plan.calibration.document import constants_text
from serried.plan.calibration.rows import Folder, Measured, read_folder
from serried.plan.time.constants import shipped
from serried.plan.time.interval import familiarity, intervals
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

CATALOG = Path(__file__).parents[2] / "src" / "serried" / "catalog" / "efficiency.toml"


def main() -> None:
    """Reads the arguments and prints."""
    parser = argparse.ArgumentParser(prog="benchmarks.accuracy", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=published.DATA)
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--held-apart", action="store_true")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--intervals", action="store_true")
    asked = parser.parse_args()
    try:
        folder = tables_of(asked.folder)
    except InputError as error:
        parser.error(str(error))
    if asked.fit or asked.intervals:
        write_fit(folder, is_fitted=asked.fit)
    elif asked.format == "json":
        told = document(folder) | {
            "papers": document_papers(asked.folder),
            "memory": document_memory(asked.folder),
        }
        json.dump(told, sys.stdout, indent=1)
        print()
    else:
        if folder.rows:
            print_table(folder)
        print_papers(asked.folder)
        if folder.rows:
            print_choices(folder)
            print_apart(list(folder.rows), is_long=asked.held_apart)
        print_memory(asked.folder)
        print_refused(asked.folder)


def tables_of(folder: Path) -> Folder:
    """Returns the measured steps of a folder, none where it has papers' tables or memory alone.

    Raises InputError for a folder with none of these.
    """
    try:
        return read_folder(folder)
    except InputError:
        if published.in_folder(folder) or measured_memory(folder):
            return Folder((), ())
        raise


def print_table(folder: Folder) -> None:
    """Prints errors by table, then of baselines."""
    rows = [row for row in folder.rows if row.step_s]
    jobs = Jobs.of(row.request for row in rows)
    measured = np.array([row.step_s for row in rows], np.float64)
    found = step_times(jobs).step
    print(f"step time, constants fitted to: {shipped().source}")
    print(HEAD)
    for name, chosen in parts(rows):
        print(line(name, Errors.of(found[chosen], measured[chosen])))
    low, high = intervals(jobs, found)
    inside = (measured >= low) & (measured <= high)
    for name, chosen in seen_parts(rows):
        share = 100 * inside[chosen].mean()
        print(
            f"measured step inside the 90 % interval: {share:.0f} % of {chosen.sum()} rows {name}"
        )
    print("\nbaselines, each with factors fitted to these same rows")
    for name in (*baselines.BASELINES, baselines.RIDGE):
        print(line(name, Errors.of(baselines.predicted(name, rows), measured)))
    print_peer(rows, found)


def print_papers(folder: Path) -> None:
    """Prints the errors of the papers' tables that a folder has."""
    papers = published.in_folder(folder)
    if papers:
        print("\npapers' tables")
        print(HEAD)
    for name, told in papers.items():
        steps = np.array([each.step_s for each in told])
        print(line(name, Errors.of(published.predicted(told), steps)))


def print_choices(folder: Folder) -> None:
    """Prints what choosing among measured layouts loses, and which rows cannot be planned."""
    rows = [row for row in folder.rows if row.step_s]
    lost = regrets(rows, step_times(Jobs.of(row.request for row in rows)).step)
    if lost:
        mean = np.mean([each for _, _, each in lost])
        layouts = sum(count for _, count, _ in lost)
        print(f"\nchoosing among {layouts} measured layouts in {len(lost)} groups", end="")
        worst, _, most = max(lost, key=lambda each: each[2])
        print(f" loses {mean:.1f} % on average, at most {most:.1f} %: {worst}")
    for name, why in folder.left_out:
        print(f"left out: {name}: {why}")


def seen_parts(rows: list[Measured]) -> Iterator[tuple[str, np.ndarray]]:
    """Yields which rows the constants were fitted to, and which not, where there are any."""
    own = {row.name for row in read_folder(published.DATA).rows}
    is_seen = np.array([row.name in own for row in rows])
    for name, chosen in (("that were fitted to", is_seen), ("that no fit saw", ~is_seen)):
        if chosen.any():
            yield name, chosen


def print_peer(rows: list[Measured], found: np.ndarray) -> None:
    """Prints llm-analysis, the simple ways and these plans on the rows that it can express."""
    peer = llm_analysis.peer_steps(rows)
    if peer is None:
        print(f"\n{llm_analysis.MISSING}")
        return
    same = [rows[at] for at in peer.rows]
    measured = np.array([row.step_s for row in same], np.float64)
    print("\nthe dense rows that llm-analysis has: no experts, adapters, cp or windows")
    print(line(peer.name, Errors.of(peer.steps, measured)))
    for name in (*baselines.BASELINES, baselines.RIDGE):
        print(line(name, Errors.of(baselines.predicted(name, same), measured)))
    print(line("serried", Errors.of(found[peer.rows], measured)))


def print_apart(rows: list[Measured], *, is_long: bool) -> None:
    """Prints how often intervals hold on rows held apart, and their errors if asked for.

    What is not held apart is learned from with the rows that the shipped constants were fitted to.
    """
    names = {row.name for row in rows}
    own = [row for row in read_folder(published.DATA).rows if row.name not in names]
    shown = fitting.examples([*rows, *own], shipped())
    found = held_apart.held_apart(shown, shipped())
    print("\nrows held apart, predicted by constants and interval fitted without those of")
    for name, share in held_apart.coverage(shown, found, None if not own else len(rows)):
        print(f"  their {name + ':':16}{100 * share:3.0f} % inside the 90 % interval")
    if not is_long:
        return
    for each in found:
        print(f"\nheld apart: constants fitted without a row of its {each.name}")
        print(HEAD)
        predicted = shown.steps / np.exp(each.residuals)
        for table, chosen in parts(rows):
            which = np.flatnonzero(chosen)
            print(line(table, Errors.of(predicted[which], shown.steps[which])))
        if each.name == "configuration":
            continue
        print(f"{'of which, and steps inside the 90 % interval':83}{'inside %':>9}")
        for group, errors, share in held_apart.by_group(shown, found, each):
            print(f"{line('  ' + group, errors)}{100 * share:9.0f}")
    print("\nconstants fitted to jobs of the fewest GPUs alone")
    print(HEAD)
    for name, errors in held_apart.by_scale(shown, shipped()):
        print(line(name, errors))
    told = published.vtrain()
    steps = np.array([each.step_s for each in told])
    print("\ncalibrated by four fifths of a table, which predict the fifth")
    print(line("vtrain", Errors.of(fitting.calibrated_apart(told), steps)))


def document(folder: Folder) -> dict[str, object]:
    """Returns every row's prediction with its interval and what was assumed."""
    rows = list(folder.rows)
    left = [{"row": name, "why": why} for name, why in folder.left_out]
    if not rows:
        return {"schema": "serried.accuracy/1", "rows": [], "left_out": left}
    jobs = Jobs.of(row.request for row in rows)
    times = step_times(jobs)
    low, high = intervals(jobs, times.step)
    familiar = familiarity(jobs)
    entries = [
        {
            "row": row.name,
            "table": row.table,
            "step_s": row.step_s,
            "predicted_s": float(times.step[number]),
            "interval_s": [float(low[number]), float(high[number])],
            "interval_share": 0.9,
            "familiarity": familiar[number],
            "parts_s": {name: float(each[number]) for name, each in times.parts.items()},
            "assumed": list(row.assumed),
        }
        for number, row in enumerate(rows)
    ]
    return {"schema": "serried.accuracy/1", "rows": entries, "left_out": left}


def document_papers(folder: Path) -> list[dict[str, object]]:
    """Returns the prediction of every step of the papers' tables."""
    return [
        {"row": each.name, "table": name, "step_s": each.step_s, "predicted_s": float(predicted)}
        for name, told in published.in_folder(folder).items()
        for each, predicted in zip(told, published.predicted(told), strict=True)
    ]


def write_fit(folder: Folder, *, is_fitted: bool) -> None:
    """Writes constants and intervals to the catalog, or new intervals for its constants."""
    rows = list(folder.rows)
    known, shown = shipped(), fitting.examples(rows, shipped())
    if is_fitted:
        known, shown = fitting.fitted(rows)
    written = replace(
        known,
        source=f"{len(rows)} rows of benchmarks/data/perf_*.csv and the papers' tables beside them",
        residuals=held_apart.widths(shown, held_apart.held_apart(shown, known)),
        experience=held_apart.experience(shown),
    )
    CATALOG.write_text(constants_text(written), encoding="utf-8")
    print(f"wrote {CATALOG}")


if __name__ == "__main__":
    main()
