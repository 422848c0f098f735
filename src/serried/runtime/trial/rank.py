"""One rank's part in a trial: the steps by messages, torch's own collective, and both compared.

every trial, every rank of its group    whole numbers      the same, bit for bit
                                        normal numbers     the same, or apart as sums may be
                                        both timed         barrier, run, …; the quickest counts
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from serried.runtime.groups.devices import device_of, join_world
from serried.runtime.job.report import Place
from serried.runtime.run.heartbeat import Heartbeat
from serried.runtime.run.worker import Rendezvous
from serried.runtime.trial.buffers import (
    ADDS,
    as_blocks,
    blocks_given,
    blocks_taken,
    numbers,
    torchs_own,
)
from serried.runtime.trial.moves import elements_of, run_moves
from serried.runtime.trial.report import RankOutcome, TrialOutcome, TrialReport
from serried.runtime.trial.settings import CollectiveTrial, TrialSettings

Tell = Callable[[TrialReport], None]


def try_rank(settings: TrialSettings, place: Place, rendezvous: Rendezvous, tell: Tell) -> None:
    """Tries all on one rank, from its first message to its last; all ranks of the job call it."""
    device = device_of(settings.device, place)
    timeout = timedelta(seconds=settings.timeout_s)
    with Heartbeat(rendezvous["store"], place.rank, place.world_size) as heart:
        with heart.step("joining the others"):
            backend = join_world(device, place, timeout, rendezvous)
            control = dist.new_group(backend="gloo", timeout=timeout)
        with heart.step("making groups"):
            # One for each set of ranks, made in one order on all.
            sets = dict.fromkeys(trial.collective.group.ranks for trial in settings.trials)
            groups = {ranks: dist.new_group(list(ranks), timeout=timeout) for ranks in sets}
        outcomes = []
        for number, trial in enumerate(settings.trials):
            with heart.step(f"{trial.name} by {trial.algorithm}"):
                own = None
                if place.rank in trial.group.ranks:
                    group = groups[trial.collective.group.ranks]
                    own = RankTrial(trial, settings, group, device).outcome()
                found: list[RankOutcome | None] = [None] * place.world_size
                dist.all_gather_object(found, own, group=control)
                heard = tuple(each for each in found if each is not None)
                outcomes.append(TrialOutcome(number, backend, trial.elements, heard))
        with heart.step("leaving"):
            if place.rank == 0:
                tell(TrialReport(tuple(outcomes)))
            dist.barrier(control)


class RankTrial:
    """Runs one collective on one rank of its group, both ways."""

    def __init__(
        self,
        trial: CollectiveTrial,
        settings: TrialSettings,
        group: dist.ProcessGroup,
        device: torch.device,
    ) -> None:
        self.collective = trial.collective
        self.elements = trial.elements
        self.iterations = settings.iterations
        self.group = group
        self.device = device
        self.position = dist.get_rank(group)
        self.taken = blocks_taken(self.collective, self.position)
        self.given = blocks_given(self.collective, self.position)
        self.sizes = elements_of(self.collective, self.taken, self.elements)

    def outcome(self) -> RankOutcome:
        """Returns what this rank finds."""
        whole, real = (self._input(kind) for kind in (torch.int32, torch.float32))
        is_same = torch.equal(self._by_moves(whole), self._own(whole))
        difference = (self._by_moves(real) - self._own(real)).abs()
        # Where the sum without signs is 0, all that was added is 0, and so is the difference.
        ratios = difference / self._own(real.abs()).clamp_min(torch.finfo(real.dtype).tiny)
        return RankOutcome(
            dist.get_rank(),
            is_same,
            max(ratios.tolist(), default=0.0),
            self._most_apart(),
            self._quickest(lambda: self._by_moves(real)),
            self._quickest(lambda: self._own(real)),
        )

    def _input(self, kind: torch.dtype) -> Tensor:
        return numbers(sum(self.sizes), self.position, kind, self.device)

    def _by_moves(self, whole: Tensor) -> Tensor:
        held = as_blocks(whole, self.taken, self.sizes)
        after = run_moves(self.collective, held, self.elements, whole, self.group)
        return torch.cat([after[block] for block in self.given] or [whole[:0]])

    def _own(self, whole: Tensor) -> Tensor:
        size = sum(elements_of(self.collective, self.given, self.elements))
        return torchs_own(self.collective, whole, whole.new_empty(size), self.group)

    def _most_apart(self) -> float:
        """Returns how far two sums of the same numbers may be apart, whatever their order.

        Either is off by n - 1 roundings of at most the sum of the numbers without signs (Higham,
        Accuracy and Stability of Numerical Algorithms, 4.2). Where nothing is added: 0.
        """
        if self.collective.name not in ADDS:
            return 0.0
        return 2 * (self.collective.group.size - 1) * torch.finfo(torch.float32).eps

    def _quickest(self, run: Callable[[], object]) -> int:
        times = []
        for _ in range(self.iterations):
            dist.barrier(self.group)
            start = time.perf_counter_ns()
            run()
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            times.append(time.perf_counter_ns() - start)
        return min(times)
