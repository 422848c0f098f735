"""Hooks around collectives: who blocks is timed, who only begins is timed until it is waited for.

    dist.all_reduce(x)                       |ALL_REDUCE|
    work = dist.all_gather(…, async_op=True)  |IN_FLIGHT …………………|
    work.wait()                                                  |ALL_GATHER|

    torch.distributed              by the functions' own names, work.wait()
    functional collectives         DTensor's, tensor parallel; waited for by wait_tensor
    deepspeed.comm                 ZeRO's gathers and reductions; work.wait(); what is left of
                                   the gradients' reduction after a backward is one REDUCE_GRAD

A span of a collective is the time for which the caller was held up, on a GPU the one its stream
was. What an outer one is made of is not timed again. A function that was imported by its own
name (``from torch.distributed import all_reduce``) is not seen.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from serried.action import ActionKind
from serried.runtime.recorder.clock import Mark
from serried.runtime.recorder.patches import Patch, Work, Wrap
from serried.runtime.recorder.torch_private import AsyncTensor, functional

GATHERS, SCATTERS = ActionKind.ALL_GATHER, ActionKind.REDUCE_SCATTER
COLLECTIVES = {
    "all_reduce": ActionKind.ALL_REDUCE,
    "broadcast": ActionKind.BROADCAST,
    "all_gather": GATHERS,
    "all_gather_single": GATHERS,
    "all_gather_into_tensor": GATHERS,
    "reduce_scatter": SCATTERS,
    "reduce_scatter_single": SCATTERS,
    "reduce_scatter_tensor": SCATTERS,
    "all_to_all": ActionKind.ALL_TO_ALL,
    "all_to_all_single": ActionKind.ALL_TO_ALL,
}
"""Functions of torch.distributed and what they are recorded as."""

KINDRED = {
    "barrier": ActionKind.ALL_REDUCE,
    "monitored_barrier": ActionKind.ALL_REDUCE,
    "reduce": ActionKind.ALL_REDUCE,
    "gather": GATHERS,
    "all_gather_object": GATHERS,
    "gather_object": GATHERS,
    "scatter": ActionKind.BROADCAST,
    "broadcast_object_list": ActionKind.BROADCAST,
    "scatter_object_list": ActionKind.BROADCAST,
    "_broadcast_coalesced": ActionKind.BROADCAST,
}
"""Further functions in which a rank waits for others, as the nearest collective; the last is how
DDP hands buffers out before a forward."""

FUNCTIONAL = {
    **COLLECTIVES,
    **{
        f"{name}_autograd": COLLECTIVES[name] for name in ("all_gather_single", "all_to_all_single")
    },
    "reduce_scatter_single_autograd": SCATTERS,
    "all_gather_tensor": GATHERS,
    "all_gather_tensor_autograd": GATHERS,
    "reduce_scatter_tensor_autograd": SCATTERS,
    "all_reduce_coalesced": ActionKind.ALL_REDUCE,
    "all_gather_single_coalesced": GATHERS,
    "all_gather_into_tensor_coalesced": GATHERS,
    "reduce_scatter_single_coalesced": SCATTERS,
    "reduce_scatter_tensor_coalesced": SCATTERS,
}
"""Functions of torch's functional collectives, by the names of all versions."""

DEEPSPEED = {
    **COLLECTIVES,
    "reduce": ActionKind.REDUCE_GRAD,
    "allgather_fn": GATHERS,
    "reduce_scatter_fn": SCATTERS,
    "all_gather_coalesced": GATHERS,
    "all_reduce_coalesced": ActionKind.ALL_REDUCE,
}
"""Functions of deepspeed.comm; an all-reduce inside a backward is one of gradients."""

Flight = tuple[ActionKind, Mark]
"""What is on its way, and since when."""


class Exchanges:
    """Times collectives by ``mark`` and gives each to ``keep``: kind, start and end."""

    def __init__(
        self,
        mark: Callable[[], Mark],
        keep: Callable[[ActionKind, Mark, Mark], None],
        work: Work,
    ) -> None:
        self._mark, self._keep, self._work = mark, keep, work
        self._flights: WeakKeyDictionary[Any, Flight] = WeakKeyDictionary()
        self._tensors: dict[int, Flight] = {}
        """What functional collectives return, by storage, which views of it share."""

    def begin_step(self) -> None:
        """Forgets what nobody waited for."""
        self._tensors.clear()

    def patches(self) -> list[Patch]:
        """Returns a patch of each function that there is, of DeepSpeed's where it is loaded."""
        found = [
            *self._of(dist, {**COLLECTIVES, **KINDRED}),
            Patch(dist.Work, "wait", self._waited_for),
        ]
        if functional is not None:
            found += self._of(functional, FUNCTIONAL)
            found.append(Patch(functional, "wait_tensor", self._tensor_waited_for))
        if deepspeed := sys.modules.get("deepspeed.comm"):
            of_gradients = {"all_reduce", "all_reduce_coalesced"}
            found += self._of(deepspeed, DEEPSPEED, of_gradients)
        engine = getattr(sys.modules.get("deepspeed.runtime.engine"), "DeepSpeedEngine", None)
        if hasattr(engine, "allreduce_gradients"):
            reduces = self.timed(ActionKind.REDUCE_GRAD)
            found.append(Patch(engine, "allreduce_gradients", reduces))
        return found

    def timed(
        self,
        kind: ActionKind,
        *,
        needs: Callable[..., bool] | None = None,
        in_backward: ActionKind | None = None,
    ) -> Wrap:
        """Times a function: as ``in_backward`` inside one, and not at all where ``needs`` denies.

        Code that torch compiles keeps its own collectives, and is not seen.
        """
        work, mark, keep = self._work, self._mark, self._keep
        is_compiling = torch.compiler.is_compiling

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(original)
            def call(*args: Any, **options: Any) -> Any:
                if is_compiling() or work.is_exchange:
                    return original(*args, **options)
                if needs is not None and not needs(*args, **options):
                    return original(*args, **options)
                what = in_backward if in_backward and work.is_backward else kind
                start = mark()
                work.is_exchange = True
                try:
                    done = original(*args, **options)
                finally:
                    work.is_exchange = False
                if done is None or not self._takes_off(done, (what, start)):
                    keep(what, start, mark())
                return done

            return call

        return wrap

    def _of(
        self, owner: Any, kinds: dict[str, ActionKind], of_gradients: set[str] | None = None
    ) -> list[Patch]:
        patches = []
        for name, kind in kinds.items():
            if hasattr(owner, name):
                reduces = ActionKind.REDUCE_GRAD if name in (of_gradients or ()) else None
                patches.append(Patch(owner, name, self.timed(kind, in_backward=reduces)))
        return patches

    def _takes_off(self, done: Any, flight: Flight) -> bool:
        """Notes what a collective returned that has only begun; tells whether it has."""
        if isinstance(done, dist.Work):
            self._flights[done] = flight
            if self._work.is_backward:
                self._work.when_launched()
        elif isinstance(done, list) and done:
            return self._takes_off(done[-1], flight)  # coalesced: the last one's wait is all's
        elif AsyncTensor is not None and isinstance(done, AsyncTensor):
            self._tensors[_storage(done)] = flight
        elif hasattr(done, "wait") and not isinstance(done, torch.Tensor):
            done.wait = self._landing(flight, done.wait)
        else:
            return False
        return True

    def _waited_for(self, original: Callable[..., Any]) -> Callable[..., Any]:
        flights, work = self._flights, self._work

        def wait(handle: Any, *args: Any, **options: Any) -> Any:
            if not flights or work.is_exchange:
                return original(handle, *args, **options)
            flight = flights.pop(handle, None)
            if flight is None:
                return original(handle, *args, **options)
            return self._landing(flight, original)(handle, *args, **options)

        return wait

    def _tensor_waited_for(self, original: Callable[..., Any]) -> Callable[..., Any]:
        tensors, work = self._tensors, self._work

        @wraps(original)
        def wait_tensor(tensor: Any) -> Any:
            if torch.compiler.is_compiling() or work.is_exchange:
                return original(tensor)
            flight = tensors.pop(_storage(tensor), None) if tensors else None
            if flight is None:
                return original(tensor)
            return self._landing(flight, original)(tensor)

        return wait_tensor

    def _landing(self, flight: Flight, wait: Callable[..., Any]) -> Callable[..., Any]:
        """Returns ``wait``, which when called keeps the flight until then and the wait itself."""

        def call(*args: Any, **options: Any) -> Any:
            kind, began = flight
            start = self._mark()
            self._work.is_exchange = True
            try:
                return wait(*args, **options)
            finally:
                self._work.is_exchange = False
                self._keep(ActionKind.IN_FLIGHT, began, start)
                self._keep(kind, start, self._mark())

        return call


def _storage(tensor: Any) -> int:
    """Returns what tells one storage from another, of the tensor or of what it stands for."""
    place: int = getattr(tensor, "elem", tensor).untyped_storage()._cdata
    return place
