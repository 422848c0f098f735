"""What the answers of ``serried groups`` share: the layout, its findings, the form, the kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from serried.errors import InputError, listed
from serried.finding import Finding
from serried.launch.request import LayoutRequest
from serried.mesh import Layout, Placement
from serried.mesh.advice import advise, is_important
from serried.views.job.layers import layers_of
from serried.views.layout.advice import one_line
from serried.views.sentences import tell

Options = Mapping[str, Any]


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


def kinds_of(layout: Layout, kinds: tuple[str, ...], dims: str | None) -> list[str]:
    """Returns the names of the kinds to show, refusing those that the layout lacks."""
    if kinds:
        return [layout.kind(name).name for name in kinds]
    if dims:
        named_dims = dims_of(layout, dims)
        return [layout.kind_of(dim, with_cp="cp" in named_dims) for dim in named_dims]
    return [kind.name for kind in layout.kinds]


def dims_of(layout: Layout, dims: str | None) -> list[str]:
    """Returns the dimensions asked for, or those the layout splits along (dp when none)."""
    if dims is None:
        return [dim for dim in layout.dims if layout.sizes.get(dim, 1) > 1] or ["dp"]
    names = list(dict.fromkeys(dims.replace(",", "+").split("+")))
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
