"""What trace commands share: where recordings lie, sizes that files do not say, and references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from serried.collective.networks import NetworkPreset, preset_of
from serried.errors import InputError
from serried.launch.request import LayoutRequest
from serried.mesh import Layout
from serried.plan.busbw import BusbwTable, read_busbw
from serried.plan.traffic.reference import TrafficReference, with_references
from serried.trace.gpu.activity import GpuTrace
from serried.trace.merge.files import Folder, place_of
from serried.trace.model.group_traffic import GroupTraffic
from serried.trace.model.laid_out import laid_out
from serried.trace.model.trace import Trace


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
    """Adds --pp, --dp, --tp and --layout."""
    for axis, parallel in (("tp", "Tensor"), ("dp", "Data"), ("pp", "Pipeline")):
        option = click.option(
            f"--{axis}",
            type=click.IntRange(min=1),
            metavar="NUMBER",
            help=f"{parallel}-parallel size, for a trace of another tool whose files do not say "
            "it.",
        )
        command = option(command)
    layout = click.option(
        "--layout",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Take the groups from this launch script or config, under its framework's rules.",
    )
    return layout(command)


@dataclass(frozen=True)
class AskedLayout:
    """Holds how the ranks of a trace stand, as far as options and a launch file say it."""

    sizes: Mapping[str, int]
    file: Path | None = None
    request: LayoutRequest | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> AskedLayout:
        """Returns what options say; raises InputError for a launch file that cannot be read."""
        sizes = {axis: size for axis, size in options.items() if axis != "layout" and size}
        if (file := options.get("layout")) is None:
            return cls(sizes)
        from serried.launch.read import read_path  # few traces come with a launch file

        return cls(sizes, file, LayoutRequest.of(sizes, config=read_path(file)))

    def for_reading(self) -> dict[str, int]:
        """Returns sizes for files of other tools, which do not say how their ranks stand."""
        if self.request is None:
            return {**self.sizes}
        try:
            told: Mapping[str, Any] = self.request.layout().sizes
        except InputError:  # the file does not tell the number of ranks, which traces may
            config = self.request.config
            told = {name: each.value for name, each in config.fields.items()} if config else {}
        found = {axis: told[axis] for axis in _AXES if isinstance(told.get(axis), int)}
        return {**found, **self.sizes}

    def of_gpus(self, trace: GpuTrace) -> Layout | None:
        """Returns the layout of a profile's ranks, None where nothing is said of it.

        Raises InputError where it is of another number of ranks.
        """
        if self.request is None:
            sizes = {**self.sizes}
            return laid_out("megatron", trace.world_size, sizes) if sizes else None
        try:
            layout = self.request.layout()
        except InputError:  # where the file does not tell the number of ranks, the profile does
            layout = self.request.at(trace.world_size).layout()
        said = trace.said_world_size
        if layout.world_size < trace.world_size or said not in (None, layout.world_size):
            raise self._other_ranks(layout.world_size, trace.world_size)
        return layout

    def require(self, trace: Trace) -> None:
        """Raises InputError where a recorded run has another number of ranks than was said."""
        if self.request is None:
            return
        try:
            laid = self.request.layout().world_size
        except InputError:  # the file does not tell the number of ranks
            return
        if laid != trace.job.world_size:
            raise self._other_ranks(laid, trace.job.world_size)

    def _other_ranks(self, laid: int, found: int) -> InputError:
        return InputError(
            "{file} lays out {laid:,} ranks, and the trace is of {found:,}; give the launch file "
            "of that job",
            file=self.file,
            laid=laid,
            found=found,
        )


_AXES = ("tp", "cp", "pp", "dp")


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
