"""The networks that are known by name: what their links could carry, what of it, and who says so.

Bandwidth is of one direction. NCCL moves bytes in one of three ways, of which the quickest counts:

    protocol   share of the link           launch   a step in the node   a step across
    LL         1/2 (a flag for each word)  6.6 us   0.6 us               2.7 us
    LL128      120/128 (a flag a line)     14 us    1.9 us               4.0 us
    Simple     all of it                   8.4 us   3.4 us               14 us

In the node LL is also bounded by the threads that it keeps busy (``ll_most``).
Source: NCCL 2.x, src/graph/tuning.cc at 5067397c: baseLatencies and hwLatencies of rings, llMaxBws.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

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

        >>> [network.protocol for network in PRESETS["h100"].networks()]
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


_TOPO = "NCCL 2.x, src/graph/topo.h"
_IB = "Calculon, systems/*.json: 0.9 of InfiniBand"

PRESETS = {
    each.name: each
    for each in (
        NetworkPreset(
            "a100",
            "DGX A100: 8 GPUs on NVSwitch, one 200 Gb/s NIC a GPU",
            8,
            Wire("NVLink 3", 300e9, 235 / 300, "NCCL 2.x, src/graph/tuning.cc: 235 GB/s at most"),
            Wire("200 Gb/s InfiniBand", 25e9, 0.9, _IB),
            ll_most=87.7e9,
        ),
        NetworkPreset(
            "h100",
            "DGX H100: 8 GPUs on NVSwitch, one 400 Gb/s NIC a GPU",
            8,
            Wire("NVLink 4", 450e9, 18 * 20.6 / 450, f"{_TOPO}: 18 links of 20.6 GB/s"),
            Wire("400 Gb/s InfiniBand", 50e9, 0.9, _IB),
            ll_most=141e9,
        ),
        NetworkPreset(
            "h200",
            "DGX H200: the links of DGX H100",
            8,
            Wire("NVLink 4", 450e9, 18 * 20.6 / 450, f"{_TOPO}: 18 links of 20.6 GB/s"),
            Wire("400 Gb/s InfiniBand", 50e9, 0.9, _IB),
            ll_most=141e9,
        ),
        NetworkPreset(
            "b200",
            "DGX B200: 8 GPUs on NVSwitch, one 400 Gb/s NIC a GPU",
            8,
            Wire("NVLink 5", 900e9, 18 * 40.1 / 900, f"{_TOPO}: 18 links of 40.1 GB/s"),
            Wire("400 Gb/s InfiniBand", 50e9, 0.9, _IB),
            ll_most=2 * 141e9,
        ),
        NetworkPreset(
            "gb200",
            "GB200 NVL72: 72 GPUs on one NVLink switch, one 400 Gb/s NIC a GPU",
            72,
            Wire("NVLink 5", 900e9, 18 * 40.1 / 900, f"{_TOPO}: 18 links of 40.1 GB/s"),
            Wire("400 Gb/s InfiniBand", 50e9, 0.9, _IB),
            ll_most=2 * 141e9,
        ),
        NetworkPreset(
            "mi300x",
            "MI300X: 8 GPUs, a link from each to each, one 400 Gb/s NIC a GPU",
            8,
            # A port stands for all 7 links of a GPU, over which RCCL spreads its rings.
            Wire("7 x xGMI", 7 * 64e9, 0.75, "AMD, rocm.blogs.amd.com, mi300x-rccl-xgmi: 48 GB/s"),
            Wire("400 Gb/s InfiniBand", 50e9, 0.9, _IB),
        ),
        NetworkPreset(
            "ethernet",
            "Servers without NVLink: 8 GPUs on PCIe 4, one 100 Gb/s Ethernet NIC a node, TCP",
            8,
            Wire("PCIe 4 x16", 32e9, 0.75, f"{_TOPO}: 24 GB/s between GPUs of one host"),
            Wire("100 Gb/s Ethernet", 12.5e9, 0.9, "an assumption: measure it with serried check"),
            1,
            SOCKETS,
        ),
    )
}
"""Every network that is known by name."""


def preset_of(name: str) -> NetworkPreset:
    """Returns a network by name; raises InputError naming those there are."""
    key = name.strip().lower()
    if key not in PRESETS:
        raise InputError(
            "there is no network '{name}'; those there are: {known}",
            name=name[:40],
            known=listed(PRESETS, limit=len(PRESETS)),
        )
    return PRESETS[key]


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

        >>> OwnLinks((1e-6,), (100e9, 10e9)).networks(PRESETS["h100"])[0].across.bytes_per_s
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
