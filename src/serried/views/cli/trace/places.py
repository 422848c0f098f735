"""Where recordings lie, as the trace commands take it: folders, files or URLs."""

from __future__ import annotations

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
