"""The job that is asked for: options, and the launch file that they go before.

The command line and the workbench both ask through here, so that both answer the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from serried import frameworks
from serried.errors import InputError
from serried.finding import Sentence
from serried.frameworks import Sizes
from serried.launch import Found, LaunchConfig, Missing
from serried.launch.facts.config import nodes_told
from serried.launch.facts.facts import FIELDS, Facts, Value
from serried.mesh import Layout, Placement

DEFAULT = "megatron"
OPTIONS = {
    **{name: f"--{name}" for name in ("tp", "pp", "cp", "dp", "ep", "etp", "zero", "order")},
    "zero1": "--zero1-size",
    "nettest": "--nettest-size",
}
"""Sizes by their neutral names, each with its option."""

PLACES = ("gpus_per_node", "gpus_per_rank")
LAYER_SETTINGS = {
    "decoder_first_pipeline_num_layers": "first",
    "decoder_last_pipeline_num_layers": "last",
    "pipeline_model_parallel_layout": "picture",
}
"""Settings that divide layers, not ranks: no group depends on them."""


@dataclass(frozen=True)
class Asked:
    """Holds what was asked: options by name, settings, and the launch file if one was given.

    ``hosts`` is what a hostfile leaves, ``notes`` what reading these files has to remark.
    """

    options: Mapping[str, Any]
    settings: Mapping[str, str]
    config: LaunchConfig | None
    hosts: Mapping[str, Found]
    layer_settings: Mapping[str, str]
    notes: tuple[Sentence, ...] = ()

    @classmethod
    def of(
        cls,
        config: LaunchConfig | None,
        options: Mapping[str, Any],
        *,
        settings: Mapping[str, str],
        hosts: Facts | None = None,
    ) -> Asked:
        """Joins a launch file, options (those of ``UNASKED``), settings, and counted hosts."""
        told = _layers_told(config) if config else {}
        asked = {name: settings[key] for key, name in LAYER_SETTINGS.items() if key in settings}
        others = {key: value for key, value in settings.items() if key not in LAYER_SETTINGS}
        hosts = hosts or Facts("")
        notes = (*hosts.notes, *(config.notes if config else ()))
        return cls(options, others, config, hosts.settled(), {**told, **asked}, notes)

    @property
    def framework(self) -> str:
        """The framework, as ``--framework`` takes it; raises InputError when nothing tells."""
        asked = self.options["framework"]
        if self.config is None:
            return str(asked or DEFAULT)
        if asked is None or asked == self.config.framework:
            return self.config.framework_at
        return str(asked)

    @property
    def is_translated(self) -> bool:
        """Whether another framework was asked for than the one that the file is of."""
        asked = (self.options["framework"] or "").partition("@")[0]
        config = self.config
        return bool(asked and config and config.framework and asked != config.framework)

    @property
    def world_sizes(self) -> tuple[int, ...]:
        """The world sizes asked for by option: none, one or several."""
        return self.options["world_size"] or ()

    def sizes(self, world_size: int | None = None) -> Sizes:
        """Returns the sizes, for ``world_size`` ranks where given.

        Raises InputError naming what is missing.
        """
        given = self._given(world_size)
        if self.config is None:
            return _sizes(given, self.settings)
        return self._source(given).sizes(given, self.settings)

    def missing(self) -> tuple[Missing, ...]:
        """Returns what neither options nor file settle, and must be given: the framework first."""
        if self.config is None:
            return ()
        given = self._given(None)
        unnamed = self.config.framework is None and not self.options["framework"]
        asked = [each for each in self.config.missing if unnamed and each.name == "framework"]
        return (*asked, *self._source(given).unanswered(given, self.settings))

    def layout(self, world_size: int | None = None) -> Layout:
        """Returns the layout; raises InputError where the framework would refuse."""
        return frameworks.layout(self.framework, self.sizes(world_size))

    def placement(self, world_size: int) -> Placement:
        """Returns where ranks sit: as options say, else the hosts, else the file."""
        per_node, per_rank = (self.options[name] for name in PLACES)
        if per_node is None:
            per_node = nodes_told(self.hosts)
        if self.config is not None:
            return self.config.placement(world_size, gpus_per_node=per_node, gpus_per_rank=per_rank)
        return Placement.on(
            world_size,
            Placement.gpus_per_node if per_node is None else per_node,
            Placement.gpus_per_rank if per_rank is None else per_rank,
        )

    def _given(self, world_size: int | None) -> dict[str, Value | None]:
        given: dict[str, Value | None] = {name: self.options[option_key(name)] for name in OPTIONS}
        given["world_size"] = world_size or self._world_size()
        return self._completed(given)

    def _world_size(self) -> int | None:
        """Returns the world size of ``--world-size`` or of the hosts, which must agree."""
        asked = self.world_sizes[0] if self.world_sizes else None
        hosts = self.hosts.get("world_size")
        if hosts is None or asked == hosts.value:
            return asked if hosts is None else int(hosts.value)
        if asked is None:
            return int(hosts.value)
        raise InputError(
            "--world-size {asked} is not what the hostfile leaves, {slots} slots; "
            "leave one of them out",
            asked=asked,
            slots=hosts.value,
        )

    def _source(self, given: dict[str, Value | None]) -> LaunchConfig:
        """Returns the launch file without what the options put out of force."""
        config = self.config
        assert config is not None
        fields = dict(config.fields)
        if given["world_size"] is not None and given["dp"] is None:
            fields.pop("dp", None)
        if not self.is_translated:
            return replace(config, fields=fields)
        fields.pop("order", None)
        if config.world_size is not None:
            fields["world_size"] = config.world_size
        missing = tuple(each for each in config.missing if each.name in FIELDS)
        bare = replace(config, fields=fields, missing=missing, options={})
        return replace(bare, product={}, derive=None, version=None)

    def _completed(self, given: dict[str, Value | None]) -> dict[str, Value | None]:
        """Returns ``given`` with the world that ``--dp`` completes, where nothing else tells it."""
        config, dp = self.config, given["dp"]
        if dp is None or given["world_size"] is not None or config is None or config.world_size:
            return given
        known = [given[name] or _value(config, name) for name in ("tp", "pp", "cp")]
        return given | {"world_size": prod(int(each or 1) for each in (dp, *known))}


def _value(config: LaunchConfig, name: str) -> Value | None:
    return config.fields[name].value if name in config.fields else None


def option_key(name: str) -> str:
    """Returns the key under which a size's option is given.

    >>> option_key("tp"), option_key("zero1")
    ('tp', 'zero1_size')
    """
    return OPTIONS[name].lstrip("-").replace("-", "_")


UNASKED: Mapping[str, Any] = dict.fromkeys(
    [
        *("framework", "world_size", *map(option_key, OPTIONS), *PLACES),
        *("layers", "chunks", "nvlink_domain"),
    ]
)
"""Every option of a job, none of them given."""


def _sizes(given: Mapping[str, Value | None], settings: Mapping[str, str]) -> Sizes:
    """Returns sizes without a file: the world may follow from ``--dp`` and the others."""
    values: dict[str, Any] = dict(given)
    for name in ("tp", "pp", "cp", "ep"):
        values[name] = 1 if values[name] is None else values[name]
    if values["world_size"] is None and values["dp"] is not None:
        values["world_size"] = values["tp"] * values["pp"] * values["cp"] * values["dp"]
    if values["world_size"] is None:
        raise InputError("the number of ranks is missing; give it, such as --world-size 16")
    return Sizes(**values, options=settings)


def _layers_told(config: LaunchConfig) -> dict[str, str]:
    """Returns what a launch file says of how layers divide."""
    names = {name: f"layers_{name}" for name in LAYER_SETTINGS.values()}
    return {n: str(config.fields[f].value) for n, f in names.items() if f in config.fields}
