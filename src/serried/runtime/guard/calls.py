"""Calls of torch that a guard writes down: process groups' methods, waits, functional collectives.

    dist.all_reduce(x)   ─┐                                       begins
    from … import send    ├─> ProcessGroup.allreduce, .send, …    ├─ returned
    a pipeline's batch   ─┘   Work.wait                           └─ ended
    DTensor               ──> functional.all_reduce, .wait_tensor
    DDP's reducer         ──> C++ alone: seen by the group's own count of collectives

Methods of the class are wrapped, so that a function which a program imported by its own name is
seen too. Collectives are numbered by torch's own count of the group, as its flight recorder does:
a count that holds those that Python never saw. Of gloo's count messages are taken off again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

from serried.diagnose.evidence.records.guard_file import DTYPES, OPS, GuardedGroup, packed_place
from serried.runtime.guard.operations import OperationLog
from serried.runtime.hooks.collectives import FUNCTIONAL
from serried.runtime.hooks.moved_bytes import functional_group
from serried.runtime.recorder.patches import Patch, Wrap
from serried.runtime.recorder.torch_private import (
    AsyncTensor,
    PipelineStageBase,
    functional,
    group_by_name,
    storage_of,
)


class _Call(NamedTuple):
    """Says which operation a method is, and where its tensors stand among its arguments."""

    op: str
    given: int | None = None
    made: int | None = None
    peer: int | None = None


METHODS = {
    "allreduce": _Call("all_reduce", 0, 0),
    "allreduce_coalesced": _Call("all_reduce", 0, 0),
    "broadcast": _Call("broadcast", 0, 0),
    "reduce": _Call("reduce", 0, 0),
    "allgather": _Call("all_gather", 1, 0),
    "allgather_coalesced": _Call("all_gather", 1, 0),
    "_allgather_base": _Call("all_gather_into_tensor", 1, 0),
    "all_gather_single": _Call("all_gather_into_tensor", 1, 0),
    "allgather_into_tensor_coalesced": _Call("all_gather_into_tensor", 1, 0),
    "all_gather_single_coalesced": _Call("all_gather_into_tensor", 1, 0),
    "gather": _Call("gather", 1, 0),
    "scatter": _Call("scatter", 1, 0),
    "reduce_scatter": _Call("reduce_scatter", 1, 0),
    "_reduce_scatter_base": _Call("reduce_scatter_tensor", 1, 0),
    "reduce_scatter_single": _Call("reduce_scatter_tensor", 1, 0),
    "reduce_scatter_tensor_coalesced": _Call("reduce_scatter_tensor", 1, 0),
    "reduce_scatter_single_coalesced": _Call("reduce_scatter_tensor", 1, 0),
    "alltoall": _Call("all_to_all", 1, 0),
    "alltoall_base": _Call("all_to_all_single", 1, 0),
    "all_to_all_single": _Call("all_to_all_single", 1, 0),
    "barrier": _Call("barrier"),
    "monitored_barrier": _Call("monitored_barrier"),
    "send": _Call("send", 0, None, 1),
    "recv": _Call("recv", None, 0, 1),
    "recv_anysource": _Call("recv", None, 0),
}
"""Methods of ProcessGroup, by the names of all versions of torch."""
_UNCOUNTED = frozenset({"send", "recv", "recv_anysource", "monitored_barrier"})
"""Those that are no collectives in the order of a group: gloo counts them among these, and a
flight recorder does not."""

_DTYPE_CODES = {
    getattr(torch, name): code for code, name in enumerate(DTYPES) if hasattr(torch, name)
}
_MOST_KNOWN = 4096
"""Messages and tensors that are remembered until they are met again."""


class TorchCalls:
    """Writes the operations of this process into ``log`` while its patches are in."""

    def __init__(self, log: OperationLog) -> None:
        self._log: OperationLog | None = log
        self._groups: WeakKeyDictionary[Any, _Known] = WeakKeyDictionary()
        self._meeting = threading.RLock()  # the guard's thread meets groups, and so does a step
        self._works: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._tensors: dict[int, int] = {}
        self._places: dict[int, int] = {}
        self.num_failed = 0
        """Calls that could not be written down, for whatever reason."""
        self._patches = [*self._of_groups(), *self._of_functions(), *self._of_stages()]

    def put_in(self) -> None:
        """Wraps what torch has."""
        for patch in self._patches:
            patch.put_in()

    def take_out(self) -> None:
        """Gives all back; what others have wrapped since writes nothing any more."""
        self._log = None
        for patch in reversed(self._patches):
            patch.take_out()

    def moved(self) -> tuple[int, ...]:
        """Returns what grows as the rank goes on: operations, and torch's counts of collectives.

        The counts of collectives that Python did not see are written down on the way.
        """
        log = self._log
        if log is None:
            return ()
        counts = []
        for group, known in list(self._groups.items()):
            counts.append(_count_of(group))
            seq = counts[-1] - known.messages
            if seq > known.seq and not known.in_message:
                known.seq = seq
                log.count(known.number, seq)
        return log.num_begun, log.num_ended, log.step, *counts

    def meet(self, group: Any) -> None:
        """Learns of a group that no call of Python's has gone over yet."""
        if self._log is not None and group is not None:
            self._known(group, self._log)

    # ------------------------------------------------------------------ process groups

    def _of_groups(self) -> list[Patch]:
        found = [
            Patch(dist.ProcessGroup, name, self._method(name, call))
            for name, call in METHODS.items()
            if hasattr(dist.ProcessGroup, name)
        ]
        return [*found, Patch(dist.Work, "wait", self._waited_for)]

    def _method(self, name: str, call: _Call) -> Wrap:
        op, is_counted = OPS.index(call.op), name not in _UNCOUNTED

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(original)
            def method(group: Any, *args: Any, **options: Any) -> Any:
                log = self._log
                if log is None:
                    return original(group, *args, **options)
                number = self._begun(log, group, op, call, args, is_counted=is_counted)
                if is_counted or (known := self._groups.get(group)) is None:
                    done = original(group, *args, **options)
                else:
                    done = known.message(original, group, *args, **options)
                log.returned()
                if isinstance(done, dist.Work):
                    self._works[done] = number
                else:
                    log.end(number)
                return done

            return method

        return wrap

    def _begun(
        self,
        log: OperationLog,
        group: Any,
        op: int,
        call: _Call,
        args: tuple[Any, ...],
        *,
        is_counted: bool,
    ) -> int:
        """Writes an operation; whatever it is called with, the program goes on."""
        try:
            known = self._groups.get(group) or self._known(group, log)
            given, made = call.given, call.made
            numel_in, tensor = _held(_at(args, given))
            if made == given:
                numel_out = numel_in
            else:
                numel_out, other = _held(_at(args, made))
                tensor = tensor if tensor is not None else other
            dtype = _DTYPE_CODES.get(tensor.dtype, 0) if tensor is not None else 0
            if is_counted:
                known.seq = seq = _count_of(group) - known.messages + 1
                log.count(known.number, seq)
                return log.begin(op, known.number, seq, -1, numel_in, numel_out, dtype)
            peer = _at(args, call.peer)
            peer = known.ranks[int(peer)] if peer is not None else -1
            place = self._places.pop(id(tensor), 0)
            return log.begin(op, known.number, -1, peer, numel_in, numel_out, dtype, place)
        except Exception:  # an odd call is no reason to end a training
            self.num_failed += 1
            return log.begin(op, 0)

    def _known(self, group: Any, log: OperationLog) -> _Known:
        with self._meeting:
            known = self._groups.get(group)
            if known is None:
                ranks = tuple(dist.get_process_group_ranks(group))
                words = str(group.group_desc), str(dist.get_backend(group))
                number = log.add_group(GuardedGroup(str(group.group_name), ranks, *words))
                known = self._groups[group] = _Known(number, ranks)
            return known

    def _waited_for(self, original: Callable[..., Any]) -> Callable[..., Any]:
        works = self._works

        def wait(work: Any, *args: Any, **options: Any) -> Any:
            log = self._log
            number = works.pop(work, 0) if log is not None else 0
            if log is None or not number:
                return original(work, *args, **options)
            log.wait(number)
            done = original(work, *args, **options)
            log.end(number)
            return done

        return wait

    # ------------------------------------------------------------------ functional collectives

    def _of_functions(self) -> list[Patch]:
        if functional is None:
            return []
        found = [
            Patch(functional, name, self._function(name))
            for name in FUNCTIONAL
            if hasattr(functional, name)
        ]
        return [*found, Patch(functional, "wait_tensor", self._tensor_waited_for)]

    def _function(self, name: str) -> Wrap:
        plain = name.removesuffix("_autograd").removesuffix("_coalesced")
        op = OPS.index(_FUNCTIONS.get(plain, "collective"))

        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(original)
            def call(*args: Any, **options: Any) -> Any:
                log = self._log
                group = None
                if log is not None and not torch.compiler.is_compiling():
                    group = _group_of(functional_group(name, args, options))
                if log is None or group is None:
                    return original(*args, **options)
                call = _Call("", 0, None)
                number = self._begun(log, group, op, call, args, is_counted=True)
                done = original(*args, **options)
                log.returned()
                last = done[-1] if isinstance(done, list) and done else done
                if AsyncTensor is not None and isinstance(last, AsyncTensor):
                    if len(self._tensors) > _MOST_KNOWN:
                        self._tensors.clear()
                    self._tensors[storage_of(last)] = number
                else:
                    log.end(number)
                return done

            return call

        return wrap

    def _tensor_waited_for(self, original: Callable[..., Any]) -> Callable[..., Any]:
        tensors = self._tensors

        @wraps(original)
        def wait_tensor(tensor: Any) -> Any:
            log = self._log
            if log is None or not tensors or torch.compiler.is_compiling():
                return original(tensor)
            number = tensors.pop(storage_of(tensor), 0)
            if not number:
                return original(tensor)
            log.wait(number)
            done = original(tensor)
            log.end(number)
            return done

        return wait_tensor

    # ------------------------------------------------------------------ torch's pipelines

    def _of_stages(self) -> list[Patch]:
        if PipelineStageBase is None:
            return []
        backward = {
            "get_fwd_recv_ops": False,
            "get_fwd_send_ops": False,
            "get_bwd_recv_ops": True,
            "get_bwd_send_ops": True,
        }
        return [
            Patch(PipelineStageBase, name, self._labelled(is_backward))
            for name, is_backward in backward.items()
            if hasattr(PipelineStageBase, name)
        ]

    def _labelled(self, is_backward: bool) -> Wrap:
        def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(original)
            def operations(stage: Any, microbatch: int, *args: Any, **options: Any) -> Any:
                found = original(stage, microbatch, *args, **options)
                if self._log is not None:
                    place = packed_place(stage.stage_index, microbatch, is_backward=is_backward)
                    if len(self._places) > _MOST_KNOWN:
                        self._places.clear()
                    self._places.update((id(each.tensor), place) for each in found)
                return found

            return operations

        return wrap


class _Known:
    """Holds what is known of a group: its number in the file, its ranks, its last collective."""

    __slots__ = ("in_message", "messages", "number", "ranks", "seq")

    def __init__(self, number: int, ranks: tuple[int, ...]) -> None:
        self.number, self.ranks, self.seq = number, ranks, -1
        self.messages = self.in_message = 0

    def message(self, original: Callable[..., Any], group: Any, *args: Any, **options: Any) -> Any:
        """Issues a message, and learns by how much torch counts it among the collectives."""
        before = _count_of(group)
        self.in_message += 1
        try:
            return original(group, *args, **options)
        finally:
            self.messages += _count_of(group) - before
            self.in_message -= 1


_FUNCTIONS = {
    "all_reduce": "all_reduce",
    "broadcast": "broadcast",
    "all_gather_single": "all_gather_into_tensor",
    "all_gather_tensor": "all_gather_into_tensor",
    "all_gather_into_tensor": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
    "reduce_scatter_tensor": "reduce_scatter_tensor",
    "all_to_all_single": "all_to_all_single",
}


def _group_of(given: Any) -> Any:
    """Returns the process group that a functional collective was given in one of its ways."""
    if isinstance(given, dist.ProcessGroup):
        return given
    if isinstance(given, str):
        return group_by_name(given)
    mesh, dim = given if isinstance(given, tuple) and len(given) == 2 else (given, 0)
    return mesh.get_group(dim) if hasattr(mesh, "get_group") else None


def _count_of(group: Any) -> int:
    """Returns torch's own count of a group's collectives; -1 where it keeps none."""
    try:
        seq: int = group._get_sequence_number_for_group()
    except (AttributeError, RuntimeError):
        return -1
    return seq


def _at(args: tuple[Any, ...], place: int | None) -> Any:
    return args[place] if place is not None and len(args) > place else None


def _held(held: Any) -> tuple[int, Any]:
    """Returns how many elements an argument holds, and its first tensor.

    Most hold one tensor, which is met first: this is called for every collective.
    """
    kind = type(held)
    if kind is list and len(held) == 1:
        held = held[0]
    if isinstance(held, torch.Tensor):
        return held.numel(), held
    if not isinstance(held, (list, tuple)):
        return -1 if held is None else 0, None
    within = [_held(each) for each in held]
    first = next((tensor for _, tensor in within if tensor is not None), None)
    return sum(numel for numel, _ in within), first
