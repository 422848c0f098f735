"""What ``serried groups`` can answer: one function each, from what was asked to a view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from serried.errors import InputError
from serried.finding import Finding
from serried.launch.request import LayoutRequest
from serried.mesh import Layout, Placement, place_of
from serried.mesh.domain import domain_of
from serried.views.cli.groups.parts import (
    Options,
    dims_of,
    findings_of,
    kinds_of,
    warn,
)
from serried.views.cli.output import (
    OutputChoice,
    as_json,
    json_parts,
    show,
    width,
    write,
    write_parts,
)
from serried.views.job.layers import layers_of
from serried.views.job.sources import footer, sources_of
from serried.views.layout.advice import advice_lines, important_lines
from serried.views.layout.document import (
    advice_document,
    groups_csv,
    groups_document,
    layers_document,
    rank_document,
)
from serried.views.layout.node_map import node_map
from serried.views.layout.sources import sources_document, sources_table
from serried.views.layout.text import (
    groups_table,
    headline,
    kinds_table,
    layers_table,
    layers_text,
    rank_lines,
    rank_table,
)
from serried.views.sentences import tell
from serried.views.table import Table

Answer = Callable[[LayoutRequest, Options, OutputChoice], int]


def answer_of(options: Options) -> Answer:
    """Returns the answer that options ask for; raises InputError for two at once."""
    several = len(options["world_size"] or ()) > 1
    asked = [name for name in ANSWERS if options[name] is not None and options[name] is not False]
    if len(asked) > 1:
        raise InputError(
            "{one} and {other} are two questions; ask one at a time",
            one=f"--{asked[0]}",
            other=f"--{asked[1]}",
        )
    if options["compare_set"] and options["compare"] is None:
        raise InputError("--compare-set gives sizes of what is compared; give --compare too")
    if several and asked:
        raise InputError(
            "--{option} needs one world size; --world-size has {count}",
            option=asked[0],
            count=len(options["world_size"]),
        )
    if several:
        from serried.views.cli.groups.several import refuse_filters, sweep

        refuse_filters(options)
        return sweep
    return ANSWERS[asked[0]] if asked else all_groups


def all_groups(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Shows every kind, or the groups of the kinds asked for."""
    layout, placement = request.laid_out()
    kinds = kinds_of(layout, options["kinds"], options["dims"])
    form = output.form_among()
    findings = findings_of(request, layout, placement, only_important=form != "table")
    split = layers_of(request, layout) if options["layers"] else None
    if form == "json" and split:
        write(as_json(layers_document(layout, split), depth=1), output.path)
    elif form == "json":
        write_parts(chain(json_parts(groups_document(layout, kinds)), ("\n",)), output.path)
    elif form == "csv":
        write_parts(groups_csv(layout, kinds), output.path)
    else:
        only = kinds if options["kinds"] else []
        _show_groups(request, (layout, placement), findings, only=only, kinds=kinds, output=output)
    if form != "table":
        warn(request, findings, output.lang)
    return 0


def _show_groups(
    request: LayoutRequest,
    laid_out: tuple[Layout, Placement],
    findings: Sequence[Finding],
    *,
    only: Sequence[str],
    kinds: Sequence[str],
    output: OutputChoice,
) -> None:
    """Prints all kinds, or the groups of ``only`` some."""
    (layout, placement), lang = laid_out, output.lang
    if only:
        tables = [groups_table(layout, placement, kind, lang=lang) for kind in only]
    else:
        domain = domain_of(placement, request.number("nvlink_domain"))
        inside = None if domain.is_node else domain.placement
        tables = [kinds_table(layout, placement, kinds, inside, lang=lang)]
    advice = important_lines(findings, width=width(), lang=lang)
    split = None if only else layers_of(request, layout)
    held: list[str | Table] = ["", layers_table(layout, split, lang=lang)] if split else []
    one = only[0] if len(only) == 1 else None
    picture = node_map(layout, placement, kind=one, width=width(), lang=lang)
    told = footer(request, lang)
    top = headline(layout, placement, lang=lang)
    parts: list[str | Table] = [top, "", *tables, *held]
    parts += ["", *advice] if advice else []
    parts += ["", picture]
    parts += ["", *told] if told else []
    show(*parts, output=output.path)


def explain(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Explains the dimensions that are split."""
    from serried.views.explain.explanation import explanation
    from serried.views.explain.plain import as_text

    layout = request.layout()
    dims = dims_of(layout, options["dims"])
    write(as_text(explanation(layout, dims, lang=output.lang), width()), output.path)
    return 0


def rank(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Shows one rank: its place, its layers, its groups."""
    layout, placement = request.laid_out()
    place = place_of(layout, placement, options["rank"])
    form = output.form_among()
    if form == "json":
        write(as_json(rank_document(layout, place)), output.path)
        return 0
    if form == "csv":
        raise InputError("--rank has no csv form; it has table and json")
    lang = output.lang
    lines = rank_lines(layout, place, lang=lang)
    split = layers_of(request, layout)
    if split:
        which = layers_text(split, place.stage, lang=lang)
        held = tell(
            "holds {count} layers: {which}", lang, count=split.counts[place.stage], which=which
        )
        lines.append(f"  {held}")
    top = [headline(layout, placement, lang=lang), "", *lines, ""]
    show(*top, rank_table(layout, place, lang=lang), output=output.path)
    return 0


def advice(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Shows all advice on a layout and its nodes."""
    layout, placement = request.laid_out()
    findings = findings_of(request, layout, placement)
    form, lang = output.form_among(("table", "json")), output.lang
    if form == "json":
        write(as_json(advice_document(layout, findings, lang)), output.path)
        return 0
    lines = advice_lines(findings, width=width(), lang=lang)
    lines = lines or [tell("nothing to say of this layout", lang)]
    show(headline(layout, placement, lang=lang), "", *lines, output=output.path)
    return 0


def sources(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Shows where each size came from."""
    told = sources_of(request, output.lang, request.layout())
    config = request.config
    if output.form_among(("table", "json")) == "json":
        file, form = (config.file, config.format) if config else (None, "options")
        write(as_json(sources_document(told, file, form), depth=3), output.path)
        return 0
    lines = footer(request, output.lang)
    below = ["", *lines] if lines else []
    show(sources_table(told, lang=output.lang), *below, output=output.path)
    return 0


def emit(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Writes a launch config for the layout."""
    layout, placement = request.laid_out()
    from serried.launch.write import write as launch_text

    text = launch_text(options["emit"], layout, placement, sizes=request.sizes())
    write(text, output.path)
    return 0


def compared(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Compares with another file or framework; returns 1 when groups differ."""
    from serried.views.cli.groups.several import beside

    return beside(request, options, output)


ANSWERS: dict[str, Answer] = {
    "explain": explain,
    "rank": rank,
    "advice": advice,
    "sources": sources,
    "emit": emit,
    "compare": compared,
}
"""Options that ask something else than all groups, each with its answer."""
