"""What ``serried groups`` can answer: one function each, from what was asked to a view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from serried.errors import InputError
from serried.finding import Finding
from serried.launch.request import LayoutRequest
from serried.mesh import Layout, Placement
from serried.mesh.advice import advise, is_important
from serried.mesh.domain import domain_of
from serried.views.cli.groups.kinds import dims_of, kinds_of, main_kinds, refuse_filters
from serried.views.cli.output import (
    TABLE_OR_JSON,
    OutputChoice,
    as_json,
    json_parts,
    width,
    write_parts,
)
from serried.views.job.layers import layers_of
from serried.views.job.sources import footer, sources_of
from serried.views.layout.advice import advice_lines, important_lines, one_line
from serried.views.layout.document import (
    advice_document,
    groups_csv,
    groups_document,
    layers_document,
    rank_document,
    sweep_document,
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
    refusal_lines,
    sweep_table,
)
from serried.views.sentences import tell
from serried.views.table import Table

if TYPE_CHECKING:
    from serried.views.sharding.answer import ShardingAnswer

FORMATS = ("table", "json", "csv", "svg", "png")
"""Forms of all groups; the last two draw what ranks share under ZeRO."""
PICTURES = ("svg", "png")
LINK_OPTIONS = (
    *("algorithm", "bytes", "root", "channels", "split", "mask", "network", "latency", "bandwidth"),
    *("nics_per_node", "busbw", "steps"),
)

Options = Mapping[str, Any]
Answer = Callable[[LayoutRequest, Options, OutputChoice], int]


def answer_of(options: Options) -> Answer:
    """Returns the answer that options ask for; raises InputError for two at once."""
    several = len(options["world_size"] or ()) > 1
    asked = [name for name in ANSWERS if options[name] is not None and options[name] is not False]
    if "collective" in asked and "rank" in asked:
        asked.remove("rank")  # it says which group
    _refuse_links(options)
    if len(asked) > 1:
        raise InputError(
            "{one} and {other} are two questions; ask one at a time",
            one=f"--{asked[0]}",
            other=f"--{asked[1]}",
        )
    if options["compare_set"] and options["compare"] is None:
        raise InputError("--compare-set gives sizes of what is compared; give --compare too")
    # The questions of ANSWERS are about one layout, while several world sizes ask which can be.
    if several and asked:
        raise InputError(
            "--{option} needs one world size; --world-size has {count}",
            option=asked[0],
            count=len(options["world_size"]),
        )
    if several:
        refuse_filters(options)
        return sweep
    return ANSWERS[asked[0]] if asked else all_groups


def all_groups(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Shows every kind, or the groups of the kinds asked for."""
    layout, placement = request.laid_out()
    kinds = kinds_of(layout, options["kinds"], options["dims"])
    form = output.form_among(FORMATS)
    shared = _sharding(layout, options, form)
    if form in PICTURES:
        assert shared is not None
        output.write(shared.picture(form, output.lang))
        return 0
    # JSON and CSV only warn on stderr of what matters; the table also counts the other findings.
    findings = findings_of(request, layout, placement, only_important=form != "table")
    split = layers_of(request, layout) if options["layers"] else None
    if form == "json" and split:
        output.write(as_json(layers_document(layout, split), depth=1))
    elif form == "json":
        # The groups of a large world are written part by part: their text is never all in memory.
        document = groups_document(layout, kinds)
        document |= {"sharding": shared.document(output.lang)} if shared else {}
        write_parts(chain(json_parts(document), ("\n",)), output.path)
    elif form == "csv":
        write_parts(groups_csv(layout, kinds), output.path)
    else:
        only = kinds if options["kinds"] else []
        above = ["", *shared.parts(width(), output.lang)] if shared and not only else []
        is_asked = only or options["dims"] or options["is_whole"]
        shown = kinds if is_asked else main_kinds(layout)
        _show_groups(
            request,
            (layout, placement),
            findings,
            only=only,
            kinds=shown,
            left=len(kinds) - len(shown),
            above=above,
            output=output,
        )
    if form != "table":
        warn(request, findings, output.lang)
    return 0


def _sharding(layout: Layout, options: Options, form: str) -> ShardingAnswer | None:
    """Returns what ranks share where that is asked; raises InputError for a picture of nothing."""
    asked = any(options[name] for name in ("parameters", "expert_parameters", "precision"))
    shared = None
    if asked or "zero" in layout.settings or form in PICTURES:
        # Imported where it is asked for: every start would wait for it.
        from serried.views.sharding.answer import ShardingAnswer

        shared = ShardingAnswer.of(layout, options)
    if form in PICTURES and shared is None:
        raise InputError(
            "{form} draws what ranks share of a model's state; give --zero, or --parameters",
            form=form,
        )
    return shared


def _show_groups(
    request: LayoutRequest,
    laid_out: tuple[Layout, Placement],
    findings: Sequence[Finding],
    *,
    only: Sequence[str],
    kinds: Sequence[str],
    left: int,
    above: Sequence[str | Table],
    output: OutputChoice,
) -> None:
    """Prints ``kinds``, or the groups of ``only`` some, below what is said ``above`` them.

    ``left`` is the number of kinds that are not shown.
    """
    (layout, placement), lang = laid_out, output.lang
    if only:
        tables: list[str | Table] = [
            groups_table(layout, placement, kind, lang=lang) for kind in only
        ]
    else:
        domain = domain_of(placement, request.number("nvlink_domain"))
        # Where a node is the NVLink domain, a column of its own would repeat the one of the node.
        inside = None if domain.is_node else domain.placement
        tables = [kinds_table(layout, placement, kinds, inside, lang=lang)]
        if left:
            tables.append(tell("{count} more kinds of groups: --all", lang, count=left))
    advice = important_lines(findings, width=width(), lang=lang)
    split = None if only else layers_of(request, layout)
    held: list[str | Table] = ["", layers_table(layout, split, lang=lang)] if split else []
    one = only[0] if len(only) == 1 else None
    picture = node_map(layout, placement, kind=one, width=width(), lang=lang)
    told = footer(request, lang)
    top = headline(layout, placement, lang=lang)
    parts: list[str | Table] = [top, *above, "", *tables, *held]
    parts += ["", *advice] if advice else []
    parts += ["", picture]
    parts += ["", *told] if told else []
    output.show(*parts)


def explain(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Explains the dimensions that are split."""
    from serried.views.explain.explanation import explanation
    from serried.views.explain.plain import as_text

    layout = request.layout()
    dims = dims_of(layout, options["dims"])
    output.write(as_text(explanation(layout, dims, lang=output.lang), width()))
    return 0


def rank(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Shows one rank: its place, its layers, its groups."""
    from serried.mesh.rank import place_of

    layout, placement = request.laid_out()
    place = place_of(layout, placement, options["rank"])
    form = output.form_among()
    if form == "json":
        output.write(as_json(rank_document(layout, place)))
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
    output.show(*top, rank_table(layout, place, lang=lang))
    return 0


def advice(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Shows all advice on a layout and its nodes."""
    layout, placement = request.laid_out()
    findings = findings_of(request, layout, placement)
    form, lang = output.form_among(TABLE_OR_JSON), output.lang
    if form == "json":
        output.write(as_json(advice_document(layout, findings, lang)))
        return 0
    lines = advice_lines(findings, width=width(), lang=lang)
    lines = lines or [tell("nothing to say of this layout", lang)]
    output.show(headline(layout, placement, lang=lang), "", *lines)
    return 0


def sources(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Shows where each size came from."""
    told = sources_of(request, output.lang, request.layout())
    config = request.config
    if output.form_among(TABLE_OR_JSON) == "json":
        file, form = (config.file, config.format) if config else (None, "options")
        output.write(as_json(sources_document(told, file, form), depth=3))
        return 0
    lines = footer(request, output.lang)
    below = ["", *lines] if lines else []
    output.show(sources_table(told, lang=output.lang), *below)
    return 0


def emit(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Writes a launch config for the layout."""
    layout, placement = request.laid_out()
    from serried.launch.write import write as launch_text

    text = launch_text(options["emit"], layout, placement, sizes=request.sizes())
    output.write(text)
    return 0


def compared(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Compares with another file or framework; returns 1 when groups differ."""
    from serried.views.cli.groups.compare import beside

    return beside(request, options, output)


def step(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Shows one training step under the sharding, event by event."""
    from serried.views.cli.groups.step import step as shown

    return shown(request, options, output)


def sweep(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Tries several world sizes; returns 1 when none can be."""
    first = request.at(options["world_size"][0]).sizes()
    # Worlds that can be lie at multiples of tp x pp x cp, so near ones are looked for there.
    step = first.tp * first.pp * first.cp
    from serried.mesh.sweep import tried

    worlds = tried(options["world_size"], lambda world: request.at(world).layout(), step=step)
    if output.form_among(TABLE_OR_JSON) == "json":
        output.write(as_json(sweep_document(worlds, request.placement)))
    else:
        refusals = list(refusal_lines(worlds, lang=output.lang))
        parts: list[str | Table] = [sweep_table(worlds, request.placement, lang=output.lang)]
        parts += ["", *refusals] if refusals else []
        output.show(*parts)
    return 0 if any(each.layout for each in worlds) else 1


def findings_of(
    request: LayoutRequest, layout: Layout, placement: Placement, *, only_important: bool = False
) -> list[Finding]:
    """Returns the advice on a layout, all of it or what matters most."""
    return advise(
        layout,
        placement,
        nvlink_domain=request.number("nvlink_domain"),
        layers=layers_of(request, layout),
        only_important=only_important,
    )


def warn(request: LayoutRequest, findings: Sequence[Finding], lang: str) -> None:
    """Tells remarks and important findings on stderr, so that JSON and CSV stay what they are."""
    for note in request.notes:
        click.echo(tell("note: {remark}", lang, remark=note), err=True)
    for finding in findings:
        if is_important(finding):
            click.echo(one_line(finding, lang=lang), err=True)


def collective(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Shows the steps of a collective over one group."""
    from serried.views.cli.collective.answer import answer_collective
    from serried.views.job.layout_group import group_of

    layout, placement = request.laid_out()
    kinds = kinds_of(layout, options["kinds"] or ("dp",), None)
    if len(kinds) > 1:
        raise InputError(
            "--collective shows one group, and {count} kinds are named; name one --kind",
            count=len(kinds),
        )
    group = group_of(layout, placement, kinds[0], options["rank"])
    # --chunks and --gpus-per-node are of the layout here.
    asked = {name: options[name] for name in LINK_OPTIONS}
    answer_collective(options["collective"], asked, output, group=group)
    return 0


def _refuse_links(options: Options) -> None:
    """Raises InputError for an option of a collective where none is asked for."""
    for name in LINK_OPTIONS:
        if options[name] is not None and options["collective"] is None:
            raise InputError(
                "--{option} is of a collective; add --collective", option=name.replace("_", "-")
            )


ANSWERS: dict[str, Answer] = {
    "explain": explain,
    "rank": rank,
    "advice": advice,
    "sources": sources,
    "emit": emit,
    "compare": compared,
    "collective": collective,
    "step": step,
}
"""Options that ask something else than all groups, each with its answer."""
