"""``serried trace merge``: one timeline of all ranks, for Chrome, Perfetto or table engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from serried.errors import InputError
from serried.trace.formats.chakra.writing import write_chakra
from serried.trace.formats.chrome import write_chrome
from serried.trace.formats.perfetto import write_perfetto
from serried.trace.formats.reading import are_recordings, read_recording, read_trace
from serried.trace.gpu.activity import GpuTrace
from serried.trace.gpu.timeline import gpu_timeline
from serried.trace.measure.analysis import analyse
from serried.trace.merge.files import Folder, Url, place_of
from serried.trace.merge.ray import merge_store_on_ray
from serried.trace.merge.store import Merged, merge_store
from serried.trace.store.folder import write_store
from serried.units import bytes_text
from serried.views.cli.language import lang_option
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json, printed_form_option
from serried.views.cli.progress import told
from serried.views.cli.trace.arguments import AskedLayout, places_argument, sizes_options
from serried.views.cli.trace.gpus import tell_gpus
from serried.views.cli.trace.stats import tell_analysis
from serried.views.layout.advice import warned
from serried.views.sentences import tell
from serried.views.trace.document import merge_document
from serried.views.trace.text import merged_lines

CHAKRA = ".et"
WRITERS = {".json": write_chrome, ".pftrace": write_perfetto}
ENGINES = {"local": merge_store, "ray": merge_store_on_ray}
MEASURED_SPANS = 1_000_000
"""The most spans that merging into a store also measures: more take minutes and gigabytes."""


@click.command("merge", short_help="Write one timeline of all ranks, and measure it.")
@places_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="What to write: .json for Chrome, .pftrace for Perfetto, .et for a folder of Chakra "
    "traces, any other name for the Parquet store; by default trace.json in the first DIR.",
)
@click.option(
    "--message-bytes",
    type=click.IntRange(1, 1 << 40),
    metavar="N",
    help="With -o NAME.et: the bytes of a message between stages, where the trace does not tell.",
)
@click.option(
    "--engine",
    type=click.Choice(tuple(ENGINES)),
    default="local",
    show_default=True,
    help="What writes the Parquet store: this process, or tasks on Ray.",
)
@sizes_options
@printed_form_option
@lang_option
def merge(
    places: tuple[Folder, ...],
    output: Path | None,
    message_bytes: int | None,
    engine: str,
    form: str,
    lang: str,
    **layout: int | Path | None,
) -> None:
    """Writes one timeline of all ranks, for Chrome, Perfetto, pandas or DuckDB, and measures it.

    DIR may be a URL that fsspec reads, such as s3://bucket/run.

    \b
    serried trace merge runs/first
    serried trace merge node0/run node1/run -o both.pftrace
    serried trace merge node0/run node1/run -o both.store
    """
    answer = OutputChoice(lang, form)
    output = output or _beside(places[0])
    write = WRITERS.get(output.suffix.lower())
    is_chakra = output.suffix.lower() == CHAKRA
    if message_bytes is not None and not is_chakra:
        raise InputError("--message-bytes belongs to -o NAME.et, the traces of Chakra")
    # Recordings of serried go into a store piece by piece, so they may be larger than the memory;
    # other formats, and timelines in one file, need the whole trace at once.
    is_piecewise = write is None and not is_chakra and are_recordings(places)
    if engine != "local" and not is_piecewise:
        raise InputError(
            "--engine {engine} merges recordings of serried into a store; give those, and -o a "
            "name that does not end in .json or .pftrace",
            engine=engine,
        )
    if is_piecewise:
        _tell_merged(ENGINES[engine](places, output), output, answer)
    else:
        asked = AskedLayout.of(layout)
        merged = read_recording(places, asked.for_reading(), listener=told(lang))
        if isinstance(merged, GpuTrace):
            if is_chakra:
                raise InputError(
                    "profiles of GPUs hold kernels, and no plan of who waits for whom; a .et is "
                    "written from a recording, or by serried plan --trace"
                )
            groups = asked.of_gpus(merged)
            (write or write_store)(gpu_timeline(merged, groups), output)
            tell_gpus(merged, answer, groups, places=places)
        else:
            asked.require(merged)
            if is_chakra:
                _tell_untold(write_chakra(merged, output, message_bytes=message_bytes), lang)
            else:
                (write or write_store)(merged, output)
            found = analyse(merged, listener=told(lang))
            tell_analysis(merged, found, answer, places=places)
    _tell_written(output, lang)


def _beside(place: Folder) -> Path:
    if isinstance(place, Url):
        raise InputError(
            "{folder} is only read; say by -o where the timeline is to be written", folder=place
        )
    return place / "trace.json"


def _tell_merged(merged: Merged, store: Path, answer: OutputChoice) -> None:
    """Prints what a store measures; of one too large for that only what merging counted."""
    lang = answer.lang
    if merged.num_spans <= MEASURED_SPANS:
        trace = read_trace([store])
        found = analyse(trace, listener=told(lang))
        return tell_analysis(trace, found, answer, places=[place_of(str(store))])
    for warning in merged.trace.warnings:
        click.echo(warned(warning, lang=lang), err=True)
    if answer.form_among(TABLE_OR_JSON) == "json":
        return answer.write(as_json(merge_document(merged)))
    return answer.show(*merged_lines(merged, store, lang=lang))


def _tell_untold(count: int, lang: str) -> None:
    if count:
        told = tell(
            "{count:,} collectives are left out, as nobody recorded how many bytes they moved",
            lang,
            count=count,
        )
        click.echo(told, err=True)


def _tell_written(output: Path, lang: str) -> None:
    told = tell(
        "wrote {path}, {size}; open it in https://ui.perfetto.dev"
        if output.is_file()
        else "wrote {path}, {size} of Chakra traces, a file for each rank"
        if output.suffix.lower() == CHAKRA
        else "wrote {path}, {size} of Parquet; every trace command and table engine reads it",
        lang,
        path=output,
        size=bytes_text(_size([output] if output.is_file() else sorted(output.rglob("*")))),
    )
    click.echo(told, err=True)


def _size(paths: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())
