"""A collective as it is asked for in words, by the command line and the page alike.

    name=all-reduce ranks=8 algorithm=ring bytes=1GiB network=h100      ──> CollectiveQuestion
    name=all-reduce bytes=1GiB, and the group of a layout

What is left out takes a default that is stated: 8 ranks, 1 GiB, the network h100, and the quickest
algorithm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from serried.collective.networks import DEFAULT, NetworkPreset, OwnLinks, preset_of
from serried.collective.placed_group import PlacedGroup
from serried.errors import InputError, listed
from serried.mesh import Placement
from serried.mesh.sizes import PLACES
from serried.number import whole_number
from serried.pipeline.costs import read_numbers
from serried.plan.busbw import BusbwTable
from serried.plan.collective_price import CollectiveQuestion
from serried.views.job.byte_size import read_bytes

FIELDS = (
    *("name", "algorithm", "ranks", "bytes", "root", "channels", "chunks", "split", "mask"),
    *("gpus_per_node", "network", "latency", "bandwidth", "nics_per_node"),
)
MASKS = ("causal", "none")
"""What queries see in attention: keys before them, or all."""
DEFAULT_RANKS = 8
DEFAULT_BYTES = "1GiB"
MOST_RANKS = 131_072
"""Ranks of a group at most; a step of more would take long to make."""


@dataclass(frozen=True)
class CollectiveWords:
    """Holds the words of a question by their names; those left out are absent or empty."""

    words: Mapping[str, str]

    @property
    def preset(self) -> NetworkPreset:
        """The network that is named; raises InputError for one that there is not."""
        return preset_of(self.words.get("network") or DEFAULT)

    def question(
        self, group: PlacedGroup | None = None, measured: BusbwTable | None = None
    ) -> CollectiveQuestion:
        """Returns the question over ``group``, or over the ranks that the words say.

        Raises InputError for a word that cannot be.

        >>> asked = CollectiveWords({"ranks": "16", "bytes": "4MiB"}).question()
        >>> asked.name, asked.group.num_nodes, asked.size_bytes
        ('all-reduce', 2, 4194304)
        """
        given = self.words.get
        preset = self.preset
        return CollectiveQuestion(
            _known_name(given("name") or "all-reduce"),
            group or self._ranks(preset),
            read_bytes(given("bytes") or DEFAULT_BYTES, "bytes"),
            self._own_links().networks(preset),
            _known_name(given("algorithm") or "") or None,
            self._count("root"),
            measured,
            self._count("channels"),
            self._count("chunks"),
            given("split") or None,
            self._is_causal(),
        )

    def _ranks(self, preset: NetworkPreset) -> PlacedGroup:
        ranks = self._count("ranks")
        number = DEFAULT_RANKS if ranks is None else ranks
        if not 1 <= number <= MOST_RANKS:
            raise InputError(
                "ranks={ranks} cannot be; a group has 1 to {most}", ranks=number, most=MOST_RANKS
            )
        told = self.words.get("gpus_per_node")
        gpus = PLACES["gpus_per_node"].read(told) if told else preset.gpus_per_node
        assert isinstance(gpus, int | tuple)
        return PlacedGroup.of(range(number), Placement.on(number, gpus))

    def _is_causal(self) -> bool | None:
        mask = self.words.get("mask")
        if mask and mask not in MASKS:
            raise InputError(
                "mask={mask} is not known; it is {known}",
                mask=mask[:40],
                known=listed(MASKS, last="or"),
            )
        return mask == MASKS[0] if mask else None

    def _own_links(self) -> OwnLinks:
        return OwnLinks(
            self._numbers("latency", 1e-6), self._numbers("bandwidth", 1e9), self._nics()
        )

    def _nics(self) -> int | None:
        return self._count("nics_per_node")

    def _count(self, name: str) -> int | None:
        text = self.words.get(name)
        return whole_number(text, name) if text else None

    def _numbers(self, name: str, unit: float) -> tuple[float, ...] | None:
        text = self.words.get(name)
        if not text:
            return None
        return tuple(float(number) * unit for number in read_numbers(f"--{name}", text))


def _known_name(text: str) -> str:
    """Returns a name as the registry writes it: all_reduce and AllReduce are all-reduce.

    >>> [_known_name(text) for text in ("all_reduce", "All-Reduce", "allreduce", "sendrecv")]
    ['all-reduce', 'all-reduce', 'all-reduce', 'send-receive']
    """
    name = text.strip().lower().replace("_", "-").replace(" ", "-")
    return _ALIASES.get(name.replace("-", ""), name)


_ALIASES = {
    "allreduce": "all-reduce",
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "alltoall": "all-to-all",
    "sendrecv": "send-receive",
    "sendreceive": "send-receive",
}
