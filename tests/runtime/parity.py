"""The parity matrix: every parallelism, alone and together, against one process.

    python -m tests.runtime.parity            all rows, 20 steps, float64 and float32
    python -m tests.runtime.parity tp "tp x"  rows whose names begin so
    python -m tests.runtime.parity --cuda     over NCCL, all ranks on one GPU, up to four of them

Prints, row by row, the largest relative difference of any step's loss and gradient norm.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from serried.runtime.job.settings import ModelSizes, OptimizerSettings, TrainSettings
from tests.runtime.many_runs import Ran, run_many
from tests.runtime.reference import Told, train_alone

Device = Literal["cpu", "cuda"]
SHARING = 4
"""How many ranks may share a GPU: they take turns, which is slow."""
MODEL = ModelSizes(layers=4, hidden=32, heads=4, kv_heads=2, seq_len=32)
EIGHT_KV_HEADS = replace(MODEL, hidden=64, heads=8, kv_heads=8)
EXPERTS = replace(MODEL, experts=4)
SIX_HEADS = replace(MODEL, hidden=48, heads=6, kv_heads=3)
BALANCED = replace(EXPERTS, balance=0.1)
TIED = replace(MODEL, tie=True)
BASE = TrainSettings(
    world_size=1,
    model=MODEL,
    optimizer=OptimizerSettings(warmup=3, min_lr=1e-4),
    global_batch_size=16,
    microbatches=2,
    device="cpu",
    steps=20,
)


@dataclass(frozen=True)
class Row:
    """Names one way to split a run, and how many ranks that takes."""

    name: str
    ranks: int
    options: dict[str, Any]
    is_quick: bool = False
    """Whether ``make test`` runs it too."""

    def settings(self, dtype: str, steps: int, device: Device = "cpu") -> TrainSettings:
        """Returns the run."""
        return replace(
            BASE,
            device=device,
            world_size=self.ranks,
            steps=steps,
            dtype=dtype,  # type: ignore[arg-type]
            **self.options,
        )


def _row(name: str, ranks: int, *, quick: bool = False, **options: Any) -> Row:
    return Row(name, ranks, options, quick)


SP: dict[str, Any] = {"sequence_parallel": True}
LOSS: dict[str, Any] = {"loss_parallel": True}
MOE: dict[str, Any] = {"model": EXPERTS}
ROWS: Sequence[Row] = (
    _row("one process, the run's own loop", 1),
    _row("tp", 2, tp=2),
    _row("tp, sequence parallel", 2, tp=2, **SP),
    _row("tp, loss parallel", 2, tp=2, **LOSS),
    _row("tp, sequence and loss parallel", 4, tp=4, model=EIGHT_KV_HEADS, **SP, **LOSS),
    _row("tp, tied", 2, tp=2, model=TIED, **SP),
    _row("tp 3, padded", 3, quick=True, tp=3, model=SIX_HEADS),
    _row("tp 3, padded, tied, loss parallel", 3, tp=3, model=replace(SIX_HEADS, tie=True), **LOSS),
    _row("tp 5, padded", 5, tp=5, model=replace(SIX_HEADS, hidden=40, heads=5, kv_heads=5), **LOSS),
    _row("pp 1f1b", 4, pp=4),
    _row("pp interleaved-1f1b", 2, pp=2, schedule="interleaved-1f1b"),
    _row("pp zbv", 2, pp=2, schedule="zbv"),
    _row("pp 1f1b, tied", 4, pp=4, model=TIED),
    _row("pp zbv, tied", 2, pp=2, schedule="zbv", model=TIED),
    _row("dp replicate", 4),
    _row("dp buffer", 4, dp_style="buffer"),
    _row("dp zero 1", 4, zero=1),
    _row("dp zero 2", 4, zero=2),
    _row("dp zero 3", 4, zero=3),
    _row("dp HSDP 2 x 2, zero 2", 4, zero=2, zero_shard=2),
    _row("dp HSDP 2 x 2, zero 3", 4, zero=3, zero_shard=2),
    _row("cp ring", 4, cp=4),
    _row("cp ring-two-pass", 4, cp=4, cp_form="ring-two-pass"),
    _row("cp ulysses", 2, cp=2, cp_form="ulysses"),
    _row("cp all-gather", 4, cp=4, cp_form="all-gather"),
    _row("experts, dp", 2, **MOE),
    _row("ep", 4, ep=4, **MOE),
    _row("recompute full", 2, recompute="full"),
    _row("recompute selective, pp zbv", 2, pp=2, schedule="zbv", recompute="selective"),
    _row("ep x edp", 4, ep=2, **MOE),
    _row("ep x edp, zero 3", 4, ep=2, zero=3, **MOE),
    _row("ep x edp, buffer", 4, quick=True, ep=2, dp_style="buffer", **MOE),
    _row(
        "ep x edp over tp x dp, balanced",
        4,
        ep=2,
        tp=2,
        **SP,
        model=BALANCED,
    ),
    _row("ep x edp, balanced", 4, quick=True, ep=2, model=BALANCED),
    _row("ep x pp zbv", 4, ep=2, pp=2, schedule="zbv", **MOE),
    _row("tp x dp buffer", 4, tp=2, dp_style="buffer", **SP),
    _row("tp x zero 3", 4, tp=2, zero=3, **SP),
    _row("cp x dp zero 2", 4, quick=True, cp=2, zero=2),
    _row(
        "pp zbv x dp buffer, tied",
        4,
        pp=2,
        schedule="zbv",
        dp_style="buffer",
        model=TIED,
    ),
    _row("pp zbv x dp zero 3, tied", 4, quick=True, pp=2, schedule="zbv", zero=3, model=TIED),
    _row("tp x pp, tied", 4, tp=2, pp=2, model=TIED),
    _row("tp x pp zbv, tied", 4, tp=2, pp=2, schedule="zbv", model=TIED),
    _row("tp x pp x dp", 8, tp=2, pp=2, **SP, **LOSS),
    _row(
        "tp x pp zbv x dp zero 2, tied, recompute full",
        8,
        tp=2,
        pp=2,
        schedule="zbv",
        zero=2,
        recompute="full",
        model=TIED,
        **SP,
    ),
    _row("tp x pp x dp buffer, tied", 8, tp=2, pp=2, dp_style="buffer", model=TIED, **SP, **LOSS),
    _row("tp x cp x ep x dp, zero 3", 8, tp=2, cp=2, ep=4, zero=3, **SP, **MOE),
    _row("pp x dp x cp x tp", 16, pp=2, cp=2, tp=2, **SP, **LOSS),
    _row("pp x dp x cp x tp, zero 3, tied", 16, pp=2, cp=2, tp=2, zero=3, model=TIED, **SP),
)


@dataclass(frozen=True)
class Difference:
    """Holds how far a run is from one process, at its worst step."""

    loss: float
    norm: float

    def within(self, other: Difference) -> bool:
        """Tells whether neither is larger than ``other``'s."""
        return self.loss <= other.loss and self.norm <= other.norm


LIMITS = {"float64": Difference(1e-9, 1e-9), "float32": Difference(1e-5, 1e-4)}
"""What counts as equal; a norm adds up the rounding of every weight, which shows in float32."""


@cache
def alone(model: ModelSizes, dtype: str, steps: int) -> list[Told]:
    """Returns what one process loses."""
    return train_alone(
        replace(BASE, model=model, dtype=dtype, steps=steps)  # type: ignore[arg-type]
    )


def difference(row: Row, ran: Ran, dtype: str, steps: int) -> Difference:
    """Returns how far ``ran`` is from one process."""
    return difference_of(ran, alone(row.options.get("model", MODEL), dtype, steps))


def difference_of(ran: Ran, told: Sequence[Told]) -> Difference:
    """Returns how far ``ran`` is from ``told``; a run that stopped early is infinitely far."""
    if len(ran.steps) != len(told):
        return Difference(math.inf, math.inf)
    losses = (
        (step.loss or math.nan, want.loss) for step, want in zip(ran.steps, told, strict=True)
    )
    norms = (
        (step.learned.norm if step.learned else math.nan, want.norm)
        for step, want in zip(ran.steps, told, strict=True)
    )
    return Difference(_largest(losses), _largest(norms))


def _largest(pairs: Iterable[tuple[float, float]]) -> float:
    """Returns the largest relative difference; one that is no number counts as infinite."""
    found = [abs(a - b) / abs(b) for a, b in pairs]
    return max(math.inf if math.isnan(each) else each for each in found)


def measure(
    rows: Sequence[Row], dtype: str, steps: int, device: Device = "cpu"
) -> list[Difference]:
    """Runs ``rows`` on one launch and compares each with one process, which has no GPU."""
    ran = run_many([row.settings(dtype, steps, device) for row in rows])
    return [difference(row, it, dtype, steps) for row, it in zip(rows, ran, strict=True)]


def table(rows: Sequence[Row], found: dict[str, list[Difference]]) -> Iterator[str]:
    """Yields the matrix as lines of Markdown."""
    yield f"| parallelism | ranks | {' | '.join(f'{d}: loss | norm' for d in found)} |"
    yield f"|---|---|{'---|---|' * len(found)}"
    for number, row in enumerate(rows):
        cells = (f"{each[number].loss:.0e} | {each[number].norm:.0e}" for each in found.values())
        yield f"| {row.name} | {row.ranks} | {' | '.join(cells)} |"


def main(names: Sequence[str]) -> int:
    """Prints the matrix; returns 1 when a row is not equal to one process."""
    device: Device = "cuda" if "--cuda" in names else "cpu"
    names = [name for name in names if name != "--cuda"]
    rows = [row for row in ROWS if not names or row.name.startswith(tuple(names))]
    rows = [row for row in rows if device == "cpu" or row.ranks <= SHARING]
    found = {dtype: measure(rows, dtype, BASE.steps, device) for dtype in LIMITS}
    for line in table(rows, found):
        print(line)  # noqa: T201  it is what the command is for
    return int(not all(each.within(LIMITS[dtype]) for dtype in found for each in found[dtype]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
