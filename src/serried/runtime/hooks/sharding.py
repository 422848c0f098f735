"""Hooks around what data parallel ranks exchange: DDP's buckets and FSDP2's shards.

    DDP         a process group before its own                        REDUCE_GRAD    per bucket
                what a backward waits for its buckets at its end      ALL_REDUCE     ``hooks``
    FSDP2       unshard and the wait for it; reduce-scatter           ALL_GATHER, REDUCE_SCATTER

A span of FSDP2 is the time for which the caller was held up, on a GPU the one its stream was; a
bucket's is from its launch to its end, on the stream of the messages, mostly behind the backward.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from serried.action import ActionKind
from serried.runtime.hooks.collectives import Exchanges
from serried.runtime.recorder.clock import Mark
from serried.runtime.recorder.patches import Patch, Work
from serried.runtime.recorder.torch_private import fsdp_collectives, fsdp_group, set_reducer_group

if TYPE_CHECKING:
    from serried.runtime.recording.session import StepRecorder

_NEVER = object()
_PATIENCE_S = 0.5
_Flight = tuple[int, Mark, list[Mark]]
"""Step and launch of a bucket, and its end once that has come."""


def is_sharded(root: nn.Module) -> bool:
    """Tells whether FSDP2 shards a module of ``root``."""
    return any(isinstance(each, dist.fsdp.FSDPModule) for each in root.modules())


class Buckets:
    """Times the buckets of every DDP in a model, but for those with a hook of their own.

    A process group that passes all on to DDP's own stands before that. A communication hook would
    stay in for good, and divide gradients where DDP does not; DDP's own timers know only when the
    first bucket leaves and the last arrives, and wait for the device.
    """

    def __init__(self, root: nn.Module, recorder: StepRecorder, work: Work) -> None:
        self._recorder, self._work = recorder, work
        self._models = [m for m in root.modules() if isinstance(m, DistributedDataParallel)]
        self._flights: list[_Flight] = []
        self._groups: list[_Before] = []
        """Those that are in: a reducer does not keep alive what of a group is Python's."""

    def put_in(self) -> None:
        """Puts a group that times before each reducer's own."""
        for model in self._models:
            own = model.process_group
            group = _Before(own, _timed(own.allreduce, self._recorder, self._work, self._flights))
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
        while not all(ends for _, _, ends in self._flights) and time.monotonic() < until_s:
            time.sleep(0.0005)
        self.keep()

    def keep(self) -> None:
        """Keeps the buckets that have arrived since this was last called."""
        if not self._flights:
            return
        sink, waiting = self._recorder.sink, []
        for flight in self._flights:
            step, start, ends = flight
            if ends:
                sink.later(ActionKind.REDUCE_GRAD, start, ends[0], 0, step=step)
            else:
                waiting.append(flight)
        self._flights[:] = waiting


class _Before(dist.ProcessGroup):
    """Is a group that passes on to another what DDP's reducer asks for."""

    def __init__(self, own: dist.ProcessGroup, allreduce: Callable[..., dist.Work]) -> None:
        super().__init__(own.rank(), own.size())  # type: ignore[call-arg]
        self.allreduce = allreduce  # type: ignore[method-assign]
        self._own = own

    def broadcast(self, *args: Any) -> dist.Work:
        return self._own.broadcast(*args)

    def getBackendName(self) -> str:  # as torch calls it
        return self._own.name()


def _timed(
    allreduce: Callable[..., dist.Work],
    recorder: StepRecorder,
    work: Work,
    flights: list[_Flight],
) -> Callable[..., dist.Work]:
    """Returns ``allreduce`` that notes when it begins and when its work is done.

    The end is marked in a thread of the backend, for which a frame of Python's would first have to
    be made, at the cost of ten spans. So only what is built in is called there: ``next`` of a
    ``map`` of a list's ``append`` over the marks.
    """
    sink = recorder.sink
    mark = sink.mark
    marks = iter(mark, _NEVER)

    def timed(tensors: list[torch.Tensor], options: Any) -> dist.Work:
        if not recorder.is_on or tensors[0].dtype is torch.int32:  # which parameters were used
            return allreduce(tensors, options)
        work.when_launched()
        start, ends = mark(), list[Mark]()
        launched = allreduce(tensors, options)
        launched.get_future().add_done_callback(partial(next, map(ends.append, marks)))
        flights.append((sink.step, start, ends))
        return launched

    return timed


def fsdp_patches(exchanges: Exchanges) -> list[Patch]:
    """Returns the patches of FSDP2, where this torch has it as expected."""
    if fsdp_group is None or fsdp_collectives is None:
        return []
    gathers = ActionKind.ALL_GATHER
    return [
        Patch(fsdp_group, "unshard", exchanges.timed(gathers, needs=_is_to_gather)),
        Patch(fsdp_group, "wait_for_unshard", exchanges.timed(gathers, needs=_is_gathering)),
        Patch(fsdp_collectives, "foreach_reduce", exchanges.timed(ActionKind.REDUCE_SCATTER)),
    ]


def _is_to_gather(group: Any, *args: Any, **options: Any) -> bool:
    return group._all_gather_result is None and not group.is_unsharded


def _is_gathering(group: Any, *args: Any, **options: Any) -> bool:
    return group._all_gather_result is not None
