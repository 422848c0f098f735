"""What is asked of a layout: sizes, settings, and the launch file that they go before.

    options, address, Python ───> sizes, settings ─┐
    launch file, dropped file ──> LaunchConfig ────┴─> LayoutRequest ──> Sizes ──> Layout

Every way in makes this one value, and one way leads from it to a layout, so that all answer alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from serried import frameworks
from serried.errors import InputError, listed
from serried.finding import Sentence
from serried.mesh import Layout, Placement
from serried.mesh.sizes import SIZES, TABLE, Given, Sizes

if TYPE_CHECKING:
    from serried.launch.facts.config import LaunchConfig
    from serried.launch.facts.found import Facts, Found, Missing, Value

DEFAULT_FRAMEWORK = "megatron"
LAYER_SETTINGS = {
    "decoder_first_pipeline_num_layers": "first",
    "decoder_last_pipeline_num_layers": "last",
    "pipeline_model_parallel_layout": "picture",
}
"""Settings that divide layers, not ranks: no group depends on them."""


@dataclass(frozen=True)
class LayoutRequest:
    """Holds what is asked: a framework, sizes by name, settings, and the launch file if any.

    >>> LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4}).layout().groups("dp").lists()[:2]
    [[0, 2], [1, 3]]

    ``given`` holds sizes of ``mesh.sizes.TABLE``; what it leaves out follows from the file, the
    other sizes or a default. ``hosts`` is what a hostfile leaves, ``notes`` what reading these
    files has to remark.
    """

    framework: str | None = None
    given: Mapping[str, Given] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    config: LaunchConfig | None = None
    hosts: Mapping[str, Found] = field(default_factory=dict)
    notes: tuple[Sentence, ...] = ()

    @classmethod
    def of(
        cls,
        sizes: Mapping[str, object] = MappingProxyType({}),
        *,
        framework: str | None = None,
        settings: Mapping[str, str] | None = None,
        config: LaunchConfig | None = None,
        hosts: Facts | None = None,
    ) -> LayoutRequest:
        """Joins sizes by name, settings, the launch file that they go before, and counted hosts.

        Sizes that are None are not given. Raises InputError for one that is not in the table.
        """
        given = {name: _checked(name, size) for name, size in sizes.items() if size is not None}
        notes = (*(hosts.notes if hosts else ()), *(config.notes if config else ()))
        counted = hosts.settled() if hosts else {}
        return cls(framework, given, dict(settings or {}), config, counted, notes)

    def at(self, world_size: int | None) -> LayoutRequest:
        """Returns the same for a world of ``world_size`` ranks, whatever the files say of it.

        None changes nothing.
        """
        if world_size is None:
            return self
        hosts = {name: each for name, each in self.hosts.items() if name != "world_size"}
        return replace(self, given={**self.given, "world_size": world_size}, hosts=hosts)

    # ------------------------------------------------------------------- the one way

    def layout(self) -> Layout:
        """Returns the layout; raises InputError where the framework would refuse."""
        return frameworks.layout(self.framework_at, self.sizes())

    def sizes(self) -> Sizes:
        """Returns the sizes; raises InputError naming what is missing."""
        given = self._completed()
        if self.config is None:
            return _sizes(given, self.rank_settings)
        return self._source(given).sizes(given, self.rank_settings)

    def laid_out(self) -> tuple[Layout, Placement]:
        """Returns the layout and where its ranks sit; raises InputError where either cannot be."""
        layout = self.layout()
        return layout, self.placement(layout.world_size, layout.ranks_per_host)

    def placement(self, world_size: int, ranks_per_host: Sequence[int] = ()) -> Placement:
        """Returns where ranks sit: as given, else as the hosts, else as the file says.

        ``ranks_per_host`` is what the layout itself knows of hosts.
        """
        per_node, per_rank = self.numbers("gpus_per_node"), self.number("gpus_per_rank")
        asked = self._nodes_of_hosts() if per_node is None else per_node
        if asked is None and ranks_per_host:
            asked = tuple(ranks * (per_rank or 1) for ranks in ranks_per_host)
        if self.config is not None:
            return self.config.placement(world_size, gpus_per_node=asked, gpus_per_rank=per_rank)
        return Placement.on(
            world_size,
            Placement.gpus_per_node if asked is None else asked,
            Placement.gpus_per_rank if per_rank is None else per_rank,
        )

    def _nodes_of_hosts(self) -> int | tuple[int, ...] | None:
        if not self.hosts:
            return None
        from serried.launch.facts.config import nodes_told

        return nodes_told(self.hosts)

    # ------------------------------------------------------------------- what was asked

    @property
    def framework_at(self) -> str:
        """The framework, as ``--framework`` takes it; raises InputError when nothing tells."""
        if self.config is None:
            return self.framework or DEFAULT_FRAMEWORK
        if self.framework is None or self.framework == self.config.framework:
            return self.config.framework_at
        return self.framework

    @property
    def is_translated(self) -> bool:
        """Whether another framework was asked for than the one that the file is of."""
        asked = (self.framework or "").partition("@")[0]
        config = self.config
        return bool(asked and config and config.framework and asked != config.framework)

    @property
    def rank_settings(self) -> Mapping[str, str]:
        """The settings that groups may depend on."""
        return {key: each for key, each in self.settings.items() if key not in LAYER_SETTINGS}

    @property
    def layer_settings(self) -> Mapping[str, str]:
        """The settings that divide layers, those of the launch file among them."""
        told = {name: f"layers_{name}" for name in LAYER_SETTINGS.values()}
        fields = self.config.fields if self.config else {}
        found = {name: str(fields[key].value) for name, key in told.items() if key in fields}
        asked = {
            LAYER_SETTINGS[k]: each for k, each in self.settings.items() if k in LAYER_SETTINGS
        }
        return {**found, **asked}

    @property
    def sizes_given(self) -> dict[str, Value]:
        """What of ``Sizes`` was given, each a number or a word."""
        return {
            name: each
            for name, each in self.given.items()
            if name in SIZES and not isinstance(each, tuple)
        }

    def number(self, name: str) -> int | None:
        """Returns a size that was given as one number, else None."""
        value = self.given.get(name)
        return value if isinstance(value, int) else None

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """Returns a size that was given as a list of numbers, else None."""
        value = self.given.get(name)
        return value if isinstance(value, tuple) else None

    def missing(self) -> tuple[Missing, ...]:
        """Returns what neither sizes nor file settle, and must be given: the framework first."""
        if self.config is None:
            return ()
        given = self._completed()
        unnamed = self.config.framework is None and not self.framework
        asked = [each for each in self.config.missing if unnamed and each.name == "framework"]
        return (*asked, *self._source(given).unanswered(given, self.rank_settings))

    # ------------------------------------------------------------------- how it is settled

    def _completed(self) -> dict[str, Value]:
        """Returns the sizes that are given, the world that hosts or ``dp`` complete among them."""
        sizes = self.sizes_given
        world, config, dp = self._world_size(), self.config, sizes.get("dp")
        if world is not None:
            return sizes | {"world_size": world}
        if dp is None or config is None or config.world_size:
            return sizes
        # A dp that is asked for makes the world together with tp, pp and cp, which the file may
        # give.
        known = [sizes.get(name) or _value(config, name) for name in ("tp", "pp", "cp")]
        return sizes | {"world_size": prod(int(each or 1) for each in (dp, *known))}

    def _world_size(self) -> int | None:
        """Returns the world size that was given or that the hosts leave, which must agree."""
        asked, hosts = self.number("world_size"), self.hosts.get("world_size")
        if hosts is None or asked == hosts.value:
            return asked
        if asked is None:
            return int(hosts.value)
        raise InputError(
            "--world-size {asked} is not what the hostfile leaves, {slots} slots; "
            "leave one of them out",
            asked=asked,
            slots=hosts.value,
        )

    def _source(self, given: Mapping[str, Value]) -> LaunchConfig:
        """Returns the launch file without what is given puts out of force."""
        from serried.launch.facts.found import FIELDS

        config = self.config
        assert config is not None
        fields = dict(config.fields)
        # Under a world that is asked for, dp is what the other sizes leave, whatever the file says.
        if "world_size" in given and "dp" not in given:
            fields.pop("dp", None)
        if not self.is_translated:
            return replace(config, fields=fields)
        # Another framework was asked for: order, options and version are in the words of the
        # file's.
        fields.pop("order", None)
        if config.world_size is not None:
            fields["world_size"] = config.world_size
        missing = tuple(each for each in config.missing if each.name in FIELDS)
        bare = replace(config, fields=fields, missing=missing, options={})
        return replace(bare, product={}, derive=None, version=None)


def _checked(name: str, value: object) -> Given:
    """Returns a size as its row holds it; raises InputError for a name or a value that is none."""
    if name not in TABLE:
        raise InputError(
            "'{name}' is not a size; sizes that are: {known}",
            name=name,
            known=listed(TABLE, limit=len(TABLE)),
        )
    return TABLE[name].read(value)


def _value(config: LaunchConfig, name: str) -> Value | None:
    return config.fields[name].value if name in config.fields else None


def _sizes(given: Mapping[str, Value], settings: Mapping[str, str]) -> Sizes:
    """Returns sizes without a file: the world may follow from ``dp`` and the others."""
    values = dict(given)
    if "world_size" not in values and "dp" in values:
        values["world_size"] = prod(int(values.get(name, 1)) for name in ("tp", "pp", "cp", "dp"))
    if "world_size" not in values:
        raise InputError("the number of ranks is missing; give it, such as --world-size 16")
    return Sizes.of(values, settings)
