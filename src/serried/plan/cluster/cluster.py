"""A cluster: one type of GPU, how many share a node and fast links, and what joins the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from serried.errors import InputError, listed


@dataclass(frozen=True)
class Gpu:
    """Holds what one GPU could do at most, as its maker says: dense figures, never sparse ones.

    >>> h100 = Gpu("h100", "nvidia", {"bf16": 989e12}, 80e9, 3.35e12, 450e9)
    >>> h100.peak("bf16")
    989000000000000.0
    """

    name: str
    maker: str
    peak_flops: Mapping[str, float]
    """FLOP/s by number format: bf16, fp8, fp4, fp32."""
    memory_bytes: float
    """What the card holds, as sold."""
    memory_bytes_per_s: float
    link_bytes_per_s: float
    """All its fast links (NVLink, xGMI) together, one way."""
    source: str = ""
    link_reached: float = 1.0
    """Share of these links that a library's rings reach."""
    host_bytes_per_s: float = 24e9
    """What is reached of its link to the host, one way; where nobody says, of PCIe 4 x16."""
    host_memory_bytes_per_s: float = 51e9
    """What it has of the bandwidth of the host's memory; where nobody says, as in a DGX A100."""
    host_source: str = ""

    def __post_init__(self) -> None:
        for what in (
            *("memory_bytes", "memory_bytes_per_s", "link_bytes_per_s"),
            *("host_bytes_per_s", "host_memory_bytes_per_s"),
        ):
            if not getattr(self, what) > 0:
                raise InputError(
                    "GPU {gpu} has {what}={value}; it is above 0",
                    gpu=self.name,
                    what=what,
                    value=getattr(self, what),
                )

    def peak(self, number_format: str) -> float:
        """Returns its FLOP/s in a format; raises InputError naming the formats that it has."""
        if number_format not in self.peak_flops:
            raise InputError(
                "GPU {gpu} has no {format} figure; it has {known}",
                gpu=self.name,
                format=number_format,
                known=listed(self.peak_flops),
            )
        return self.peak_flops[number_format]


@dataclass(frozen=True)
class Cluster:
    """Holds a cluster of one type of GPU; bandwidths are of one direction.

    >>> h100 = Gpu("h100", "nvidia", {"bf16": 989e12}, 80e9, 3.35e12, 450e9)
    >>> Cluster("dgx-h100", h100, 8, 8, 50e9).gpus_per_node
    8
    """

    name: str
    gpu: Gpu
    gpus_per_node: int
    nvlink_domain: int
    """GPUs that reach one another over fast links: those of a node, or of a rack (NVL72)."""
    nic_bytes_per_s: float
    """What one GPU's share of its node's NICs carries."""
    num_gpus: int | None = None
    """GPUs that there are; None where nobody says."""
    network: str = ""
    """The preset of ``collective.networks`` whose protocols and latencies it has."""
    source: str = ""
    nic_reached: float = 1.0
    """Share of its NICs that a library reaches."""
    switch_share: float = 0.0
    """Share of the fast links that sums in the NVLink switch reach (NVLink SHARP); 0 without."""

    def __post_init__(self) -> None:
        if self.gpus_per_node < 1 or self.nvlink_domain < 1:
            raise InputError(
                "cluster {cluster} has {gpus} GPUs a node and an NVLink domain of {domain}; both "
                "are at least 1",
                cluster=self.name,
                gpus=self.gpus_per_node,
                domain=self.nvlink_domain,
            )
        if not self.nic_bytes_per_s > 0:
            raise InputError(
                "cluster {cluster} has a network of {speed} B/s; it is above 0",
                cluster=self.name,
                speed=self.nic_bytes_per_s,
            )
