"""What ranks of one group hand each other inside a computation, gradients included, and when.

    Ring, 4 ranks     0 ──> 1 ──> 2 ──> 3 ──> 0        each sends on what it has and receives
                                                       what the one before it had

    all_to_all        rank 0   a0 a1 a2  ->  a0 b0 c0  part j of what a rank holds goes to rank
                      rank 1   b0 b1 b2  ->  a1 b1 c1  j; its gradient comes back the same way
                      rank 2   c0 c1 c2  ->  a2 b2 c2

    all_gather        rank 0   a         ->  a b c     every rank gets all; a gradient is summed
                      rank 1   b         ->  a b c     over ranks on its way back
                      rank 2   c         ->  a b c     (reduce-scatter)

All ranks of a group call these in the same order, forward and backward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.distributed.device_mesh import DeviceMesh

from serried.action import ActionKind
from serried.finding import said
from serried.runtime.groups.lost_peers import MessageLost
from serried.runtime.recorder.tracer import Tracer

MeshOrGroup = DeviceMesh | dist.ProcessGroup
_tracer: Tracer | None = None


@contextmanager
def time_exchanges(tracer: Tracer) -> Iterator[None]:
    """Times the exchanges of this process: the waits of a ring, and collectives as wholes.

    Not one thread but the process is watched: autograd may run backward in a thread of its own.
    """
    global _tracer
    before, _tracer = _tracer, tracer
    try:
        yield
    finally:
        _tracer = before


def _timed(kind: ActionKind, peer: int = -1) -> AbstractContextManager[None]:
    """Times its body as a part of the computation that runs; ``peer`` is whom a ring waits for."""
    if _tracer is None:
        return nullcontext()
    return _tracer.exchange(kind, _tracer.work.stage, _tracer.work.microbatch, peer)


def group_of(mesh_or_group: MeshOrGroup) -> dist.ProcessGroup:
    """Returns the process group of a mesh of one axis, or the group itself."""
    if not isinstance(mesh_or_group, DeviceMesh):
        return mesh_or_group
    group: dist.ProcessGroup = mesh_or_group.get_group()
    return group


@dataclass(frozen=True, eq=False)
class Incoming:
    """Holds a tensor that is on its way from the rank before."""

    tensor: Tensor
    sent: Tensor
    """Kept until it has left."""
    sender: int
    """The global rank that sends it."""
    works: tuple[dist.Work, ...]

    def wait(self) -> Tensor:
        """Returns the tensor once it is here, and once the one sent has left."""
        if self.works:
            with _timed(ActionKind.RING, self.sender):
                self._wait()
        return self.tensor

    def _wait(self) -> None:
        try:
            for work in self.works:
                work.wait()
        except RuntimeError as error:
            # Whether it was what comes or what leaves, torch does not say: so no peer is named.
            raise MessageLost(said("a ring"), None, error) from error


class Ring:
    """Joins the ranks of a group into a circle, in the order of the group."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)

    def pass_on(self, tensor: Tensor) -> Incoming:
        """Begins to send ``tensor`` to the next rank and to receive the previous rank's.

        Sending and receiving are posted together: two ranks that each sent first could wait
        for one another for ever. Messages between two ranks arrive in the order of the calls.
        """
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        sender = dist.get_global_rank(self.group, before)
        if self.size == 1:
            return Incoming(tensor, tensor, sender, ())
        sent, received = tensor.contiguous(), torch.empty_like(tensor).contiguous()
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, sent, group=self.group, group_peer=after),
                dist.P2POp(dist.irecv, received, group=self.group, group_peer=before),
            ]
        )
        return Incoming(received, sent, sender, tuple(works))

    def round(self, tensor: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Gives, one after another, every rank of the group and its ``tensor``, its own first.

        The next one is under way while the caller works with what it was given.
        """
        for step in range(self.size):
            coming = self.pass_on(tensor) if step + 1 < self.size else None
            yield (self.rank - step) % self.size, tensor
            tensor = coming.wait() if coming else tensor


def all_to_all(
    x: Tensor, group: dist.ProcessGroup, sends: Sequence[int], receives: Sequence[int]
) -> Tensor:
    """Sends ``sends[j]`` rows of ``x`` to rank j and returns ``receives[i]`` rows of each rank i.

    A rank takes part with nothing to send or receive too.
    """
    out: Tensor = _AllToAll.apply(x, group, list(sends), list(receives))  # type: ignore[no-untyped-call]
    return out


class _AllToAll(torch.autograd.Function):
    """Exchanges rows; the gradient of a row goes back to where the row came from."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, group: dist.ProcessGroup, sends: list[int], receives: list[int]
    ) -> Tensor:
        ctx.group, ctx.sends, ctx.receives = group, sends, receives
        return _exchanged(x, group, sends, receives)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return _exchanged(gradient, ctx.group, ctx.receives, ctx.sends), None, None, None


def _exchanged(
    x: Tensor, group: dist.ProcessGroup, sends: list[int], receives: list[int]
) -> Tensor:
    out = x.new_empty(sum(receives), *x.shape[1:])
    with _timed(ActionKind.ALL_TO_ALL):
        dist.all_to_all_single(out, x.contiguous(), receives, sends, group=group)
    return out


def all_gather(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """Returns the ``x`` of every rank, of one shape, stacked: (ranks, …)."""
    out: Tensor = _AllGather.apply(x, group)  # type: ignore[no-untyped-call]
    return out


class _AllGather(torch.autograd.Function):
    """Gathers; the gradient of a rank's ``x`` is the sum of what all ranks say of it.

    torch.distributed.nn.functional.all_gather is no help: its gradients are silently wrong on
    gloo, whose scatter ignores strides.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: dist.ProcessGroup) -> Tensor:
        ctx.group = group
        out = x.new_empty(dist.get_world_size(group), *x.shape)
        with _timed(ActionKind.ALL_GATHER):
            dist.all_gather_single(out.flatten(0, 1), x.contiguous(), group=group)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        own = gradient.new_empty(gradient.shape[1:])
        with _timed(ActionKind.REDUCE_SCATTER):
            dist.reduce_scatter_single(own, gradient.contiguous().flatten(0, 1), group=ctx.group)
        return own, None
