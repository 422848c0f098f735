"""A training program of one's own: its ranks started on this host, and its groups made.

python program.py       start(main, ranks=8) ── forks 8 ranks ──> each calls main()
torchrun program.py     start(main, ranks=8) ── is a rank ──────> calls main()

def main():
    groups = join(tp=2, pp=2)           every rank; dp is what is left of the ranks
    groups.group("tp")                  this rank's process group along tp
    groups.mesh["tp"]                   the same as a DeviceMesh, for torch's own parts
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from serried.errors import InputError
from serried.frameworks import Sizes
from serried.frameworks import layout as layout_of
from serried.mesh import Layout
from serried.runtime.job.report import Place
from serried.runtime.run import worker
from serried.runtime.run.launch import require_torch
from serried.runtime.run.local_ranks import run_locally
from serried.runtime.training.mesh import TrainMesh, make_groups

_started: list[tuple[Place, worker.Rendezvous]] = []
"""Where this process is a rank and how it meets the others, if ``start`` began it."""


@dataclass(frozen=True)
class ProgramJob:
    """Calls ``main`` on every rank; rank 0 tells what it returned."""

    main: Callable[[], Any]
    world_size: int
    timeout_s: float

    def run_rank(
        self, place: Place, rendezvous: worker.Rendezvous, tell: Callable[[Any], None]
    ) -> None:
        """Calls ``main``, and leaves only when all ranks have ended theirs."""
        import torch.distributed as dist

        worker.quiet_torch()
        _started[:] = [(place, rendezvous)]
        tell(self.main())
        if dist.is_initialized():
            dist.barrier()


def start(main: Callable[[], Any], ranks: int, *, timeout_s: float = 300.0) -> Any:
    """Calls ``main`` on ``ranks`` processes of this host and returns what it returned on rank 0.

    A process that torchrun or Slurm started is one of them already: it calls ``main`` and ends.
    The script that calls this needs an ``if __name__ == "__main__"`` guard, and ``main`` stands
    at its top level. Raises SerriedError with a rank's own message first where one fails.
    """
    require_torch()
    if ranks < 1:
        raise InputError("ranks={ranks} cannot be; a program has at least 1 rank", ranks=ranks)
    place = worker.place_of_launcher()
    if place is not None:
        worker.join(ProgramJob(main, place.world_size, timeout_s), place, lambda told: None)
        worker.leave(0)
    worker.prepare_environment(local=True)
    with closing(run_locally(ProgramJob(main, ranks, timeout_s))) as told:
        (returned,) = list(told)
    return returned


def join(
    layout: Layout | None = None,
    /,
    *,
    tp: int = 1,
    pp: int = 1,
    cp: int = 1,
    framework: str = "megatron",
    device: str = "auto",
    timeout_s: float = 300.0,
    zero: int = 0,
    zero_shard: int | None = None,
) -> TrainMesh:
    """Joins the ranks of this program and makes its groups; all ranks call it together.

    The groups are those of ``layout``, or of tp, pp and cp under the framework's rules, where dp
    is what they leave of the ranks. ``device`` is ``auto``, ``cpu`` or ``cuda``. From ``zero`` 1
    on, ``zero_shard`` ranks of dp x cp share one copy of what the ZeRO stage shards, all of them
    by default. A process that nothing started is a job of one rank:

    >>> groups = join()
    >>> groups.rank, groups.size("dp"), groups.members("tp")
    (0, 1, (0,))
    >>> import torch.distributed as dist
    >>> dist.destroy_process_group()

    Raises InputError where the layout is not of as many ranks as there are, or cannot be.
    """
    import torch.distributed as dist

    from serried.runtime.groups.devices import device_of, join_world

    place, rendezvous = _meeting(timeout_s)
    made = layout or layout_of(framework, Sizes(place.world_size, tp=tp, pp=pp, cp=cp))
    if made.world_size != place.world_size:
        raise InputError(
            "the layout is of {asked} ranks and the job has {world}; start {asked} ranks, or "
            "give the sizes of {world}",
            asked=made.world_size,
            world=place.world_size,
        )
    on = device_of(device, place)
    timeout = timedelta(seconds=timeout_s)
    if not dist.is_initialized():
        join_world(on, place, timeout, rendezvous)
    return make_groups(made, on, timeout, zero=zero, shard=zero_shard)


def _meeting(timeout_s: float) -> tuple[Place, worker.Rendezvous]:
    """Returns which rank this process is, and how it finds the others."""
    import torch.distributed as dist

    if _started:
        return _started[0]
    place = worker.place_of_launcher()
    if dist.is_initialized():
        ranks = dist.get_world_size()
        return place or Place(dist.get_rank(), ranks, dist.get_rank(), ranks), {}
    if place is None:
        return Place(0, 1, 0, 1), {"store": dist.HashStore()}  # type: ignore[attr-defined]
    from serried.runtime.groups.rendezvous import meet

    worker.prepare_environment(local=False)
    return place, {"store": meet(place, None, timeout_s)}
