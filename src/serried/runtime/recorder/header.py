"""Which rank of which job this process is, for the header of what it records.

    framework given, or what is seen    deepspeed, fsdp (sharded parameters), custom
    sizes      of the Layout given, of a pipeline's group, else dp = all ranks
    run        drawn by one rank and told by the job's own store; no collective, so ranks may
               start to record at different times; kept in the folder for the attempts that an
               elastic restart makes of the same run

Ranks that cannot ask a store take the rendezvous address and torchrun's run id as the run.
"""

from __future__ import annotations

import logging
import os
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist

from serried.mesh import Layout
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recorder.torch_private import default_store
from serried.trace.model.record import UNKNOWN_SCHEDULE, RecordHeader, TracedJob

RUN_FILE = "run-id"
"""Name of the file in the folder that keeps the run for the job's later attempts."""
_ATTEMPT = "TORCHELASTIC_RESTART_COUNT"
_KEY = "serried/run"
_log = logging.getLogger("serried")


def rank_here() -> int:
    """Returns this process's global rank, 0 for a process alone."""
    return dist.get_rank() if dist.is_initialized() else int(os.environ.get("RANK", "0"))


def world_size_here() -> int:
    """Returns how many ranks the job has, 1 for a process alone."""
    if dist.is_initialized():
        return dist.get_world_size()
    return int(os.environ.get("WORLD_SIZE", "1"))


def folder_here(folder: Path) -> Path:
    """Returns where this attempt of the job records: one of its own after an elastic restart."""
    attempt = attempt_here()
    return folder / f"restart-{attempt}" if attempt else folder


def first_folder(folder: Path) -> Path:
    """Returns where the first attempt recorded, by the ``folder_here`` of this one."""
    return folder.parent if attempt_here() else folder


def header_here(
    folder: Path, layout: Layout | None, framework: str, stages: int, host: HostTime
) -> RecordHeader:
    """Returns what this rank's file says of itself; ``stages`` is 1 without a pipeline.

    ``folder`` is the one that the program asked for, where the run is kept.
    """
    run = _run(kept_run(folder))
    keep_run(folder, run)
    return header_of(run, rank_here(), job_here(layout, framework, stages), host)


def kept_run(folder: Path) -> str:
    """Returns the run of this job's earlier attempts, by what they left in ``folder``; or ""."""
    if not attempt_here():
        return ""
    try:
        return (folder / RUN_FILE).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""  # no attempt came so far, or it recorded elsewhere


def header_of(run: str, rank: int, job: TracedJob, host: HostTime) -> RecordHeader:
    """Returns a rank's header, with its host's two clocks read one after the other.

    It says what this host computes with, too.
    """
    job = replace(job, device=_device(), cores=_cores(), threads=torch.get_num_threads())
    return RecordHeader(
        run, rank, job, host.name, host.boot, monotonic_ns=host.now_ns(), wall_ns=host.wall_ns()
    )


def _device() -> str:
    """Returns what this rank computes on: the GPU that it uses, by its name, else the CPU."""
    # torch leaves this function untyped.
    is_used: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.get_device_name() if is_used else "cpu"


def _cores() -> int:
    """Returns the CPU cores that this process may run on, which ranks of a host share."""
    # Not every system says to which cores a process is bound.
    bound = getattr(os, "sched_getaffinity", None)
    return len(bound(0)) if bound else os.cpu_count() or 0


def job_here(layout: Layout | None, framework: str = "custom", stages: int = 1) -> TracedJob:
    """Returns the job that this process is a rank of, as far as it can know."""
    world_size = world_size_here()
    if layout:
        framework, sizes, order = layout.framework, dict(layout.sizes), layout.order
    else:
        # All that is known is how many stages were seen: the rest of the world counts as data
        # parallel.
        pp = stages if stages > 0 and world_size % stages == 0 else 1
        sizes, order = {"dp": world_size // pp}, ""
        if pp > 1:
            framework, sizes = "custom", {"pp": pp, **sizes}
    return TracedJob(
        framework=framework,
        world_size=world_size,
        sizes=sizes,
        order=order,
        schedule=UNKNOWN_SCHEDULE,
        num_microbatches=1,
        backend=dist.get_backend() if dist.is_initialized() else "none",
        gpus_per_node=int(os.environ.get("LOCAL_WORLD_SIZE", "0")) or _local_ranks(world_size),
    )


def _local_ranks(world_size: int) -> int:
    return max(1, min(world_size, torch.cuda.device_count() or world_size))


def attempt_here() -> int:
    """Returns how many times an elastic launcher had started the job anew before."""
    return int(os.environ.get(_ATTEMPT, "0"))


def _run(kept: str) -> str:
    """Returns what all ranks call the run: as kept, unless another rank came first."""
    store = default_store() if dist.is_initialized() else None
    if store is not None:
        told: bytes = store.compare_set(_KEY, "", kept or uuid.uuid4().hex[:8])
        return told.decode()
    if kept or world_size_here() == 1:
        return kept or uuid.uuid4().hex[:8]
    # Ranks that cannot talk yet cannot agree on a name that one of them draws, so they take what
    # the launcher told all of them alike.
    names = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID")
    return " ".join(os.environ.get(name, "") for name in names).strip()


def keep_run(folder: Path, run: str) -> None:
    """Keeps the run for later attempts, where torchrun may start some: written whole, or not.

    Ranks that share the folder write the same.
    """
    if _ATTEMPT not in os.environ:
        return
    part = folder / f"{RUN_FILE}.{rank_here()}"
    try:
        part.write_text(run, encoding="utf-8")
        part.replace(folder / RUN_FILE)
    except OSError as error:
        _log.warning("%s cannot be written: %s", folder / RUN_FILE, error.strerror)
        with suppress(OSError):
            part.unlink(missing_ok=True)
