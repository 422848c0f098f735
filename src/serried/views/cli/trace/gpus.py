"""What trace commands say of profiles of GPUs: the verdict first, then the tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from serried.errors import InputError
from serried.mesh import Layout
from serried.trace.formats.reading import read_recording
from serried.trace.gpu.activity import GpuTrace
from serried.trace.gpu.analysis import GpuAnalysis, analyse_gpus
from serried.trace.gpu.difference import compare_gpus
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json
from serried.views.cli.progress import told
from serried.views.cli.trace.arguments import NO_REFERENCES, References
from serried.views.layout.advice import warned
from serried.views.trace.gpu.comparison import (
    gpu_comparison_document,
    gpu_comparison_lines,
    gpu_comparison_tables,
)
from serried.views.trace.gpu.document import gpu_document
from serried.views.trace.gpu.text import (
    alignment_lines,
    gpu_lines,
    gpu_ranks_table,
    kernels_table,
    source_line,
    streams_table,
    traffic_parts,
    verdict_lines,
)


def tell_gpus(
    trace: GpuTrace,
    output: OutputChoice,
    layout: Layout | None,
    references: References = NO_REFERENCES,
    *,
    places: Sequence[object] = (),
) -> None:
    """Prints warnings to stderr and what was measured of ``places`` to stdout.

    ``layout`` says what groups are called.
    """
    lang = output.lang
    for warning in trace.warnings:
        click.echo(warned(warning, lang=lang), err=True)
    found = analyse_gpus(trace, layout)
    traffic = references.beside(found.traffic)
    if output.form_among(TABLE_OR_JSON) == "json":
        document = {**gpu_document(trace, found, traffic), **_verdict(found, places)}
        return output.write(as_json(document))
    rank = found.idlest
    return output.show(
        *verdict_lines(found, places=places, lang=lang),
        "",
        source_line(trace, found, lang=lang),
        "",
        gpu_ranks_table(found, lang=lang),
        "",
        streams_table(rank, lang=lang),
        "",
        kernels_table(rank, lang=lang),
        *traffic_parts(found, traffic, lang=lang),
        "",
        *gpu_lines(rank, lang=lang),
        *alignment_lines(found, lang=lang),
    )


def _verdict(found: GpuAnalysis, places: Sequence[object]) -> dict[str, object]:
    waited_for = [] if found.waited_for is None else [found.waited_for.rank]
    return {"verdict": {"lines": verdict_lines(found, places=places), "ranks": waited_for}}


def compare_profiles(
    first: GpuTrace, places: Sequence[Path], output: OutputChoice, *, plan: bool
) -> None:
    """Prints where the first rank of one profile takes more time than that of another.

    Raises InputError where the second is no profile of GPUs, or a plan is asked for.
    """
    if plan:
        raise InputError(
            "{path} is a profile of GPUs, which has no plan; give a second profile",
            path=places[0],
        )
    lang = output.lang
    second = read_recording([places[1]], listener=told(lang))
    if not isinstance(second, GpuTrace):
        raise InputError(
            "{first} is a profile of GPUs and {second} is none; give two of a kind",
            first=places[0],
            second=places[1],
        )
    for warning in (*first.warnings, *second.warnings):
        click.echo(warned(warning, lang=lang), err=True)
    compared = compare_gpus(first.ranks[0], second.ranks[0])
    names = str(places[0]), str(places[1])
    if output.form_among(TABLE_OR_JSON) == "json":
        return output.write(as_json(gpu_comparison_document(compared, *names)))
    kernels, calls = gpu_comparison_tables(compared, lang=lang)
    head = gpu_comparison_lines(compared, lang=lang)
    return output.show(*head, "", kernels, "", calls, "", f"A: {names[0]}", f"B: {names[1]}")
