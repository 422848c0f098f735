"""What trace commands share: where recordings lie, sizes that files do not say, and references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from serried.collective.networks import NetworkPreset, preset_of
from serried.plan.busbw import BusbwTable, read_busbw
from serried.plan.traffic_reference import TrafficReference, with_references
from serried.trace.merge.files import Folder, place_of
from serried.trace.model.group_traffic import GroupTraffic


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


@dataclass(frozen=True)
class References:
    """Holds what a run's collectives are laid beside: a check's table, and a network's prices."""

    checked: BusbwTable | None = None
    planned: NetworkPreset | None = None

    @classmethod
    def read(cls, busbw: Path | None, network: str | None) -> References:
        """Returns what options name; raises InputError for a table or a network that is none."""
        return cls(
            None if busbw is None else read_busbw(busbw),
            None if network is None else preset_of(network),
        )

    def beside(self, rows: Iterable[GroupTraffic]) -> list[TrafficReference]:
        """Returns rows of traffic beside both, the slowest first."""
        return with_references(rows, self.checked, self.planned)


NO_REFERENCES = References()


def reference_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds --busbw and --network."""
    busbw = click.option(
        "--busbw",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Lay what collectives reached beside a table that serried check --busbw measured.",
    )
    network = click.option(
        "--network",
        metavar="NAME",
        help="Lay it beside the price of a plan over this network: a100, h100, h200, b200, gb200, "
        "mi300x or ethernet.",
    )
    return busbw(network(command))


def given(sizes: Mapping[str, int | None]) -> dict[str, int]:
    """Returns the sizes that were given."""
    return {axis: size for axis, size in sizes.items() if size is not None}
