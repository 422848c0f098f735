"""Any rank of a big job in one process, over torch's fake backend, which sends nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from serried.runtime.job.settings import TrainSettings
from serried.runtime.training.mesh import TrainMesh, make_train_mesh


@contextmanager
def as_rank(rank: int, settings: TrainSettings) -> Iterator[TrainMesh]:
    """Makes the groups of ``rank`` among ranks that are only pretended."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=settings.world_size)
    try:
        yield make_train_mesh(settings, torch.device("cpu"), timedelta(seconds=5))
    finally:
        dist.destroy_process_group()
