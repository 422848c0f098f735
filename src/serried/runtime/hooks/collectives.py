"""Hooks around collectives: who blocks is timed, who only begins is timed until it is waited for.

    dist.all_reduce(x)                       |ALL_REDUCE|
    work = dist.all_gather(…, async_op=True)  |IN_FLIGHT …………………|
    work.wait()                                                  |ALL_GATHER|

    torch.distributed              by the functions' own names, work.wait()
    functional collectives         DTensor's, tensor parallel; waited for by wait_tensor
    FSDP2                          unshard and the wait for it, the reduction of gradients
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
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from serried.action import ActionKind
from serried.runtime.hooks.moved_bytes import Mover, of_functional, of_library
from serried.runtime.recorder.patches import Patch, Wrap
from serried.runtime.recorder.torch_private import (
    AsyncTensor,
    fsdp_collectives,
    fsdp_group,
    functional,
    storage_of,
)
from serried.runtime.recorder.tracer import Mark, Tracer
from serried.trace.model.traffic import CollectiveMove

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


class Flight(NamedTuple):
    """Says what is on its way, since when, and what it moves."""

    kind: ActionKind
    began: Mark
    moves: tuple[CollectiveMove, ...]


class Exchanges:
    """Times collectives for a tracer, as parts of the computation that they are called in."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer, self._work = tracer, tracer.work
        self._flights: WeakKeyDictionary[Any, Flight] = WeakKeyDictionary()
        self._is_noted = False
        """Whether what a collective moves is noted that is not done yet."""
        self._tensors: dict[int, Flight] = {}
        """What functional collectives return, by storage, which views of it share."""

    def begin_step(self) -> None:
        """Forgets what nobody waited for."""
        self._tensors.clear()

    def patches(self) -> list[Patch]:
        """Returns a patch of each function that there is, of DeepSpeed's where it is loaded."""
        found = [
            *self._of(dist, {**COLLECTIVES, **KINDRED}, moved=of_library),
            Patch(dist.Work, "wait", self._waited_for),
        ]
        if functional is not None:
            found += self._of(functional, FUNCTIONAL, moved=of_functional)
            found.append(Patch(functional, "wait_tensor", self._tensor_waited_for))
        if deepspeed := sys.modules.get("deepspeed.comm"):
            of_gradients = {"all_reduce", "all_reduce_coalesced"}
            found += self._of(deepspeed, DEEPSPEED, of_gradients=of_gradients)
        engine = getattr(sys.modules.get("deepspeed.runtime.engine"), "DeepSpeedEngine", None)
        if hasattr(engine, "allreduce_gradients"):
            reduces = self.timed(ActionKind.REDUCE_GRAD)
            found.append(Patch(engine, "allreduce_gradients", reduces))
        return [*found, *self._of_fsdp()]

    def timed(
        self,
        kind: ActionKind,
        *,
        needs: Callable[..., bool] | None = None,
        in_backward: ActionKind | None = None,
        moved: Mover | None = None,
    ) -> Wrap:
        """Times a function: as ``in_backward`` inside one, and not at all where ``needs`` denies.

        ``moved`` says the bytes of a call, which are noted also within another exchange: that is
        one span, and is made of several collectives. Code that torch compiles keeps its own
        collectives, and is not seen.
        """
        work = self._work
        is_compiling = torch.compiler.is_compiling

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            def timed(*args: Any, **options: Any) -> Any:
                # An outer exchange is one span: what a coalesced or functional one calls, and
                # what the trainer times as a whole, would be counted twice.
                if work.is_exchange:
                    return original(*args, **options)
                if needs is not None and not needs(*args, **options):
                    return original(*args, **options)
                what = in_backward if in_backward and work.is_backward else kind
                return self._spanned(what, original, args, options)

            noted = timed if moved is None else self._noted(timed, moved)

            @wraps(original)
            def call(*args: Any, **options: Any) -> Any:
                return (original if is_compiling() else noted)(*args, **options)

            return call

        return wrap

    def _noted(self, timed: Callable[..., Any], moved: Mover) -> Callable[..., Any]:
        """Returns ``timed`` with the bytes of each call noted before, while spans are kept."""
        tracer, work = self._tracer, self._work

        def noted(*args: Any, **options: Any) -> Any:
            if not tracer.is_on or self._is_noted:
                return timed(*args, **options)
            if move := moved(args, options):
                work.moves.append(move)
            # What a collective calls by other names of the library's is a part of it.
            self._is_noted = True
            try:
                return timed(*args, **options)
            finally:
                self._is_noted = False

        return noted

    def _spanned(
        self,
        kind: ActionKind,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> Any:
        """Calls a function and keeps its span; of one that only begins, when it is waited for."""
        tracer, work = self._tracer, self._work
        start = tracer.mark()
        work.is_exchange = True
        try:
            done = original(*args, **options)
        finally:
            work.is_exchange = False
        # A handle means that it has only begun: its span comes when that is waited for.
        if done is not None and self._takes_off(done, Flight(kind, start, tuple(work.moves))):
            work.moves.clear()
        elif tracer.is_on:
            tracer.keep(kind, start, tracer.mark(), work.stage, work.microbatch)
            if work.moves:
                tracer.keep_moves()
        return done

    def _of(
        self,
        owner: Any,
        kinds: dict[str, ActionKind],
        *,
        moved: Callable[[str, ActionKind], Mover | None] | None = None,
        of_gradients: set[str] | None = None,
    ) -> list[Patch]:
        patches = []
        for name, kind in kinds.items():
            # Another torch may lack some of them.
            if hasattr(owner, name):
                reduces = ActionKind.REDUCE_GRAD if name in (of_gradients or ()) else None
                mover = moved(name, kind) if moved else None
                wrap = self.timed(kind, in_backward=reduces, moved=mover)
                patches.append(Patch(owner, name, wrap))
        return patches

    def _of_fsdp(self) -> list[Patch]:
        """Returns the patches of FSDP2, where this torch has it as expected."""
        if fsdp_group is None or fsdp_collectives is None:
            return []
        return [
            Patch(fsdp_group, "unshard", self.timed(GATHERS, needs=_is_to_gather)),
            Patch(fsdp_group, "wait_for_unshard", self.timed(GATHERS, needs=_is_gathering)),
            Patch(fsdp_collectives, "foreach_reduce", self.timed(SCATTERS)),
        ]

    def _takes_off(self, done: Any, flight: Flight) -> bool:
        """Notes what a collective returned that has only begun; tells whether it has."""
        if isinstance(done, dist.Work):
            self._flights[done] = flight
            if self._work.is_backward:
                self._work.when_launched()
        elif isinstance(done, list) and done:
            return self._takes_off(done[-1], flight)  # coalesced: the last one's wait is all's
        elif AsyncTensor is not None and isinstance(done, AsyncTensor):
            self._tensors[storage_of(done)] = flight
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
            flight = tensors.pop(storage_of(tensor), None) if tensors else None
            if flight is None:
                return original(tensor)
            return self._landing(flight, original)(tensor)

        return wait_tensor

    def _landing(self, flight: Flight, wait: Callable[..., Any]) -> Callable[..., Any]:
        """Returns ``wait``, which when called keeps the flight until then and the wait itself."""

        tracer, work = self._tracer, self._work

        def call(*args: Any, **options: Any) -> Any:
            kind, began, moves = flight
            start = tracer.mark()
            work.is_exchange = True
            try:
                return wait(*args, **options)
            finally:
                work.is_exchange = False
                if tracer.is_on:
                    place = work.stage, work.microbatch
                    tracer.keep(ActionKind.IN_FLIGHT, began, start, *place)
                    tracer.keep(kind, start, tracer.mark(), *place)
                    if moves:
                        work.moves[:0] = moves
                        tracer.keep_moves()

        return call


def _is_to_gather(group: Any, *args: Any, **options: Any) -> bool:
    return group._all_gather_result is None and not group.is_unsharded


def _is_gathering(group: Any, *args: Any, **options: Any) -> bool:
    return group._all_gather_result is not None


class CollectiveHooks:
    """Hooks collectives alone, for a trainer that says the rest of its work itself."""

    def __init__(self, tracer: Tracer) -> None:
        self.are_in = False
        self._work = tracer.work
        self._work.begin(-1, -1)
        self._exchanges = Exchanges(tracer)
        self._patches = self._exchanges.patches()

    def put_in(self) -> None:
        """Puts them into the libraries."""
        for patch in self._patches:
            patch.put_in()
        self.are_in = True

    def take_out(self) -> None:
        """Takes them out again; at once or twice."""
        if self.are_in:
            for patch in reversed(self._patches):
                patch.take_out()
        self.are_in = False

    def begin_step(self) -> None:
        """Forgets what the step before left: it belongs to no computation of this one."""
        self._work.reset()
        self._work.begin(-1, -1)
        self._exchanges.begin_step()

    def close(self) -> None:
        """Does nothing more: all are out."""
