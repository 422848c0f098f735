"""Plans of measured steps whose models and GPUs are called otherwise: names must tell nothing.

    python -m benchmarks.accuracy.renamed [FOLDER]

A folder is copied, every model and GPU in it under another name; a GPU that has no row of figures
gets one from the catalogue. Both folders are planned, and the copy once more with every GPU type
taken as one that nobody measured.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.accuracy import published
from benchmarks.accuracy.table import HEAD, Errors, line
from serried.errors import InputError
from serried.plan.calibration.rows import GPUS, MODELS, read_csv, read_folder
from serried.plan.calibration.specs import gpu_named, gpus_of
from serried.plan.cluster.cluster import Gpu
from serried.plan.time.interval import intervals
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

Cells = dict[str, str]


def write_renamed(folder: Path, to: Path, memory: float = 1.0) -> None:
    """Writes a folder's tables of steps anew, its models and GPUs called model-N and chip-N.

    Cards have so many times their memory: no step follows from it, but no type has it then.
    """
    models, specs = (read_csv(folder / name)[1] for name in (MODELS, GPUS))
    called = {row["model"]: f"model-{number}" for number, row in enumerate(models)}
    write_table(to / MODELS, [row | {"model": called[row["model"]]} for row in models])
    known, chip = gpus_of(specs), dict[str, str]()
    figures = []
    for path in sorted(folder.glob("perf_*.csv")):
        source, rows = read_csv(path)
        if path.name == MODELS or not rows or "score" not in rows[0]:
            continue
        for row in rows:
            if row["gpu"] not in chip:
                chip[row["gpu"]] = f"chip-{len(chip)}"
                figures.append(_figures(row["gpu"], known) | {"gpu": chip[row["gpu"]]})
        told = [
            row | {"model": called.get(row["model"], "shape"), "gpu": chip[row["gpu"]]}
            for row in rows
        ]
        write_table(to / path.name, told, source)
    more = [row | {"hbm_GB": f"{memory * float(row.get('hbm_GB') or 0):g}"} for row in figures]
    write_table(to / GPUS, more)


def _figures(name: str, known: Mapping[str, tuple[Gpu, Mapping[str, str]]]) -> Cells:
    """Returns a GPU's row, made of the catalogue's figures where the tables have none."""
    try:
        gpu, cells = gpu_named(name, known)
    except InputError:
        return {}
    if cells:
        return dict(cells)
    # Both types without a row, L40S and H200 NVL, have four cards on one switch or bridge.
    return {
        "bf16_dense_tflops": f"{gpu.peak('bf16') / 1e12:g}",
        "fp8_dense_tflops": f"{gpu.peak_flops.get('fp8', 0.0) / 1e12:g}",
        "hbm_GB": f"{gpu.memory_bytes / 1e9:g}",
        "hbm_TBps": f"{gpu.memory_bytes_per_s / 1e12:g}",
        "scaleup_bidir_GBps": f"{2 * gpu.link_bytes_per_s / 1e9:g}",
        "scaleup_domain": "4",
        "nic_per_gpu_Gbps": "200" if name == "L40S" else "400",
    }


def write_table(path: Path, rows: Iterable[Cells], source: str = "renamed") -> None:
    """Writes a table with its line of sources."""
    told = list(rows)
    columns = {name: None for row in told for name in row}
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {source}\n")
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        writer.writerows(told)


def print_folder(name: str, folder: Path) -> None:
    """Prints the errors of a folder's steps, and how often their intervals hold."""
    rows = [row for row in read_folder(folder).rows if row.step_s]
    jobs = Jobs.of(row.request for row in rows)
    measured = np.array([row.step_s for row in rows], np.float64)
    found = step_times(jobs).step
    low, high = intervals(jobs, found)
    inside = (measured >= low) & (measured <= high)
    is_lora = np.array([row.task == "lora" for row in rows])
    for task, chosen in (("", ~is_lora), (", LoRA", is_lora)):
        if chosen.any():
            told = line(name + task, Errors.of(found[chosen], measured[chosen]))
            print(f"{told}{100 * inside[chosen].mean():8.0f}")


def main(folder: Path = published.DATA) -> None:
    """Prints a folder's errors under its own names and under others."""
    print(f"{HEAD}{'inside':>8}")
    print_folder("as the tables call them", folder)
    for name, memory in (("all called otherwise", 1.0), ("and no GPU type recognised", 1.2)):
        with TemporaryDirectory() as made:
            write_renamed(folder, Path(made), memory)
            print_folder(name, Path(made))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
