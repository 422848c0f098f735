"""``--compare``: another launch file, or the same sizes elsewhere, beside what is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from serried import frameworks
from serried.errors import InputError, listed
from serried.frameworks import FRAMEWORKS, Sizes
from serried.launch.read import read_path
from serried.launch.request import LayoutRequest
from serried.mesh import Layout
from serried.mesh.compare import compare
from serried.mesh.sizes import SIZES, read_settings
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json
from serried.views.layout.comparison import comparison_lines, comparison_table
from serried.views.layout.document import comparison_document
from serried.views.sentences import tell

NAMES_DP = {"accelerate": "dp_shard_size"}
"""Frameworks that must be told the data-parallel size, each with its setting for it."""


NAMES = {row.option.removeprefix("--").replace("-", "_"): row for row in SIZES.values()}
"""Sizes as ``--compare-set`` takes them, called as their options are."""


def beside(request: LayoutRequest, options: Mapping[str, Any], output: OutputChoice) -> int:
    """Compares with another file or framework; returns 1 when groups differ."""
    layout = request.layout()
    other = other_layout(request, options["compare"], options["compare_set"])
    found = compare(layout, other)
    form, lang = output.form_among(TABLE_OR_JSON), output.lang
    first = request.config.file if request.config else tell("the options", lang)
    second = " ".join([Path(options["compare"]).name, *options["compare_set"]])
    left, right = named(layout, other, first, second, lang)
    if form == "json":
        document = comparison_document(found, left, right, lang)
        output.write(as_json(document))
    else:
        lines = comparison_lines(found, left, right, lang=lang)
        rows = comparison_table(found, left, right, lang=lang)
        output.show(rows, "", *lines)
    return 0 if found.is_same else 1


def other_layout(request: LayoutRequest, other: str, given: Sequence[str]) -> Layout:
    """Returns the layout of a file, or of the sizes asked for under another framework.

    Raises InputError for what is neither, and where that framework would refuse.
    """
    told, settings = _told(given)
    if other.partition("@")[0] in FRAMEWORKS:
        sizes = _sizes_for(request, other)
        options = {**sizes.options, **settings}
        return frameworks.layout(other, replace(sizes, **told, options=options))
    path = Path(other)
    if not path.exists():
        raise InputError(
            "--compare {other} is neither a file nor a framework; frameworks are {known}",
            other=other,
            known=listed(FRAMEWORKS, limit=len(FRAMEWORKS)),
        )
    config = read_path(path)
    if config.world_size is None and "world_size" not in told:
        # A config that does not hold its world is compared on the world that was asked for.
        told["world_size"] = request.sizes().world_size
    return LayoutRequest.of(told, config=config, settings=settings).layout()


def _told(given: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the sizes and the settings that ``--compare-set`` gives for the second layout."""
    settings = read_settings(given)
    sizes = {row.name: row.read(settings.pop(key)) for key, row in NAMES.items() if key in settings}
    return sizes, settings


def _sizes_for(request: LayoutRequest, other: str) -> Sizes:
    """Returns the sizes as another framework takes them: without settings it does not have."""
    sizes = request.sizes()
    if other.partition("@")[0] == request.framework_at.partition("@")[0]:
        return sizes
    options: dict[str, str] = {}
    if other.partition("@")[0] in NAMES_DP:
        options = {NAMES_DP[other.partition("@")[0]]: str(request.layout().sizes.get("dp", 1))}
    # The order and these sizes are the first framework's own; another has none or others.
    # So is a stage, which it may not know, and on which no group depends.
    return replace(sizes, order=None, zero=None, zero1=None, nettest=None, options=options)


def named(
    left: Layout, right: Layout, first: str, second: str, lang: str = "en"
) -> tuple[str, str]:
    """Returns what to call two layouts in a sentence: by framework, version, or origin."""
    if left.framework != right.framework:
        return left.framework, right.framework
    if left.version != right.version:
        return f"{left.framework} {left.version}", f"{right.framework} {right.version}"
    if first != second:
        return first, second
    return tell("the first", lang), tell("the second", lang)
