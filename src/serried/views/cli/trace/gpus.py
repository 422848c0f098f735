"""What ``serried trace stats`` says of a profile of GPUs: the verdict first, then the tables."""

from __future__ import annotations

import click

from serried.trace.gpu.activity import GpuTrace
from serried.trace.gpu.analysis import analyse_gpus
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json
from serried.views.layout.advice import warned
from serried.views.trace.gpu.document import gpu_document
from serried.views.trace.gpu.text import (
    gpu_lines,
    gpu_ranks_table,
    kernels_table,
    source_line,
    streams_table,
    verdict_lines,
)


def tell_gpus(trace: GpuTrace, output: OutputChoice) -> None:
    """Prints warnings to stderr and what was measured to stdout."""
    lang = output.lang
    for warning in trace.warnings:
        click.echo(warned(warning, lang=lang), err=True)
    found = analyse_gpus(trace)
    if output.form_among(TABLE_OR_JSON) == "json":
        return output.write(as_json(gpu_document(trace, found)))
    rank = found.idlest
    return output.show(
        *verdict_lines(found, lang=lang),
        source_line(trace, found, lang=lang),
        "",
        gpu_ranks_table(found, lang=lang),
        "",
        streams_table(rank, lang=lang),
        "",
        kernels_table(rank, lang=lang),
        "",
        *gpu_lines(rank, lang=lang),
    )
