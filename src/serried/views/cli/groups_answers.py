"""What ``serried groups`` can answer: one function each, from what was asked to a view."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from serried.errors import InputError, listed
from serried.finding import Finding
from serried.frameworks import launch
from serried.mesh import Layout, Placement, place_of
from serried.mesh.advice import advise, is_important
from serried.mesh.compare import compare
from serried.mesh.domain import domain_of
from serried.mesh.sweep import tried
from serried.views.advice_text import advice_lines, important_lines, one_line
from serried.views.asked import Asked
from serried.views.asked_layers import layers_of
from serried.views.asked_sources import footer, sources_of
from serried.views.cli.other import named, other_layout
from serried.views.cli.output import (
    as_json,
    format_of,
    json_parts,
    show,
    width,
    write,
    write_parts,
)
from serried.views.comparison_text import comparison_lines, comparison_table
from serried.views.explain import as_text, explanation
from serried.views.layers_text import layers_table, layers_text
from serried.views.layout_document import (
    advice_document,
    comparison_document,
    groups_csv,
    groups_document,
    layers_document,
    rank_document,
    sweep_document,
)
from serried.views.layout_text import (
    groups_table,
    headline,
    kinds_table,
    rank_lines,
    rank_table,
)
from serried.views.node_map import node_map
from serried.views.sentences import tell
from serried.views.sources_text import sources_document, sources_table
from serried.views.sweep_text import refusal_lines, sweep_table

Options = Mapping[str, Any]
Answer = Callable[[Asked, Options], int]


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
        return sweep
    return ANSWERS[asked[0]] if asked else all_groups


# ------------------------------------------------------------------------------- one layout


def all_groups(asked: Asked, options: Options) -> int:
    """Shows every kind, or the groups of the kinds asked for."""
    layout, placement = _laid_out(asked)
    kinds = _kinds(layout, options["kinds"], options["dims"])
    form, output = _form(options), options["output"]
    findings = _findings(asked, layout, placement, only_important=form != "table")
    split = layers_of(asked, layout) if options["layers"] else None
    if form == "json" and split:
        write(as_json(layers_document(layout, split), depth=1), output)
    elif form == "json":
        write_parts(chain(json_parts(groups_document(layout, kinds)), ("\n",)), output)
    elif form == "csv":
        write_parts(groups_csv(layout, kinds), output)
    else:
        _show_groups(asked, layout, placement, kinds, findings)
    if form != "table":
        _warn(asked, findings, options["lang"])
    return 0


def _show_groups(
    asked: Asked,
    layout: Layout,
    placement: Placement,
    kinds: Sequence[str],
    findings: Sequence[Finding],
) -> None:
    options, lang = asked.options, asked.options["lang"]
    is_named = bool(options["kinds"])
    if is_named:
        tables = [groups_table(layout, placement, kind, lang=lang) for kind in kinds]
    else:
        domain = domain_of(placement, options["nvlink_domain"])
        inside = None if domain.is_node else domain.placement
        tables = [kinds_table(layout, placement, kinds, inside, lang=lang)]
    advice = important_lines(findings, width=width(), lang=lang)
    split = layers_of(asked, layout) if not is_named else None
    held: list[str | Table] = ["", layers_table(layout, split, lang=lang)] if split else []
    only = kinds[0] if is_named and len(kinds) == 1 else None
    picture = node_map(layout, placement, kind=only, width=width(), lang=lang)
    told = footer(asked, lang)
    top = headline(layout, placement, lang=lang)
    parts: list[str | Table] = [top, "", *tables, *held]
    parts += ["", *advice] if advice else []
    parts += ["", picture]
    parts += ["", *told] if told else []
    show(*parts, output=options["output"])


def explain(asked: Asked, options: Options) -> int:
    """Explains the dimensions that are split."""
    layout = asked.layout()
    dims = _dims(layout, options["dims"])
    write(as_text(explanation(dims, lang=options["lang"]), width()), options["output"])
    return 0


def rank(asked: Asked, options: Options) -> int:
    """Shows one rank: its place, its layers, its groups."""
    layout, placement = _laid_out(asked)
    place = place_of(layout, placement, options["rank"])
    form = _form(options)
    if form == "json":
        write(as_json(rank_document(layout, place)), options["output"])
        return 0
    if form == "csv":
        raise InputError("--rank has no csv form; it has table and json")
    lang = options["lang"]
    lines = rank_lines(layout, place, lang=lang)
    split = layers_of(asked, layout)
    if split:
        which = layers_text(split, place.stage, lang=lang)
        held = tell(
            "holds {count} layers: {which}", lang, count=split.counts[place.stage], which=which
        )
        lines.append(f"  {held}")
    top = [headline(layout, placement, lang=lang), "", *lines, ""]
    show(*top, rank_table(layout, place, lang=lang), output=options["output"])
    return 0


def advice(asked: Asked, options: Options) -> int:
    """Shows all advice on a layout and its nodes."""
    layout, placement = _laid_out(asked)
    findings = _findings(asked, layout, placement)
    form, lang = _form(options, ("table", "json")), options["lang"]
    if form == "json":
        write(as_json(advice_document(layout, findings, lang)), options["output"])
        return 0
    lines = advice_lines(findings, width=width(), lang=lang)
    lines = lines or [tell("nothing to say of this layout", lang)]
    show(headline(layout, placement, lang=lang), "", *lines, output=options["output"])
    return 0


def sources(asked: Asked, options: Options) -> int:
    """Shows where each size came from."""
    told = sources_of(asked, options["lang"], asked.layout())
    config = asked.config
    if _form(options, ("table", "json")) == "json":
        file, form = (config.file, config.format) if config else (None, "options")
        write(as_json(sources_document(told, file, form), depth=3), options["output"])
        return 0
    lines = footer(asked, options["lang"])
    below = ["", *lines] if lines else []
    show(sources_table(told, lang=options["lang"]), *below, output=options["output"])
    return 0


def emit(asked: Asked, options: Options) -> int:
    """Writes a launch config for the layout."""
    layout, placement = _laid_out(asked)
    text = launch.write(options["emit"], layout, placement, sizes=asked.sizes())
    write(text, options["output"])
    return 0


# ------------------------------------------------------------------------------- several


def beside(asked: Asked, options: Options) -> int:
    """Compares with another file or framework; returns 1 when groups differ."""
    layout = asked.layout()
    other = other_layout(asked, options["compare"])
    found = compare(layout, other)
    form, lang = _form(options, ("table", "json")), options["lang"]
    left, right = named(layout, other, asked, options["compare"], lang)
    if form == "json":
        document = comparison_document(found, left, right, lang)
        write(as_json(document), options["output"])
    else:
        lines = comparison_lines(found, left, right, lang=lang)
        rows = comparison_table(found, left, right, lang=lang)
        show(rows, "", *lines, output=options["output"])
    return 0 if found.is_same else 1


def sweep(asked: Asked, options: Options) -> int:
    """Tries several world sizes; returns 1 when none can be."""
    first = asked.sizes(asked.world_sizes[0])
    worlds = tried(asked.world_sizes, asked.layout, step=first.tp * first.pp * first.cp)
    if _form(options, ("table", "json")) == "json":
        write(as_json(sweep_document(worlds, asked.placement)), options["output"])
    else:
        refusals = list(refusal_lines(worlds, lang=options["lang"]))
        parts: list[str | Table] = [sweep_table(worlds, asked.placement, lang=options["lang"])]
        parts += ["", *refusals] if refusals else []
        show(*parts, output=options["output"])
    return 0 if any(each.layout for each in worlds) else 1


ANSWERS: dict[str, Answer] = {
    "explain": explain,
    "rank": rank,
    "advice": advice,
    "sources": sources,
    "emit": emit,
    "compare": beside,
}
"""Options that ask something else than all groups, each with its answer."""


# ------------------------------------------------------------------------------- parts


def _laid_out(asked: Asked) -> tuple[Layout, Placement]:
    layout = asked.layout()
    return layout, asked.placement(layout.world_size)


def _findings(
    asked: Asked, layout: Layout, placement: Placement, *, only_important: bool = False
) -> list[Finding]:
    return advise(
        layout,
        placement,
        nvlink_domain=asked.options["nvlink_domain"],
        layers=layers_of(asked, layout),
        only_important=only_important,
    )


def _warn(asked: Asked, findings: Sequence[Finding], lang: str) -> None:
    """Tells remarks and important findings on stderr, so that JSON and CSV stay what they are."""
    for note in asked.notes:
        click.echo(tell("note: {remark}", lang, remark=note), err=True)
    for finding in findings:
        if is_important(finding):
            click.echo(one_line(finding, lang=lang), err=True)


def _form(options: Options, forms: tuple[str, ...] = ("table", "json", "csv")) -> str:
    """Returns the format asked for; raises InputError where an answer has no such form."""
    output: Path | None = options["output"]
    form = format_of(options["form"], output)
    if form not in forms:
        raise InputError(
            "this answer has no {form} form; it has {forms}",
            form=form,
            forms=listed(forms),
        )
    return form


def _kinds(layout: Layout, kinds: tuple[str, ...], dims: str | None) -> list[str]:
    """Returns the names of the kinds to show, refusing those that the layout lacks."""
    if kinds:
        return [layout.kind(name).name for name in kinds]
    if dims:
        named_dims = _dims(layout, dims)
        return [layout.kind_of(dim, with_cp="cp" in named_dims) for dim in named_dims]
    return [kind.name for kind in layout.kinds]


def _dims(layout: Layout, dims: str | None) -> list[str]:
    """Returns the dimensions asked for, or those the layout splits along (dp when none)."""
    if dims is None:
        return [dim for dim in layout.dims if layout.sizes.get(dim, 1) > 1] or ["dp"]
    names = dims.replace(",", "+").split("+")
    for name in names:
        if name not in layout.dims:
            raise InputError(
                "--dims {dims} names '{name}', which {framework} does not have here; "
                "it has {known}, joined by '+'",
                dims=dims,
                name=name,
                framework=layout.framework,
                known=listed(layout.dims),
            )
    return names
