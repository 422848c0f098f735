"""What ``serried groups`` answers about several layouts: two beside each other, many sizes."""

from __future__ import annotations

from pathlib import Path

from serried.errors import InputError
from serried.launch.request import LayoutRequest
from serried.mesh.compare import compare
from serried.mesh.sweep import tried
from serried.views.cli.groups.parts import Options
from serried.views.cli.other import named, other_layout
from serried.views.cli.output import OutputChoice, as_json, show, write
from serried.views.layout.comparison import comparison_lines, comparison_table
from serried.views.layout.document import comparison_document, sweep_document
from serried.views.layout.text import refusal_lines, sweep_table
from serried.views.sentences import tell
from serried.views.table import Table


def beside(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Compares with another file or framework; returns 1 when groups differ."""
    layout = request.layout()
    other = other_layout(request, options["compare"], options["compare_set"])
    found = compare(layout, other)
    form, lang = output.form_among(("table", "json")), output.lang
    first = request.config.file if request.config else tell("the options", lang)
    second = " ".join([Path(options["compare"]).name, *options["compare_set"]])
    left, right = named(layout, other, first, second, lang)
    if form == "json":
        document = comparison_document(found, left, right, lang)
        write(as_json(document), output.path)
    else:
        lines = comparison_lines(found, left, right, lang=lang)
        rows = comparison_table(found, left, right, lang=lang)
        show(rows, "", *lines, output=output.path)
    return 0 if found.is_same else 1


def sweep(request: LayoutRequest, options: Options, output: OutputChoice) -> int:
    """Tries several world sizes; returns 1 when none can be."""
    first = request.at(options["world_size"][0]).sizes()
    step = first.tp * first.pp * first.cp
    worlds = tried(options["world_size"], lambda world: request.at(world).layout(), step=step)
    if output.form_among(("table", "json")) == "json":
        write(as_json(sweep_document(worlds, request.placement)), output.path)
    else:
        refusals = list(refusal_lines(worlds, lang=output.lang))
        parts: list[str | Table] = [sweep_table(worlds, request.placement, lang=output.lang)]
        parts += ["", *refusals] if refusals else []
        show(*parts, output=output.path)
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
