"""Prices of all-reduce beside what was measured, and beside the plain closed form of a ring.

    python benchmarks/collective_prices.py

measured    nccl-tests on one node of A100, 2 to 8 ranks, 1 MiB to 900 MiB (vTrain's table, MIT)
serried     the quicker of ring and tree, which NCCL has on A100, over --network a100
plain       2 (n - 1) (a + S / (n B)), with B as the data sheet says it, a = 3.4 us a step

Below stand the speeds that large buffers reached elsewhere, beside the same model.
"""

from __future__ import annotations

import csv
import statistics
from pathlib import Path
from typing import NamedTuple

from serried.collective.networks import preset_of
from serried.collective.placed_group import PlacedGroup
from serried.plan.collective_price import CollectiveQuestion, PricedCollective

TABLE = Path(__file__).parent / "measured" / "a100_all_reduce.csv"
STEP_S = 3.4e-6
LARGE = 4 << 30
POINTS = (
    ("a100", "all-reduce", None, 229, "vTrain's table, 1 GiB"),
    ("h100", "all-reduce", "ring", 370, "nccl-tests issue 212, NCCL_ALGO=RING"),
    ("h100", "all-reduce", "switch", 480, "nccl-tests issue 212, NVLink SHARP"),
    ("b200", "all-reduce", None, 0.742 * 900, "SimuMax's fit: 0.742 of 900"),
    ("b200", "all-gather", None, 0.673 * 900, "SimuMax's fit: 0.673 of 900"),
    ("b200", "all-to-all", None, 0.597 * 900, "SimuMax's fit: 0.597 of 900"),
)
"""Network, collective, algorithm, GB/s of busbw over 8 ranks of one node, and who measured it."""


class Row(NamedTuple):
    """What one size took, and what two models say, in microseconds."""

    ranks: int
    size_bytes: int
    measured: float
    priced: float
    plain: float

    def error(self, modelled: float) -> float:
        return modelled / self.measured - 1


def price(network: str, name: str, ranks: int, size: int, algorithm: str | None = None) -> (
    PricedCollective
):  # fmt: skip
    preset = preset_of(network)
    group = PlacedGroup.first(ranks, preset.gpus_per_node)
    return CollectiveQuestion(name, group, size, preset.networks(), algorithm).priced()


def rows() -> list[Row]:
    peak = preset_of("a100").in_node.peak_bytes_per_s
    lines = (line for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    found = []
    for line in csv.DictReader(lines):
        ranks, size = int(line["ranks"]), int(line["bytes"])
        plain = 2 * (ranks - 1) * (STEP_S + size / ranks / peak)
        ours = min(
            price("a100", "all-reduce", ranks, size, each).time_s for each in ("ring", "tree")
        )
        found.append(Row(ranks, size, float(line["time_us"]), ours * 1e6, plain * 1e6))
    return found


def main() -> None:
    """Prints the errors by size, then speeds of large buffers."""
    found = rows()
    print("all-reduce on A100, 2 to 8 ranks: mean error of the time, and its largest")
    print("      size  measured (8 ranks)   serried            plain")
    sizes = sorted({row.size_bytes for row in found})
    for low, high in ((1, 4), (4, 16), (16, 64), (64, 256), (256, 1024)):
        within = [row for row in found if low << 20 <= row.size_bytes < high << 20]
        eight = next(row for row in within if row.ranks == 8)
        print(
            f"{low:4} to {high:4} MiB  {eight.measured:8.0f} us  "
            f"{told([row.error(row.priced) for row in within])}  "
            f"{told([row.error(row.plain) for row in within])}"
        )
    assert len(sizes) > 5
    mine = statistics.mean(abs(row.error(row.priced)) for row in found)
    other = statistics.mean(abs(row.error(row.plain)) for row in found)
    print(f"all {len(found)} rows: mean |error| serried {mine:.0%}, plain {other:.0%}")
    print("\nbusbw of large buffers over 8 ranks of one node, GB/s")
    for network, name, algorithm, measured, source in POINTS:
        priced = price(network, name, 8, LARGE, algorithm)
        assert priced.busbw is not None
        speed = priced.busbw / 1e9
        print(
            f"  {network:5} {name:11} {priced.collective.algorithm:13} {speed:5.0f}  measured "
            f"{measured:4.0f}  {speed / measured - 1:+4.0%}  {source}"
        )


def told(errors: list[float]) -> str:
    """Returns the mean of errors and the one farthest from 0."""
    return f"{statistics.mean(errors):+5.0%} (to {max(errors, key=abs):+.0%})"


if __name__ == "__main__":
    main()
