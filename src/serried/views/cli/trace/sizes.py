"""The options that lay out the ranks of another tool's files, whose files do not say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import click


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
