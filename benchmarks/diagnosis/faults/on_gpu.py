"""The faults on NCCL: ranks that share a GPU, and what torch leaves of them alone, or a guard.

    python -m benchmarks.diagnosis.faults.on_gpu runs                   torch's dumps, logs, stacks
    python -m benchmarks.diagnosis.faults.on_gpu runs --guard           serried.guard()'s alone
    python -m benchmarks.diagnosis.faults.on_gpu runs --only "wrong size" --device cpu

Each is a job of four ranks under torchrun, with a fault at a rank and step that its seed draws.
``runs`` then has a folder for each: console.log, fr/, stacks/ and proc_state.json, or guard/; and
cases.json, as ``benchmarks.diagnosis.runs`` reads it. Ranks say that each is a host of its own
(NCCL_HOSTID), for NCCL refuses two of one host on a GPU; they talk over sockets.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from benchmarks.diagnosis.faults.fault import NONE, ON_GPU, STOPPING, Fault, drawn

RANKS, STEPS, LIMIT_S = 4, 4, 12
"""Ranks and steps of a job, and the seconds that a collective may take."""
STILL_S, LONGEST_S = 5.0, 100.0
"""After how long without a line the stacks are taken, and after how long all are ended."""
KINDS = (*(kind for kind in STOPPING if kind != "full disk"), *ON_GPU, NONE)
_BLOCKING_SYNC = 4
"""cudaDeviceScheduleBlockingSync."""
CLASSES = {
    "exception": "exception",
    "GPU out of memory": "gpu_oom",
    "device assert": "exception",
    "kill -9": None,
    NONE: "no_fault",
}
"""The class of a fault; those that are not here hang, and a rank killed has none of its own."""


def fault_of(kind: str, first: int = 0) -> Fault:
    """Returns the first fault of a kind, from a seed on, that is of so few ranks.

    A sum that differs is of many numbers, over replicas.
    """
    drawn_in_turn = (drawn(kind, seed) for seed in range(first, first + 1000))
    least = 2 if kind in ("wrong size", "wrong dtype") else 1
    fault = next(f for f in drawn_in_turn if f.world_size == RANKS and f.dp >= least)
    return replace(fault, steps=STEPS, step=2, microbatches=2, microbatch=fault.seed % 2)


def main() -> None:
    """Runs the faults asked for, or is one rank of a job."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis.faults.on_gpu")
    parser.add_argument("runs", type=Path)
    parser.add_argument("--guard", action="store_true", help="guard the ranks; nothing else")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--only", action="append", choices=KINDS)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--at-once", type=int, default=5, help="jobs side by side")
    parser.add_argument("--for-s", type=float, default=float("inf"), help="begin none after this")
    parser.add_argument("--rank-of", choices=KINDS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank_of:
        be_rank(fault_of(asked.rank_of, asked.first), asked)
        return
    faults = [fault_of(kind, asked.first) for kind in asked.only or KINDS]
    asked.runs.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + asked.for_s
    with ThreadPoolExecutor(asked.at_once) as pool:
        ran = list(pool.map(lambda fault: run_job(fault, asked, until), faults))
    faults = [fault for fault, is_run in zip(faults, ran, strict=True) if is_run]
    truth = {name_of(fault): truth_of(fault) for fault in faults}
    (asked.runs / "cases.json").write_text(json.dumps(truth, indent=1), "utf-8")


def name_of(fault: Fault) -> str:
    """Returns the name of a fault's folder."""
    return f"nccl_{fault.kind.replace(' ', '_').replace('-', '').lower()}_{fault.seed:02d}"


def truth_of(fault: Fault) -> dict[str, object]:
    """Returns what ``cases.json`` says of a fault."""
    where = f"step {fault.step}, microbatch {fault.microbatch}"
    return {
        "kind": fault.kind,
        "root_ranks": list(fault.roots),
        "what": f"{fault.kind}, {where} (tp {fault.tp}, pp {fault.pp}, dp {fault.dp}), NCCL",
        "class": CLASSES.get(fault.kind, "hang"),
    }


def run_job(fault: Fault, asked: argparse.Namespace, until: float) -> bool:
    """Runs one job to its end, or ends it; takes its stacks when nothing was said for a while.

    Returns whether it was run, which it is not after ``until``.
    """
    if time.monotonic() > until:
        return False
    place = asked.runs.absolute() / name_of(fault)
    for name in ("fr", "stacks", "logs", "pids"):
        (place / name).mkdir(parents=True)
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS)]
    words += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", "--log-dir"]
    words += [str(place / "logs"), "--redirects", "3", "--tee", "3"]
    words += ["-m", "benchmarks.diagnosis.faults.on_gpu", str(place), "--rank-of", fault.kind]
    words += ["--device", asked.device, "--first", str(asked.first)]
    words += ["--guard"] if asked.guard else []
    with (place / "console.log").open("wb") as console:
        job = subprocess.Popen(
            words, stdout=console, stderr=console, env=_environment(place), start_new_session=True
        )
    began = told = time.monotonic()
    text, has_stacks = "", asked.guard
    while job.poll() is None and time.monotonic() - began < LONGEST_S:
        time.sleep(0.25)
        before, text = text, (place / "console.log").read_text("utf-8", "replace")
        told = told if text == before else time.monotonic()
        is_near = text.count(f" step {fault.step - 1} norm ") == RANKS
        if is_near and not has_stacks and time.monotonic() - told > STILL_S:
            has_stacks = True
            _take_stacks(place)
    _end(job, place)
    took_s = time.monotonic() - began
    print(f"{name_of(fault):<32} {took_s:5.1f} s, exit {job.returncode}", flush=True)
    return True


def _environment(place: Path) -> dict[str, str]:
    return os.environ | {
        "TORCH_FR_BUFFER_SIZE": "2000",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_FR_DUMP_TEMP_FILE": str(place / "fr" / "fr_trace_"),
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(place / "fr" / "fr_trace_"),
        "NCCL_DEBUG": "WARN",
        "OMP_NUM_THREADS": "1",
    }


def _pids(place: Path) -> Iterator[tuple[int, int]]:
    for file in sorted((place / "pids").iterdir()):
        yield int(file.name), int(file.read_text() or 0)


def _take_stacks(place: Path) -> None:
    """Keeps each rank's state and stack: of py-spy, where it is installed, else its own."""
    states, spy = {}, shutil.which("py-spy")
    for rank, pid in _pids(place):
        with suppress(OSError):
            states[rank] = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
        file = place / "stacks" / f"pyspy_rank_{rank}.txt"
        if spy is not None:
            words = [spy, "dump", "--nonblocking", "--pid", str(pid)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            file.write_text(done.stdout or done.stderr)
    (place / "proc_state.json").write_text(json.dumps(states))


def _end(job: subprocess.Popen[bytes], place: Path) -> None:
    with suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        job.wait(5)
    for _, pid in _pids(place):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    for name in ("logs", "pids"):
        shutil.rmtree(place / name, ignore_errors=True)


def be_rank(fault: Fault, asked: argparse.Namespace) -> None:
    """Is one rank of the job, from its start to its end."""
    import torch
    import torch.distributed as dist

    import serried
    from benchmarks.diagnosis.faults.standing import StandingJob

    rank, place = int(os.environ["RANK"]), asked.runs
    if asked.device == "cuda":
        os.environ.update(NCCL_HOSTID=f"host{rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
        with suppress(OSError, AttributeError):  # a rank that waits for the GPU leaves its core
            ctypes.CDLL("libcudart.so.13").cudaSetDeviceFlags(_BLOCKING_SYNC)
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")
    # All begin together: what it takes a rank to start is not to run out the others' time.
    (place / "pids" / str(rank)).write_text(str(os.getpid()))
    while len(list((place / "pids").iterdir())) < RANKS:
        time.sleep(0.1)
    with serried.guard(place / "guard" if asked.guard else None, timeout_s=STILL_S) as guard:
        limit = timedelta(seconds=LIMIT_S)
        dist.init_process_group("nccl" if asked.device == "cuda" else "gloo", timeout=limit)
        job = StandingJob(fault, rank, place / f"disk-{rank}", asked.device, limit)
        for step in range(fault.steps):
            guard.begin_step(step)
            norm = float(job.step(step))  # as a training does that logs its loss: here ranks meet
            print(f"[{time.time():.3f}] rank {rank} step {step} norm {norm:.4f}", flush=True)
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
