"""``serried trace compare``: two runs, or a run and its plan, action by action."""

from __future__ import annotations

from pathlib import Path

import click

from serried.errors import InputError
from serried.pipeline import Request, generate
from serried.plan.recorded_step import read_rank_steps
from serried.trace.formats.reading import read_recording, read_trace
from serried.trace.gpu.activity import GpuTrace
from serried.trace.measure.compare import compare_traces, planned_trace
from serried.trace.model.trace import Trace
from serried.views.cli.language import lang_option
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json, printed_form_option
from serried.views.cli.progress import told
from serried.views.cli.trace.arguments import AskedLayout, sizes_options
from serried.views.cli.trace.gpus import compare_profiles
from serried.views.layout.advice import warned
from serried.views.trace.comparison import comparison_document, comparison_lines
from serried.views.trace.recorded_step import RecordedStep


@click.command("compare", short_help="Compare two runs, or a run with its plan.")
@click.argument("runs", nargs=-1, required=True, metavar="A [B]", type=click.Path(path_type=Path))
@click.option(
    "--plan",
    is_flag=True,
    help="Compare A with its schedule, simulated with the times that A took.",
)
@click.option(
    "--sharding",
    is_flag=True,
    help="Compare what A gathered and reduced under ZeRO with the plan of its step.",
)
@click.option(
    "--rank", type=click.IntRange(min=0), metavar="NUMBER", help="With --sharding: of this rank."
)
@click.option(
    "--step", type=click.IntRange(min=0), metavar="NUMBER", help="With --sharding: of this step."
)
@click.option(
    "--planned",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compare A with its plan that serried plan --from wrote, constant by constant.",
)
@click.option("--name", metavar="SCHEDULE", help="The schedule of --plan, where A does not say it.")
@click.option(
    "--chunks",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="With --name: stages on each rank.",
)
@sizes_options
@printed_form_option
@lang_option
def compare(
    runs: tuple[Path, ...],
    plan: bool,
    sharding: bool,
    rank: int | None,
    step: int | None,
    planned: Path | None,
    name: str | None,
    chunks: int | None,
    form: str,
    lang: str,
    **layout: int | Path | None,
) -> None:
    """Says, action by action, where A took more time than B, and what else differs.

    \b
    serried trace compare runs/today runs/yesterday
    serried trace compare runs/today --plan
    serried trace compare runs/today --sharding --step 3
    serried trace compare runs/check --planned plan.json
    """
    _require_runs(len(runs), [plan, sharding, planned is not None])
    output = OutputChoice(lang, form)
    if sharding:
        return _tell_sharding(RecordedStep.of(*read_rank_steps(runs[0], rank), step), output)
    if rank is not None or step is not None:
        raise InputError("--rank and --step choose what --sharding shows; add --sharding")
    sizes = AskedLayout.of(layout).for_reading()
    first = read_recording([runs[0]], sizes, listener=told(lang))
    if planned is not None and isinstance(first, Trace):
        from serried.views.cli.trace.planned import tell_planned

        return tell_planned(first, planned, output)
    if isinstance(first, GpuTrace):
        compare_profiles(first, runs, output, plan=plan or planned is not None)
        return None
    second = (
        _plan(first, name, chunks) if plan else read_trace([runs[1]], sizes, listener=told(lang))
    )
    for warning in (*first.warnings, *second.warnings):
        click.echo(warned(warning, lang=lang), err=True)
    compared = compare_traces(first, second)
    names = str(runs[0]), "plan" if plan else str(runs[1])
    if output.form_among(TABLE_OR_JSON) == "json":
        return output.write(as_json(comparison_document(compared, *names)))
    return output.show(*comparison_lines(compared, *names, lang=lang))


def _require_runs(count: int, plans: list[bool]) -> None:
    """Raises InputError unless there are two runs, or one that is laid beside one plan."""
    if sum(plans) > 1:
        raise InputError("--plan, --sharding and --planned compare with different plans; take one")
    if count != (1 if any(plans) else 2):
        raise InputError(
            "compare takes two runs, or one with --plan, --sharding or --planned; {count} were "
            "given",
            count=count,
        )


def _tell_sharding(found: RecordedStep, output: OutputChoice) -> None:
    if output.form_among(TABLE_OR_JSON) == "json":
        return output.write(as_json(found.document(output.lang), depth=3))
    return output.show(*found.parts(output.lang))


def _plan(run: Trace, name: str | None, chunks: int | None) -> Trace:
    if name is None:
        return planned_trace(run)
    num_ranks = run.job.sizes.get("pp", 1)
    return planned_trace(run, generate(name, Request(num_ranks, run.job.num_microbatches, chunks)))
