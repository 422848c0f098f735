"""What ``serried groups`` answers about several layouts: two beside each other, many sizes."""

from __future__ import annotations

from rich.table import Table

from serried.errors import InputError
from serried.mesh.compare import compare
from serried.mesh.sweep import tried
from serried.views.cli.groups.parts import Options, form_of
from serried.views.cli.other import named, other_layout
from serried.views.cli.output import as_json, show, write
from serried.views.job.job import Asked
from serried.views.layout.comparison import comparison_lines, comparison_table
from serried.views.layout.document import comparison_document, sweep_document
from serried.views.layout.sweep import refusal_lines, sweep_table


def beside(asked: Asked, options: Options) -> int:
    """Compares with another file or framework; returns 1 when groups differ."""
    layout = asked.layout()
    other = other_layout(asked, options["compare"])
    found = compare(layout, other)
    form, lang = form_of(options, ("table", "json")), options["lang"]
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
    if form_of(options, ("table", "json")) == "json":
        write(as_json(sweep_document(worlds, asked.placement)), options["output"])
    else:
        refusals = list(refusal_lines(worlds, lang=options["lang"]))
        parts: list[str | Table] = [sweep_table(worlds, asked.placement, lang=options["lang"])]
        parts += ["", *refusals] if refusals else []
        show(*parts, output=options["output"])
    return 0 if any(each.layout for each in worlds) else 1


def refuse_filters(options: Options) -> None:
    """Raises InputError for an option that picks groups of one layout, where several are tried."""
    for option, given in (("kind", options["kinds"]), ("dims", options["dims"])):
        if given:
            raise InputError(
                "--{option} needs one world size; --world-size has {count}",
                option=option,
                count=len(options["world_size"]),
            )
