"""The networks that are known by name: what their links could carry, what of it, and who says so.

Bandwidth is of one direction. NCCL moves bytes in one of three ways, of which the quickest counts:

    protocol   share of the link           launch   a step in the node   a step across
    LL         1/2 (a flag for each word)  6.6 us   0.6 us               2.7 us
    LL128      120/128 (a flag a line)     14 us    1.9 us               4.0 us
    Simple     all of it                   8.4 us   3.4 us               14 us

In the node LL is also bounded by the threads that it keeps busy (``ll_most``). Links and NICs are
those of the clusters in ``serried.catalog``.
Source: NCCL 2.x, src/graph/tuning.cc at 5067397c: baseLatencies and hwLatencies of rings, llMaxBws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from typing import Any

from serried.catalog import figures
from serried.collective.price import LinkCost, Network
from serried.errors import InputError, listed

DEFAULT = "h100"


@dataclass(frozen=True)
class Wire:
    """Holds one kind of link: what its maker says it carries, and the share that is reached."""

    name: str
    peak_bytes_per_s: float
    efficiency: float
    source: str
    """Who says what is reached."""

    @property
    def bytes_per_s(self) -> float:
        """What it carries in practice, one way."""
        return self.peak_bytes_per_s * self.efficiency


@dataclass(frozen=True)
class MoveProtocol:
    """Holds one way in which a library moves bytes: its share of a link, and its latencies."""

    name: str
    share: float
    launch_s: float
    in_node_s: float
    across_s: float


NCCL = (
    MoveProtocol("LL", 0.5, 6.6e-6, 0.6e-6, 2.7e-6),
    MoveProtocol("LL128", 120 / 128, 14.0e-6, 1.9e-6, 4.0e-6),
    MoveProtocol("Simple", 1.0, 8.4e-6, 3.4e-6, 14.0e-6),
)
SOCKETS = (MoveProtocol("TCP", 1.0, 20e-6, 5e-6, 30e-6),)
"""Sockets through the kernel; orders of size, which a measurement of your own should replace."""


@dataclass(frozen=True)
class NetworkPreset:
    """Holds a network by name: how many GPUs share fast links, the links, and the protocols."""

    name: str
    about: str
    gpus_per_node: int
    """Ranks that reach one another without a NIC, where nothing else is said."""
    in_node: Wire
    across: Wire
    nics_per_node: int | None = None
    """None: one for each rank."""
    protocols: tuple[MoveProtocol, ...] = NCCL
    ll_most: float = inf
    """Bytes per second that LL reaches at most in the node."""

    def networks(self) -> tuple[Network, ...]:
        """Returns the network as each protocol finds it.

        >>> [network.protocol for network in preset_of("h100").networks()]
        ['LL', 'LL128', 'Simple']
        """
        found = []
        for each in self.protocols:
            most = self.ll_most if each.name == "LL" else inf
            inside = min(most, self.in_node.bytes_per_s * each.share)
            links = (
                _link(self.in_node, each.in_node_s, inside),
                _link(self.across, each.across_s, self.across.bytes_per_s * each.share),
            )
            found.append(Network(*links, self.nics_per_node, each.launch_s, self.name, each.name))
        return tuple(found)


def _link(wire: Wire, latency_s: float, bytes_per_s: float) -> LinkCost:
    return LinkCost(latency_s, bytes_per_s, wire.name, wire.peak_bytes_per_s)


@cache
def presets() -> Mapping[str, NetworkPreset]:
    """Returns every network by name: those of GPUs by theirs, then the catalogue's other clusters.

    >>> list(presets())[:3]
    ['a100', 'h100', 'h200']
    """
    clusters = figures("clusters")
    first = sorted(clusters, key=lambda name: "network" not in clusters[name])
    made = [_preset(name, clusters[name]) for name in first]
    return {each.name: each for each in made}


def _preset(name: str, row: Mapping[str, Any]) -> NetworkPreset:
    """Returns the network of a cluster in the catalogue, whose GPU says what its links are."""
    link, nic = figures("gpus")[row["gpu"]]["link"], row["nic"]
    is_tcp = row.get("protocol") == "tcp"
    per_node = row["gpus_per_node"]
    domain = row.get("nvlink_domain", per_node)
    nics = nic.get("per_node", per_node)
    return NetworkPreset(
        row.get("network", name),
        row.get("about", row["source"]),
        domain,
        _wire(link),
        _wire(nic),
        None if nics == per_node else nics * domain // per_node,
        SOCKETS if is_tcp else NCCL,
        link.get("ll_gb_per_s", inf) * 1e9,
    )


def _wire(row: Mapping[str, Any]) -> Wire:
    reached = row["reached_gb_per_s"] / row["gb_per_s"]
    return Wire(row["name"], row["gb_per_s"] * 1e9, reached, row.get("source", _NIC_SHARE))


_NIC_SHARE = "Calculon, systems/*.json: 0.9 of InfiniBand"


def preset_of(name: str) -> NetworkPreset:
    """Returns a network by its name or another of its cluster's.

    >>> preset_of("h100").across.name, preset_of("selene").gpus_per_node
    ('400 Gb/s InfiniBand', 8)

    Raises InputError naming those there are.
    """
    key = name.strip().lower()
    if key in presets():
        return presets()[key]
    for cluster, row in figures("clusters").items():
        if key in (cluster, *row.get("aliases", ())):
            return presets()[row.get("network", cluster)]
    raise InputError(
        "there is no network '{name}'; those there are: {known}",
        name=name[:40],
        known=listed(presets(), limit=len(presets())),
    )


@dataclass(frozen=True)
class OwnLinks:
    """Holds what a user knows of links better than the table: values in the node, then across.

    One value stands for both; None leaves what the table says.
    """

    latency_s: tuple[float, ...] | None = None
    bytes_per_s: tuple[float, ...] | None = None
    nics_per_node: int | None = None

    def __post_init__(self) -> None:
        for option, values in (("latency", self.latency_s), ("bandwidth", self.bytes_per_s)):
            if values is not None and not 1 <= len(values) <= 2:
                raise InputError(
                    "--{option} takes one number, or two: in the node and across; it got {count}",
                    option=option,
                    count=len(values),
                )

    def networks(self, preset: NetworkPreset) -> tuple[Network, ...]:
        """Returns the network of ``preset`` as the user knows it.

        Where both latency and bandwidth are the user's own, nothing of the table is left: bytes
        move in one way, and a launch costs nothing.

        >>> OwnLinks((1e-6,), (100e9, 10e9)).networks(preset_of("h100"))[0].across.bytes_per_s
        10000000000.0
        """
        if self.latency_s is not None and self.bytes_per_s is not None:
            links = [
                LinkCost(latency, speed, name)
                for latency, speed, name in zip(
                    _both(self.latency_s),
                    _both(self.bytes_per_s),
                    (preset.in_node.name, preset.across.name),
                    strict=True,
                )
            ]
            nics = preset.nics_per_node if self.nics_per_node is None else self.nics_per_node
            return (Network(links[0], links[1], nics),)
        return tuple(
            self._changed(network, each.share)
            for network, each in zip(preset.networks(), preset.protocols, strict=True)
        )

    def _changed(self, network: Network, share: float) -> Network:
        links = [network.in_node, network.across]
        if self.latency_s is not None:
            told = _both(self.latency_s)
            links = [replace(link, latency_s=s) for link, s in zip(links, told, strict=True)]
        if self.bytes_per_s is not None:
            speeds = [speed * share for speed in _both(self.bytes_per_s)]
            links = [
                replace(link, bytes_per_s=s, peak_bytes_per_s=None)
                for link, s in zip(links, speeds, strict=True)
            ]
        nics = network.nics_per_node if self.nics_per_node is None else self.nics_per_node
        return replace(network, in_node=links[0], across=links[1], nics_per_node=nics)


def _both(values: tuple[float, ...]) -> tuple[float, float]:
    return values[0], values[-1]
