"""What trace commands share: where recordings lie, and sizes that other tools' files do not say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from serried.trace.merge.files import Folder, place_of


class PlaceType(click.ParamType[Folder]):
    """Takes a folder or a file of this machine, or a URL."""

    name = "place"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Folder:
        """Returns the place that a word names."""
        return place_of(value) if isinstance(value, str) else value


places_argument = click.argument(
    "places", nargs=-1, required=True, metavar="DIR...", type=PlaceType()
)


def sizes_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --pp, --dp and --tp."""
    for axis, parallel in (("tp", "Tensor"), ("dp", "Data"), ("pp", "Pipeline")):
        option = click.option(
            f"--{axis}",
            type=click.IntRange(min=1),
            metavar="NUMBER",
            help=f"{parallel}-parallel size, for a trace of another tool whose files do not say "
            "it.",
        )
        command = option(command)
    return command


def given(sizes: Mapping[str, int | None]) -> dict[str, int]:
    """Returns the sizes that were given."""
    return {axis: size for axis, size in sizes.items() if size is not None}
