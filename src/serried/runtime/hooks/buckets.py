"""Hooks around DDP's buckets: a process group before its own tells when each leaves and arrives.

bucket      from its launch to its end, on the stream of the messages     REDUCE_GRAD
            mostly behind the backward that launches it
backward    what it waits for its buckets at its end                      ALL_REDUCE, ``program``
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from serried.action import ActionKind
from serried.runtime.hooks.moved_bytes import ranks_of
from serried.runtime.recorder.torch_private import set_reducer_group
from serried.runtime.recorder.tracer import Mark, SpanParts, Tracer
from serried.trace.model.traffic import CollectiveMove

_NEVER = object()
_PATIENCE_S = 0.5
_Flight = tuple[int, Mark, list[Mark], CollectiveMove]
"""Step and launch of a bucket, its end once that has come, and what it moves."""


class Buckets:
    """Times the buckets of every DDP in a model, but for those with a hook of their own.

    A process group that passes all on to DDP's own stands before that. A communication hook would
    stay in for good, and divide gradients where DDP does not; DDP's own timers know only when the
    first bucket leaves and the last arrives, and wait for the device.
    """

    def __init__(self, root: nn.Module, tracer: Tracer) -> None:
        self._tracer = tracer
        self._models = [m for m in root.modules() if isinstance(m, DistributedDataParallel)]
        self._flights: list[_Flight] = []
        self._groups: list[_TimedGroup] = []
        """Those that are in: a reducer does not keep alive what of a group is Python's."""

    def put_in(self) -> None:
        """Puts a group that times before each reducer's own."""
        for model in self._models:
            own = model.process_group
            group = _TimedGroup(own, _timed(own, self._tracer, self._flights))
            self._groups.append(group)
            set_reducer_group(model, group)

    def take_out(self) -> None:
        """Gives the reducers their own groups back."""
        for model in self._models:
            set_reducer_group(model, model.process_group)
        self._groups.clear()

    def close(self) -> None:
        """Keeps the last too: the rank goes on as soon as they are there, and they end then."""
        until_s = time.monotonic() + _PATIENCE_S
        while not all(ends for _, _, ends, _ in self._flights) and time.monotonic() < until_s:
            time.sleep(0.0005)
        self.keep()

    def keep(self) -> None:
        """Keeps the buckets that have arrived since this was last called."""
        if not self._flights:
            return
        waiting = []
        for flight in self._flights:
            step, start, ends, move = flight  # the backend's thread appends the end when it comes
            if ends:
                moves = (move,) if len(move.ranks) > 1 else ()
                kind = ActionKind.REDUCE_GRAD
                span = SpanParts(kind, start, ends[0], stage=0, step=step, moves=moves)
                self._tracer.keep_late(span)
            else:
                waiting.append(flight)
        self._flights[:] = waiting


class _TimedGroup(dist.ProcessGroup):
    """Passes on to a reducer's own group what the reducer asks for, and times it."""

    def __init__(self, own: dist.ProcessGroup, allreduce: Callable[..., dist.Work]) -> None:
        super().__init__(own.rank(), own.size())  # type: ignore[call-arg]
        self.allreduce = allreduce  # type: ignore[method-assign]
        self._own = own

    def broadcast(self, *args: Any) -> dist.Work:
        return self._own.broadcast(*args)

    def getBackendName(self) -> str:  # as torch calls it
        return self._own.name()


def _timed(
    own: dist.ProcessGroup, tracer: Tracer, flights: list[_Flight]
) -> Callable[..., dist.Work]:
    """Returns ``own``'s allreduce that notes when it begins and when its work is done.

    The end is marked in a thread of the backend, for which a frame of Python's would first have to
    be made, at the cost of ten spans. So only what is built in is called there: ``next`` of a
    ``map`` of a list's ``append`` over the marks.
    """
    mark, work, allreduce = tracer.mark, tracer.work, own.allreduce
    ranks = ranks_of(own)
    marks = iter(mark, _NEVER)

    def timed(tensors: list[torch.Tensor], options: Any) -> dist.Work:
        if not tracer.is_on or tensors[0].dtype is torch.int32:  # which parameters were used
            return allreduce(tensors, options)
        work.when_launched()
        start, ends = mark(), list[Mark]()
        launched = allreduce(tensors, options)
        launched.get_future().add_done_callback(partial(next, map(ends.append, marks)))
        size_bytes = sum(each.nbytes for each in tensors)
        move = CollectiveMove(ActionKind.ALL_REDUCE, ranks, size_bytes)
        flights.append((tracer.step, start, ends, move))
        return launched

    return timed
