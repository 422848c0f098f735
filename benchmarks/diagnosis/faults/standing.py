"""The job that stands still: tp x pp x dp ranks of a small model, guarded, with one fault.

a microbatch     receive ─ forward (all-reduce of tp) ─ send        all forwards, then backward
a step           all-reduce of dp, then of all ranks         GPipe, rank order tp-dp-pp
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

import serried
from benchmarks.diagnosis.faults.disturbed import disturb
from benchmarks.diagnosis.faults.fault import OF_SUMS, Fault

FULL = "checkpoint.pt"
"""A checkpoint that the disk has no room for."""
STILL_S, LIMIT_S = 1.5, 5.0
"""After what the guard calls a rank still, and torch's own limit where that is to run out."""
SIZES = {"cpu": (16, 4), "cuda": (1024, 2048)}
"""Width of a layer, and rows of a microbatch: on a GPU many, as NCCL may take in what is small
before anybody waits for it."""


class StandingJob:
    """Is one rank of it."""

    def __init__(
        self,
        fault: Fault,
        rank: int,
        disk: Path,
        device: str = "cpu",
        limit: timedelta | None = None,
    ) -> None:
        """Makes groups, of ``limit`` each where one is given, and the stage of this rank."""
        self.fault, self.rank, self.disk, self.device = fault, rank, disk, device
        self.limit = limit
        self.width, self.rows = SIZES[device]
        self.inside = fault.tp * fault.dp
        self.stage = rank // self.inside
        self.before, self.after = rank - self.inside, rank + self.inside
        self.tp, self.dp = self._groups()
        torch.manual_seed(self.stage)
        linear = torch.nn.Linear(self.width, self.width, device=device)
        self.net = torch.nn.Sequential(linear, torch.nn.Tanh())
        self.optimizer = torch.optim.SGD(self.net.parameters(), 1e-3)

    def _groups(self) -> tuple[dist.ProcessGroup, ...]:
        f = self.fault
        tp = [list(range(n * f.tp, (n + 1) * f.tp)) for n in range(f.pp * f.dp)]
        dp = [
            [p * self.inside + d * f.tp + t for d in range(f.dp)]
            for p in range(f.pp)
            for t in range(f.tp)
        ]
        mine: list[dist.ProcessGroup] = []
        for name, lists in (("tp", tp), ("dp", dp)):
            for number, ranks in enumerate(lists):
                desc = f"{name}_{number}" if f.seed % 2 else None
                made = dist.new_group(ranks, timeout=self.limit, group_desc=desc)
                if self.rank in ranks:
                    mine.append(made)
        return tuple(mine)

    def step(self, step: int) -> torch.Tensor:
        """Does one step, with what goes wrong in it; returns its gradients' squares, summed."""
        f = self.fault
        held = [self._forward(step, each) for each in range(f.microbatches)]
        for x, y in held:
            if self.stage == f.pp - 1:
                y.square().mean().backward()  # type: ignore[no-untyped-call]
            else:
                gradient = torch.empty_like(y)
                dist.recv(gradient, self.after)
                y.backward(gradient)  # type: ignore[no-untyped-call]
            if self.stage:
                assert x.grad is not None
                dist.send(x.grad, self.before)
        norm = self._reduce(step)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if f.kind == "full disk" and f.is_at(self.rank, step):
            torch.save({"weights": torch.zeros(1 << 16)}, self.disk / FULL)
        return norm

    def _forward(self, step: int, microbatch: int) -> tuple[torch.Tensor, torch.Tensor]:
        f = self.fault
        is_here = f.is_at(self.rank, step, microbatch)
        x = torch.ones(self.rows, self.width, device=self.device)
        if self.stage and not (is_here and f.kind == "receive never posted"):
            dist.recv(x, self.before)
        x.requires_grad_()
        if is_here:
            disturb(f.kind, self.disk)
        y = self.net(x)
        if f.tp > 1:
            dist.all_reduce(y.detach(), group=self.tp)
        if self.stage < f.pp - 1:
            astray = is_here and f.kind == "send to the wrong peer"
            dist.send(y.detach(), f.other if astray else self.after)
        return x, y

    def _reduce(self, step: int) -> torch.Tensor:
        f = self.fault
        kind = f.kind if f.is_at(self.rank, step) and f.kind in OF_SUMS else ""
        flat = torch.cat([p.grad.reshape(-1) for p in self.net.parameters() if p.grad is not None])
        if kind == "wrong size":
            flat = flat[: self.width * 3]
        elif kind == "wrong dtype":
            flat = flat.double()
        norm = flat.square().sum().float()
        calls = [(flat, self.dp), (norm, None)]
        if f.dp == 1:  # only the group of all ranks is left to go wrong in
            calls = [(flat if kind in ("wrong size", "wrong dtype") else norm, None)]
        if kind == "swapped groups":
            calls.reverse()
        for tensor, group in calls[kind == "skipped collective" :]:
            dist.all_reduce(tensor, group=group)
        return norm


def run_standing(fault: Fault, rank: int, evidence: Path, work: Path) -> None:
    """Is one rank of the job, from its start to its end."""
    is_told = fault.seed % 3 == 0  # of the others nobody says how the ranks stand
    layout = serried.layout(world_size=fault.world_size, tp=fault.tp, pp=fault.pp)
    with serried.guard(evidence, timeout_s=STILL_S, layout=layout if is_told else None) as guard:
        dist.init_process_group(
            "gloo",
            store=dist.FileStore(str(work / "store"), fault.world_size),  # type: ignore[attr-defined]
            rank=rank,
            world_size=fault.world_size,
            timeout=timedelta(seconds=LIMIT_S if fault.runs_out else 600),
        )
        job = StandingJob(fault, rank, work / "disk")
        for step in range(fault.steps):
            guard.begin_step(step)
            job.step(step)
        dist.barrier()
