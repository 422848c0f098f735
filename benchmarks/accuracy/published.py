"""The papers' tables of step times as jobs, beside ``data/``: Korthikanti, SC21, vTrain and others.

Each function returns jobs and their measured steps in seconds. What a paper does not print is
taken as its text says, or as the best that its system could have chosen, and said here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.accuracy.simumax_models import SIMUMAX_MODELS
from serried.plan.calibration.rows import MODELS, read_csv
from serried.plan.calibration.specs import model_of
from serried.plan.cluster.cluster import Cluster, Gpu
from serried.plan.degrees import Degrees
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape
from serried.plan.request import PlanRequest, Recompute
from serried.plan.time.constants import Constants
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

DATA = Path(__file__).parents[1] / "data"
A100 = Gpu("A100-SXM-80GB", "nvidia", {"bf16": 312e12}, 80e9, 2.039e12, 300e9)
H100 = Gpu("H100-SXM-80GB", "nvidia", {"bf16": 989e12, "fp8": 1979e12}, 80e9, 3.35e12, 450e9)
B200 = Gpu("B200", "nvidia", {"bf16": 2250e12, "fp8": 4500e12}, 180e9, 8e12, 900e9)
SELENE = Cluster("selene", A100, 8, 8, 25e9)
VTRAIN = "vtrain_ground_truth_*.csv"
BARE = {"tp_comm_overlap": "False"}
"""Megatron of 2021 and 2022: no communication beside GEMMs."""


@dataclass(frozen=True)
class Published:
    """Holds one printed step: the job, or jobs of which the best was run, and its seconds."""

    name: str
    table: str
    choices: tuple[PlanRequest, ...]
    step_s: float


def predicted(rows: list[Published], constants: Constants | None = None) -> np.ndarray:
    """Returns the seconds predicted for each, those of its fastest choice."""
    times = iter(step_times(Jobs.of(job for row in rows for job in row.choices), constants).step)
    return np.array([min(next(times) for _ in row.choices) for row in rows])


def table(folder: Path, name: str) -> Iterator[dict[str, str]]:
    """Yields the rows of a folder's tables that a pattern names, without their lines of sources."""
    for path in sorted(folder.glob(name)):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield from csv.DictReader(line for line in lines if not line.startswith("#"))


def gpt(layers: int, hidden: int, heads: int, vocab: int = 51200) -> ModelShape:
    """Returns a GPT as Megatron's papers train it: GELU, biases, tied embedding."""
    return ModelShape(
        f"gpt-{layers}x{hidden}",
        layers,
        hidden,
        heads,
        heads,
        hidden // heads,
        4 * hidden,
        vocab,
        is_gated=False,
        is_tied=True,
        norm="layer",
        has_bias=True,
    )


def korthikanti(folder: Path = DATA) -> list[Published]:
    """Returns Table 5: each model with full recomputation, and with sp and selective instead."""
    times = {row["model"]: row for row in table(folder, "korthikanti_table5_end_to_end.csv")}
    rows = []
    for row in table(folder, "korthikanti_table3_configs.csv"):
        layers, hidden, heads = (int(row[name]) for name in ("layers", "hidden", "heads"))
        degrees = Degrees(int(row["tp"]), int(row["pp"]), chunks=int(row["interleave_m"]))
        job = PlanRequest(
            gpt(layers, hidden, heads),
            SELENE,
            degrees,
            sequence=2048,
            micro_batch=int(row["micro_batch"]),
            global_batch=int(row["global_batch"]),
            zero=0,
            recompute=Recompute("full"),
            has_sequence_parallel=False,
            has_flash_attention=False,
            options=BARE,
        )
        kept = replace(job, recompute=Recompute("selective"), has_sequence_parallel=True)
        told = times[row["model"]]
        for each, name in ((job, "iter_s_full_recompute"), (kept, "iter_s_sp_plus_selective")):
            rows.append(
                Published(f"{row['model']} {name}", "korthikanti", (each,), float(told[name]))
            )
    return rows


def sc21(folder: Path = DATA) -> list[Published]:
    """Returns Table 1; microbatch and chunks are not printed, so that the best ones count."""
    rows = []
    for row in table(folder, "sc21_table1_weak_scaling.csv"):
        layers, hidden, heads = (int(row[name]) for name in ("layers", "hidden", "heads"))
        tp, pp, gpus = int(row["tp"]), int(row["pp"]), int(row["gpus"])
        batch, dp = int(row["global_batch"]), int(row["gpus"]) // int(row["tp"]) // int(row["pp"])
        step = sc21_flops(layers, hidden, batch) / gpus / float(row["tflops_per_gpu"]) / 1e12
        choices = tuple(
            PlanRequest(
                gpt(layers, hidden, heads),
                SELENE,
                Degrees(tp, pp, dp=dp, chunks=chunks),
                sequence=2048,
                micro_batch=micro,
                global_batch=batch,
                zero=0,
                recompute=Recompute("full"),
                has_sequence_parallel=False,
                has_flash_attention=False,
                options=BARE,
            )
            for micro in (1, 2, 4, 8)
            for chunks in (1, 2, 3, 4)
            if batch % (dp * micro) == 0
            and (chunks == 1 or (pp > 1 and layers % (pp * chunks) == 0))
        )
        rows.append(Published(f"{row['params_B']}B", "sc21", choices, step))
    return rows


def sc21_flops(layers: int, hidden: int, batch: int, vocab: int = 51200) -> float:
    """Returns the FLOPs of a step as SC21 counts them, recomputation in it (section 5.1)."""
    tokens = batch * 2048
    per_layer = 1 + 2048 / (6 * hidden) + vocab / (16 * layers * hidden)
    return 96 * tokens * layers * hidden**2 * per_layer


def vtrain(folder: Path = DATA) -> list[Published]:
    """Returns the times of vTrain's repository: eager attention, fp16, no ZeRO."""
    rows = []
    for number, row in enumerate(table(folder, VTRAIN)):
        job = PlanRequest(
            gpt(int(row["layers"]), int(row["hidden_size"]), int(row["attention_heads"])),
            SELENE,
            Degrees(
                int(row["tensor_parallelism"]),
                int(row["pipeline_parallelism"]),
                dp=int(row["data_parallelism"]),
            ),
            framework="megatron-deepspeed",
            sequence=int(row["sequence_length"]),
            micro_batch=int(row["micro_batch"]),
            global_batch=int(row["global_batch"]),
            zero=0,
            states="fp16-adam",
            recompute=Recompute("full"),
            has_sequence_parallel=False,
            has_flash_attention=False,
            options=BARE,
        )
        rows.append(
            Published(f"vtrain {number}", "vtrain", (job,), float(row["iteration_time_ms"]) / 1e3)
        )
    return rows


LLAMA_70B = ModelShape("llama3-70b", 80, 8192, 64, 8, 128, 28672, 128256)
LLAMA_405B = ModelShape("llama3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256)
DEEPSEEK_V2 = ModelShape(
    "deepseekv2",
    60,
    5120,
    128,
    128,
    192,
    12288,
    102400,
    latent=LatentAttention(512, 128, 64, 128, q_rank=1536),
    experts=ExpertShape(160, 6, 1536, 3072, 0),
)
DEEPSEEK_V3 = replace(
    DEEPSEEK_V2,
    name="deepseek-v3",
    hidden=7168,
    ffn=18432,
    vocab=129280,
    experts=ExpertShape(256, 8, 2048, 2048, 0),
)
_SHAPES = {
    "llama3-70b": LLAMA_70B,
    "llama3-405b": LLAMA_405B,
    "deepseekv2": DEEPSEEK_V2,
    "deepseekv3": DEEPSEEK_V3,
}


def simumax(folder: Path = DATA) -> list[Published]:
    """Returns the bf16 runs on 8 B200 that SimuMax publishes: no overlap, sp, ZeRO-1.

    Models are those that SimuMax names so, or stand beside the table.
    """
    beside = folder / MODELS
    told = [row for row in read_csv(beside)[1] if row["layers"]] if beside.is_file() else []
    shapes = {row["model"]: model_of(row) for row in told} | dict(SIMUMAX_MODELS) | _SHAPES
    rows = []
    for row in table(folder, "simumax_b200_real_vs_model.csv"):
        sizes = dict.fromkeys(("tp", "ep", "pp"), 1)
        text = row["parallel"]
        for name in sizes:
            if name in text:
                digits = text.split(name)[1]
                sizes[name] = int("".join(_leading(digits)))
        cp = int(row["cp"] or 1)
        dp = max(1, 8 // (sizes["tp"] * sizes["pp"] * cp))
        if row["model"] not in shapes:
            continue
        job = PlanRequest(
            replace(shapes[row["model"]], layers=int(row["layers"])),
            Cluster("8xB200", B200, 8, 8, 50e9),
            Degrees(sizes["tp"], sizes["pp"], cp, dp, sizes["ep"]),
            sequence=int(row["seq"]),
            global_batch=int(row["mbc"]) * dp,
            options=BARE,
        )
        rows.append(Published(row["case"], "simumax", (job,), float(row["real_ms"]) / 1e3))
    return rows


def _leading(text: str) -> Iterator[str]:
    for each in text:
        if not each.isdigit():
            return
        yield each


def llama3(folder: Path = DATA) -> list[Published]:
    """Returns Table 4 of the Llama 3 paper, its TFLOP/s read as full s x s, as PaLM counts."""
    rows = []
    for row in table(folder, "llama3_table4.csv"):
        tp, cp, pp, dp = (int(row[name]) for name in ("tp", "cp", "pp", "dp"))
        batch = int(row["batch_per_dp"]) * dp
        sequence = int(row["seq_len"])
        tokens = batch * sequence
        flops = 6 * 403e9 * tokens + 12 * 126 * 16384 * sequence * tokens
        step = flops / int(row["gpus"]) / float(row["tflops_per_gpu"]) / 1e12
        job = PlanRequest(
            LLAMA_405B,
            Cluster("meta-h100", H100, 8, 8, 50e9),
            Degrees(tp, pp, cp, dp, chunks=8),
            framework="megatron",
            sequence=sequence,
            global_batch=batch,
            options=BARE,
        )
        rows.append(Published(f"{row['gpus']} x {sequence}", "llama3", (job,), step))
    return rows


def mtnlg(folder: Path = DATA) -> list[Published]:
    """Returns the three steps of the 530B model, batch 1,920, microbatches of one sequence.

    Its pipeline is DeepSpeed's, 1F1B with ZeRO 1, over Megatron's layers (arXiv 2201.11990, 2).
    """
    return [
        Published(
            f"{row['gpus']} GPUs",
            "mtnlg",
            (
                PlanRequest(
                    gpt(105, 20480, 128),
                    SELENE,
                    Degrees(8, 35, dp=int(row["dp"]), chunks=1),
                    framework="megatron-deepspeed",
                    sequence=2048,
                    global_batch=1920,
                    zero=1,
                    recompute=Recompute("full"),
                    has_sequence_parallel=False,
                    has_flash_attention=False,
                    options=BARE,
                ),
            ),
            float(row["iter_s"]),
        )
        for row in table(folder, "mtnlg_530B.csv")
    ]


ALL = (korthikanti, sc21, vtrain, simumax, llama3, mtnlg)


def in_folder(folder: Path) -> dict[str, list[Published]]:
    """Returns the steps of the papers' tables that a folder has, by paper."""
    papers = {
        "korthikanti": "korthikanti_table[35]*.csv",
        "sc21": "sc21_table1_weak_scaling.csv",
        "vtrain": VTRAIN,
        "simumax": "simumax_b200_real_vs_model.csv",
        "llama3": "llama3_table4.csv",
        "mtnlg": "mtnlg_530B.csv",
    }
    readers = {read.__name__: read for read in ALL}
    there = [name for name, pattern in papers.items() if any(folder.glob(pattern))]
    found = {name: readers[name](folder) for name in there}
    return {name: rows for name, rows in found.items() if rows}
