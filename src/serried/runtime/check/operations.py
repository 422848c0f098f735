"""The operations that a check times, with nccl-tests' buffers, and who exchanges messages.

S is the size column; a buffer is cut so that every rank has an equal share of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from serried.runtime.check.report import Seat

MAX_PARTNERS = 8
"""Nodes (or ranks of a node) that each one exchanges messages with; all where there are fewer."""

Run = Callable[[], object]


def operation(name: str, group: dist.ProcessGroup, size_bytes: int, device: torch.device) -> Run:
    """Returns what runs operation ``name`` once over ``group``, buffers of ``size_bytes`` made."""
    ranks = dist.get_world_size(group)
    share = torch.zeros(max(1, size_bytes // 4 // ranks), device=device)
    whole = torch.zeros(share.numel() * ranks, device=device)
    runs: dict[str, Run] = {
        "all_reduce": lambda: dist.all_reduce(whole, group=group),
        "all_gather": lambda: dist.all_gather_single(whole, share, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_single(share, whole, group=group),
        "all_to_all": lambda: dist.all_to_all_single(received, whole, group=group),
        "sendrecv": lambda: _around(whole, received, group),
    }
    received = torch.empty_like(whole)
    return runs[name]


def _around(sent: torch.Tensor, received: torch.Tensor, group: dist.ProcessGroup) -> None:
    """Sends to the next rank of the group, the last to the first; receives from the one before."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    to, back = (dist.get_global_rank(group, (rank + step) % ranks) for step in (1, -1))
    operations = [
        dist.P2POp(dist.isend, sent, to, group),
        dist.P2POp(dist.irecv, received, back, group),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


def timed(run: Run, iterations: int, device: torch.device) -> list[int]:
    """Returns the nanoseconds of each of ``iterations`` runs, the device's work included."""
    times = []
    for _ in range(iterations):
        start = time.perf_counter_ns()
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter_ns() - start)
    return times


@dataclass(frozen=True)
class Exchange:
    """Sends messages one way and a short answer back; the sender's time is the message's."""

    partner: int
    sends_first: bool

    def run(self, size_bytes: int, iterations: int, device: torch.device) -> list[int]:
        """Returns the times of this rank's own messages; the partner's are timed there."""
        message = torch.zeros(max(1, size_bytes // 4), device=device)
        answer = torch.zeros(1, device=device)

        def send() -> None:
            dist.send(message, self.partner)
            dist.recv(answer, self.partner)

        def receive() -> None:
            dist.recv(message, self.partner)
            dist.send(answer, self.partner)

        # One of the two sends while the other receives, then they change places: each times its
        # own.
        first, second = (send, receive) if self.sends_first else (receive, send)
        before = timed(first, iterations, device)
        after = timed(second, iterations, device)
        return before if self.sends_first else after


def meetings(seats: Sequence[Seat]) -> list[list[tuple[int, int]]]:
    """Returns turns of pairs of ranks that exchange messages at the same time, no rank twice.

    Nodes meet each other in a round robin, rank i of one with rank i of the other; then the
    ranks of every node do so among themselves.

        4 nodes   (0 3) (1 2)   (0 2) (3 1)   (0 1) (2 3)
    """
    nodes: dict[int, list[int]] = {}
    for seat in sorted(seats, key=lambda each: each.rank):
        nodes.setdefault(seat.node, []).append(seat.rank)
    # Where nodes differ in size, the last ranks of the larger one have no partner on the other.
    across = [
        [pair for a, b in turn for pair in zip(nodes[a], nodes[b], strict=False)]
        for turn in round_robin(sorted(nodes))
    ]
    inside = [round_robin(ranks) for ranks in nodes.values()]
    longest = max(len(turns) for turns in inside)
    return across + [
        [pair for turns in inside if turn < len(turns) for pair in turns[turn]]
        for turn in range(longest)
    ]


def round_robin(players: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Returns turns in which everybody meets another partner, at most MAX_PARTNERS of them.

    >>> round_robin([0, 1, 2, 3])
    [[(0, 3), (1, 2)], [(0, 2), (3, 1)], [(0, 1), (2, 3)]]
    >>> round_robin([5])
    []
    """
    # The circle method: the first player stays and the others move on by one place a turn; whoever
    # meets None has a pause.
    circle: list[int | None] = [*players, *([None] if len(players) % 2 else [])]
    turns = []
    for _ in range(min(len(circle) - 1, MAX_PARTNERS)):
        half = len(circle) // 2
        pairs = zip(circle[:half], reversed(circle[half:]), strict=True)
        turns.append([(a, b) for a, b in pairs if a is not None and b is not None])
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return turns if len(players) > 1 else []
