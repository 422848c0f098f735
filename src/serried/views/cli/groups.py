"""``serried groups``: every process group of a job, over all ranks, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from serried import frameworks
from serried.errors import InputError, listed
from serried.mesh import Layout, Placement, place_of
from serried.views.cli.options import COUNT, placement_of, size_options, sizes_of
from serried.views.cli.output import FORMATS, as_json, format_of, show, width, write
from serried.views.explain import as_text, explanation
from serried.views.layout_document import groups_csv, groups_document, rank_document
from serried.views.layout_text import (
    groups_table,
    headline,
    kinds_table,
    rank_lines,
    rank_table,
)
from serried.views.node_map import node_map


@click.command()
@size_options
@click.option("--kind", "kinds", multiple=True, help="Only this group kind; may be repeated.")
@click.option("--dims", help="Only the groups of these dimensions, such as dp+tp.")
@click.option("--rank", type=COUNT, help="Only this rank: where it sits, whom it talks to.")
@click.option("--explain", is_flag=True, help="Explain the dimensions that are split.")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", help="Of --explain.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="table, json or csv.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write by suffix.")
def groups(
    kinds: tuple[str, ...],
    dims: str | None,
    rank: int | None,
    explain: bool,
    lang: str,
    form: str | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Prints which rank is in which process group, under the framework's own rules.

    \b
    serried groups --world-size 16 --tp 2 --pp 4
    serried groups --world-size 16 --tp 2 --pp 4 --framework internlm --kind data
    serried groups --world-size 16 --tp 2 --pp 4 --rank 5
    """
    layout = frameworks.layout(options["framework"], sizes_of(options))
    placement = placement_of(options, layout.world_size)
    form = format_of(form, output)
    if explain:
        write(as_text(explanation(_dims(layout, dims), lang=lang), width()), output)
    elif rank is not None:
        _rank(layout, placement, rank, form, output)
    else:
        _groups(layout, placement, _kinds(layout, kinds, dims), bool(kinds), form, output)


def _groups(
    layout: Layout,
    placement: Placement,
    kinds: Sequence[str],
    named: bool,
    form: str,
    output: Path | None,
) -> None:
    if form == "json":
        return write(as_json(groups_document(layout, kinds)), output)
    if form == "csv":
        return write(groups_csv(layout, kinds), output)
    if named:
        tables = [groups_table(layout, placement, kind) for kind in kinds]
    else:
        tables = [kinds_table(layout, placement, kinds)]
    only = kinds[0] if named and len(kinds) == 1 else None
    picture = node_map(layout, placement, kind=only, width=width())
    return show(headline(layout, placement), "", *tables, "", picture, output=output)


def _rank(layout: Layout, placement: Placement, rank: int, form: str, output: Path | None) -> None:
    place = place_of(layout, placement, rank)
    if form == "json":
        return write(as_json(rank_document(layout, place)), output)
    if form == "csv":
        raise InputError("--rank has no csv form; it has table and json")
    lines = [headline(layout, placement), "", *rank_lines(layout, place), ""]
    return show(*lines, rank_table(layout, place), output=output)


def _kinds(layout: Layout, kinds: tuple[str, ...], dims: str | None) -> list[str]:
    """Returns the names of the kinds to show, refusing those that the layout lacks."""
    if kinds:
        return [layout.kind(name).name for name in kinds]
    if dims:
        named = _dims(layout, dims)
        return [layout.kind_of(dim, with_cp="cp" in named) for dim in named]
    return [kind.name for kind in layout.kinds]


def _dims(layout: Layout, dims: str | None) -> list[str]:
    """Returns the dimensions asked for, or those the layout splits along (dp when none)."""
    if dims is None:
        return [dim for dim in layout.dims if layout.sizes[dim] > 1] or ["dp"]
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
