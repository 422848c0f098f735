"""Steps and memory of trainings on one GPU, planned before they ran, beside what was measured.

    python benchmarks/planned_on_gpu.py                          the table, from the measured rows
    python -m benchmarks.planned_on_gpu --run rows.csv           on a GPU: plan, run, write rows

Rows are the reference training and two public models of transformers, built from a ``config.json``
in ``measured/models``: Llama 3.2 1B, and Qwen3 30B-A3B cut to 2 layers. What each takes is planned
and written down; the rows marked ``fitted`` run; constants are calibrated by them, as ``serried
plan --calibrate`` does, for each family of models; the steps of the rows marked ``apart`` are
planned with these and written down before they run. Rows of several ranks share the GPU, so that
only their memory says anything.

The table shows what was planned then, and what is planned now from the same fitted rows.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from serried.plan.calibration.calibrate import calibrate
from serried.plan.catalog import cluster_named
from serried.plan.degrees import Degrees
from serried.plan.memory.job_memory import job_memory
from serried.plan.model.hugging_face import shape_of_file
from serried.plan.model.shape import ExpertShape, ModelShape
from serried.plan.recorded_job import COMPUTE
from serried.plan.reference.memory import rank_memories
from serried.plan.request import PlanRequest, Recompute
from serried.plan.time.constants import Constants
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times
from serried.runtime.job.config_model import read_model
from serried.runtime.job.planned import training_of, unplanned
from serried.runtime.job.settings import ModelSizes, TrainSettings

HERE = Path(__file__).parent / "measured"
ROWS = HERE / "steps_on_gpu.csv"
REFERENCE = "reference"
STEPS, WARM_UP = 8, 3
UNPLANNED = "float32"
"""Steps in this are not planned any more: the plans before these runs took it for 16 bits."""


@dataclass(frozen=True)
class Row:
    """Holds one training, what was planned of it, and what it took."""

    family: str
    role: str
    """fitted, apart, or memory, of which only the memory is compared."""
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    seq: int
    batch: int
    microbatches: int
    dtype: str = "bfloat16"
    recompute: str = "none"
    experts: int = 0
    tie: int = 0
    tp: int = 1
    pp: int = 1
    dp: int = 1
    zero: int = 0
    gpu: str = ""
    planned_by_shipped_ms: float = 0.0
    planned_ms: float = 0.0
    """By constants of the fitted rows, before it ran; 0 for the fitted rows themselves."""
    planned_gib: float = 0.0
    step_ms: float = 0.0
    """The median after warm-up."""
    gib: float = 0.0

    @property
    def name(self) -> str:
        """What is told of it in a line."""
        split = "".join(f" {k} {v}" for k in ("tp", "pp", "dp") if (v := getattr(self, k)) > 1)
        more = f" ZeRO {self.zero}" if self.zero else ""
        more += f" {self.experts} experts" if self.experts else ""
        more += f" recompute {self.recompute}" if self.recompute != "none" else ""
        size = f"{self.layers} x {self.hidden}" if self.family == REFERENCE else self.family
        kv = f"/{self.kv_heads}" if self.kv_heads != self.heads and self.family == REFERENCE else ""
        batch = f"{self.batch} in {self.microbatches}"
        return f"{size}{kv}, {batch} x {self.seq:,} {self.dtype}{split}{more}"

    def settings(self) -> TrainSettings:
        """Returns the training."""
        return TrainSettings(
            self.tp * self.pp * self.dp,
            device="cuda",
            tp=self.tp,
            pp=self.pp,
            zero=self.zero,
            model=self._sizes(),
            global_batch_size=self.batch,
            microbatches=self.microbatches,
            dtype=self.dtype,  # type: ignore[arg-type]
            recompute=self.recompute,  # type: ignore[arg-type]
            steps=STEPS if self.role != "memory" else 2,
        )

    def _sizes(self) -> ModelSizes:
        if self.family != REFERENCE:
            return replace(read_model(HERE / "models" / self.family), seq_len=self.seq)
        return ModelSizes(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            kv_heads=self.kv_heads,
            seq_len=self.seq,
            experts=self.experts,
            tie=bool(self.tie),
        )

    def request(self) -> PlanRequest:
        """Returns the same as a plan is asked for it, a recorded run as ``recorded_job`` does."""
        cluster = replace(cluster_named(self.gpu), gpus_per_node=1)
        is_own = self.family == REFERENCE
        micro = self.batch // self.microbatches // self.dp
        return PlanRequest(
            self._shape(),
            cluster,
            Degrees(tp=self.tp, pp=self.pp, dp=self.dp),
            framework="megatron" if is_own else "fsdp",
            sequence=self.seq,
            micro_batch=micro,
            global_batch=self.batch,
            zero=self.zero if is_own else 3,
            is_kept_after_forward=not is_own,
            states="fp32-grads" if is_own else "fsdp2-mixed",
            compute=COMPUTE[self.dtype],
            recompute=Recompute(self.recompute),  # type: ignore[arg-type]
        )

    def _shape(self) -> ModelShape:
        if self.family != REFERENCE:
            return shape_of_file(HERE / "models" / self.family / "config.json")
        settings = self.settings()
        told = settings.model.told(settings.vocabulary)
        experts = None
        if self.experts:
            experts = ExpertShape(count=self.experts, top_k=told["top_k"], ffn=told["ffn"])
        return ModelShape(
            REFERENCE,
            layers=self.layers,
            is_gated=True,
            is_tied=bool(self.tie),
            experts=experts,
            hidden=told["hidden"],
            heads=told["heads"],
            kv_heads=told["kv_heads"],
            head_dim=told["head_dim"],
            ffn=told["ffn"],
            vocab=told["vocab"],
        )

    def memory_gib(self) -> float:
        """Returns what the fullest rank is planned to hold; 0 where that is not planned."""
        if self.family != REFERENCE:
            return job_memory(self.request()).fullest.allocated / 2**30
        if unplanned(self.settings()) is not None:
            return 0.0
        return max(m.peak for m in rank_memories(training_of(self.settings(), "cuda:0"))) / 2**30


def _reference(*sizes: int, role: str, **more: Any) -> Row:
    layers, hidden, heads, kv_heads, seq, batch, microbatches = sizes
    return Row(REFERENCE, role, layers, hidden, heads, kv_heads, seq, batch, microbatches, **more)


def _public(family: str, *batch: int, role: str, recompute: str = "none") -> Row:
    seq, sequences, microbatches = batch
    return Row(family, role, 0, 0, 0, 0, seq, sequences, microbatches, recompute=recompute)


FITTED, APART, MEMORY = "fitted", "apart", "memory"
LLAMA, QWEN = "llama-3.2-1b", "qwen3-30b-a3b-2-layers"
FULL: Mapping[str, Any] = {"recompute": "full"}
ASKED = (
    _reference(12, 1024, 16, 16, 1024, 32, 4, role=FITTED),
    _reference(24, 2048, 16, 4, 2048, 8, 4, role=FITTED),
    _reference(12, 768, 12, 12, 512, 64, 4, role=FITTED),
    _reference(12, 1024, 16, 16, 1024, 32, 4, role=FITTED, **FULL),
    _reference(12, 1024, 16, 16, 1024, 8, 4, role=FITTED, dtype="float32"),
    _reference(16, 1536, 12, 12, 4096, 4, 2, role=FITTED),
    _reference(8, 1024, 16, 4, 1024, 32, 8, role=FITTED, dtype="float16"),
    _reference(4, 512, 8, 8, 256, 32, 4, role=FITTED),
    _reference(6, 1024, 16, 16, 1024, 16, 4, role=FITTED, experts=8),
    _reference(12, 1024, 16, 16, 1024, 64, 4, role=APART),
    _reference(16, 2048, 16, 4, 2048, 16, 4, role=APART),
    _reference(8, 512, 8, 8, 1024, 64, 4, role=APART),
    _reference(12, 2048, 16, 16, 1024, 16, 2, role=APART, **FULL),
    _reference(8, 1536, 12, 12, 1024, 8, 2, role=APART, dtype="float32"),
    _reference(16, 1024, 16, 16, 4096, 8, 4, role=APART),
    _reference(16, 768, 12, 4, 1024, 32, 4, role=APART, dtype="float16", tie=1),
    _reference(6, 640, 10, 10, 512, 16, 8, role=APART),
    _reference(8, 768, 12, 12, 512, 32, 4, role=APART, experts=4),
    _public(LLAMA, 2048, 8, 4, role=FITTED),
    _public(LLAMA, 1024, 16, 2, role=FITTED, **FULL),
    _public(LLAMA, 4096, 4, 4, role=APART),
    _public(LLAMA, 2048, 16, 4, role=APART, **FULL),
    _public(LLAMA, 512, 16, 4, role=APART),
    _public(QWEN, 2048, 8, 4, role=FITTED),
    _public(QWEN, 1024, 8, 4, role=FITTED, **FULL),
    _public(QWEN, 4096, 4, 4, role=APART),
    _public(QWEN, 2048, 4, 4, role=APART),
    _public(QWEN, 2048, 16, 4, role=APART, **FULL),
    _reference(8, 1024, 16, 16, 1024, 16, 4, role=MEMORY, pp=2),
    _reference(8, 1024, 16, 16, 1024, 16, 4, role=MEMORY, dp=2, zero=3),
    _reference(8, 1024, 16, 16, 1024, 16, 4, role=MEMORY, dp=2, zero=1),
    _reference(8, 1024, 16, 16, 1024, 8, 4, role=MEMORY, tp=2),
    _reference(8, 1024, 16, 16, 1024, 8, 4, role=MEMORY, tp=2, pp=2),
)
"""What is run; widths of experts follow from the hidden size, as the reference training has it."""


def planned_ms(rows: Sequence[Row], constants: Constants | None = None) -> list[float]:
    """Returns the planned milliseconds of each row's step."""
    times = step_times(Jobs.of([row.request() for row in rows]), constants)
    return [float(each) * 1e3 for each in np.broadcast_to(times.step, len(rows))]


def calibrated(rows: Sequence[Row]) -> Constants:
    """Returns constants of measured rows."""
    requests = [row.request() for row in rows]
    steps = [row.step_ms / 1e3 for row in rows]
    return calibrate([row.name for row in rows], requests, steps).constants


def replanned(rows: Sequence[Row]) -> dict[Row, float]:
    """Returns what the steps of rows held apart are planned to take, from the fitted ones."""
    found: dict[Row, float] = {}
    for family in dict.fromkeys(row.family for row in rows):
        mine = [row for row in rows if row.family == family and row.dtype != UNPLANNED]
        apart = [row for row in mine if row.role == APART]
        constants = calibrated([row for row in mine if row.role == FITTED])
        found |= dict(zip(apart, planned_ms(apart, constants), strict=True))
    return found


def written(rows: Sequence[Row], file: Path) -> None:
    """Writes rows as CSV."""
    names = [each.name for each in fields(Row)]
    with file.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(names)
        for row in rows:
            values = [getattr(row, name) for name in names]
            table.writerow([f"{v:.5g}" if isinstance(v, float) else v for v in values])


def read(file: Path) -> list[Row]:
    """Returns the rows of a file."""
    kinds: Mapping[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float}
    with file.open(newline="", encoding="utf-8") as lines:
        return [
            Row(**{each.name: kinds[str(each.type)](line[each.name]) for each in fields(Row)})
            for line in csv.DictReader(lines)
        ]


def main() -> None:
    """Prints the table, or makes its rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="run all on the GPU here, and write rows")
    parser.add_argument("--shared", action="store_true", help="with --run: rows of several ranks")
    parser.add_argument("--family", action="append", help="with --run: these families alone")
    parser.add_argument("--rows", type=Path, default=ROWS)
    asked = parser.parse_args()
    if asked.run:
        from benchmarks.measured.on_gpu import measured

        measured(asked.run, asked.family or (), is_shared=asked.shared)
        return
    tell(read(asked.rows))


def tell(rows: Sequence[Row]) -> None:
    """Prints the measured rows beside what was planned of them."""
    now = replanned(rows)
    heads = ("step", 8), ("planned", 8), ("off", 7), ("now", 7), ("memory", 9), ("off", 7)
    print(f"{'training':64} " + " ".join(f"{name:>{size}}" for name, size in heads))
    for row in rows:
        step = f"{row.step_ms:5.0f} ms" if row.role != MEMORY else ""
        told = f"{row.role:>8} {'':15}"
        if row.role == APART:
            then = _off(row.planned_ms, row.step_ms)
            told = f"{row.planned_ms:5.0f} ms {then} {_off(now.get(row), row.step_ms)}"
        gib = f"{row.gib:5.2f} GiB {_off(row.planned_gib, row.gib)}"
        print(f"{row.name:64} {step:>8} {told} {gib}".rstrip())
    for family in dict.fromkeys(row.family for row in rows):
        mine = [row for row in rows if row.family == family]
        apart = [row for row in mine if row.role == APART]
        steps = "steps held apart"
        for what, off in (
            (f"{steps}, planned before they ran", [r.planned_ms / r.step_ms for r in apart]),
            ("the same, planned now", [ms / r.step_ms for r, ms in now.items() if r in mine]),
            ("by constants that ship", [r.planned_by_shipped_ms / r.step_ms for r in apart]),
            ("memory, planned before", [r.planned_gib / r.gib for r in mine if r.planned_gib]),
        ):
            parts = [abs(each - 1) for each in off]
            mean, most = statistics.fmean(parts), max(parts)
            print(f"{family}: {what}: {len(off)} rows, {mean:.1%} on average, {most:.1%} at most")


def _off(planned: float | None, measured: float) -> str:
    return f"{planned / measured - 1:+7.1%}" if planned else f"{'':7}"


if __name__ == "__main__":
    main()
