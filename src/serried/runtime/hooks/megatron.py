"""Hooks into Megatron-core's pipeline schedules: actions of every microbatch and virtual stage.

    schedules.forward_step(…)              3F2     stage = chunk x pp + rank of the pipeline
    schedules.backward_step(…)             3B2
    P2PCommunicator._communicate(…)        3SEND_F2, 3RECV_F2, 3SEND_B2, 3RECV_B2
    DistributedDataParallel.finish_grad_sync    REDUCE_GRAD, what is left to wait for
    combined_forward_backward_step(…)      3OVERLAP_F_B2, or 3F2 and 3B2 where it does only one

Megatron's messages do not say whose they are, so tensors carry that: what a forward returns is
sent on as its output, and a receive is named when a forward or a backward takes what it brought.
The combined step of ``overlap_moe_expert_parallel_comm`` is one span under the numbers of its
forward; what it sends from within itself, before its tensors are labelled, is not recorded.

Source: megatron-core 0.16.1, core/pipeline_parallel/schedules.py, p2p_communication.py and
combined_1f1b.py.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist

from serried import frameworks
from serried.action import ActionKind
from serried.errors import InputError
from serried.frameworks import Sizes
from serried.mesh import Layout
from serried.runtime.recorder.patches import Patch
from serried.runtime.recorder.tracer import Mark, Tracer

_SCHEDULES = "megatron.core.pipeline_parallel.schedules"
_MESSAGES = "megatron.core.pipeline_parallel.p2p_communication"
_COMBINED = "megatron.core.pipeline_parallel.combined_1f1b"
_GRADIENTS = "megatron.core.distributed.distributed_data_parallel"
_STATE = "megatron.core.parallel_state"
_OWNER, _ARRIVAL = "_serried_owner", "_serried_arrival"


class _Arrival:
    """Holds when a rank waited for a message, and for whose."""

    def __init__(self, start: Mark, end: Mark, peer: int) -> None:
        self.start, self.end, self.peer = start, end, peer


class _Request:
    """Stands for a receive that is waited for later, which is then its time."""

    def __init__(self, request: Any, arrival: _Arrival, tracer: Tracer) -> None:
        self._request, self._arrival, self._tracer = request, arrival, tracer

    def wait(self, *args: Any, **options: Any) -> Any:
        self._arrival.start = self._tracer.mark()
        done = self._request.wait(*args, **options)
        self._arrival.end = self._tracer.mark()
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)


def megatron_patches(tracer: Tracer) -> list[Patch]:
    """Returns the patches of schedules and messages that are loaded, none without Megatron."""
    # Modules are looked up and never imported: a program without Megatron must not load it.
    schedules, messages = sys.modules.get(_SCHEDULES), sys.modules.get(_MESSAGES)
    if schedules is None or messages is None or not _is_known(schedules, messages):
        return []
    pipeline = _Pipeline(tracer)
    communicator = messages.P2PCommunicator
    patches = [
        Patch(schedules, "forward_step", pipeline.forward),
        Patch(schedules, "backward_step", pipeline.backward),
        Patch(communicator, "recv_forward", pipeline.begins),
        Patch(communicator, "_communicate", pipeline.communicates),
    ]
    combined = sys.modules.get(_COMBINED)
    if hasattr(combined, "combined_forward_backward_step"):
        patches.append(Patch(combined, "combined_forward_backward_step", pipeline.combines))
    gradients = getattr(sys.modules.get(_GRADIENTS), "DistributedDataParallel", None)
    if hasattr(gradients, "finish_grad_sync"):
        patches.append(Patch(gradients, "finish_grad_sync", pipeline.reduces))
    return patches


def megatron_layout() -> Layout | None:
    """Returns the layout of Megatron's groups where they are made and stand as Megatron's do."""
    state = sys.modules.get(_STATE)
    if state is None or not state.model_parallel_is_initialized():
        return None
    sizes = {
        "tp": state.get_tensor_model_parallel_world_size(),
        "pp": state.get_pipeline_model_parallel_world_size(),
        "cp": state.get_context_parallel_world_size(),
        "ep": state.get_expert_model_parallel_world_size(),
    }
    groups = {
        "tp": state.get_tensor_model_parallel_group(),
        "pp": state.get_pipeline_model_parallel_group(),
    }
    rank = dist.get_rank()
    # Megatron does not tell its order. The default one is tried, and holds where it puts this rank
    # into the tp and pp groups that it is really in.
    try:
        layout = frameworks.layout("megatron", Sizes(dist.get_world_size(), **sizes))
    except InputError:
        return None
    planned = layout.groups_of(rank)
    stands = all(
        sorted(dist.get_process_group_ranks(group)) in map(sorted, planned[name])
        for name, group in groups.items()
    )
    return layout if stands else None


def _is_known(schedules: ModuleType, messages: ModuleType) -> bool:
    communicator = getattr(messages, "P2PCommunicator", None)
    return hasattr(communicator, "_communicate") and all(
        hasattr(schedules, name) for name in ("forward_step", "backward_step")
    )


class _Pipeline:
    """Knows the rank's place in the pipeline and whose each tensor is."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer, self._work = tracer, tracer.work
        self._rank, self._size = 0, 1

    def begins(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Learns the rank's place: every schedule receives first, the first stage nothing."""

        def recv_forward(communicator: Any, *args: Any, **options: Any) -> Any:
            group = communicator.pp_group
            self._rank, self._size = group.rank(), group.size()
            self._work.num_stages = self._size
            return original(communicator, *args, **options)

        return recv_forward

    def forward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Times a forward, and labels what it makes."""
        place = _places(original)

        def forward_step(*args: Any, **options: Any) -> Any:
            if not torch.is_grad_enabled():  # an evaluation
                return original(*args, **options)
            given = _given(place, args, options)
            owner = self._forward_of(given("vp_stage"), given("current_microbatch"))
            self._arrived(ActionKind.RECV_F, owner, given("input_tensor"))
            made = self._computed(ActionKind.F, owner, lambda: original(*args, **options))
            _own(made[0], owner)
            return made

        return forward_step

    def backward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Times the backward of what a forward made, and labels the gradient that it gives."""
        place = _places(original)

        def backward_step(*args: Any, **options: Any) -> Any:
            given = _given(place, args, options)
            owner = next((_owner(each) for each in _tensors(given("output_tensor"))), None)
            if owner is None:
                return original(*args, **options)
            self._arrived(ActionKind.RECV_B, owner, given("output_tensor_grad"))
            gradient = self._computed(ActionKind.B, owner, lambda: original(*args, **options))
            _own(gradient, owner)
            return gradient

        return backward_step

    def combines(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Times a forward of one microbatch and a backward of another in one, or one of them."""
        place = _places(original)

        def combined_step(*args: Any, **options: Any) -> Any:
            # Without b_model the step is a forward alone, without f_model a backward alone. Which
            # microbatch a backward is of stands on the output of its forward, where it was written
            # at the end of that.
            given = _given(place, args, options)
            ahead = back = None
            if given("f_model") is not None:
                ahead = self._forward_of(given("f_model_chunk_id"), given("current_microbatch"))
                self._arrived(ActionKind.RECV_F, ahead, given("input_tensor"))
            if given("b_model") is not None:
                back = next((_owner(each) for each in _tensors(given("b_output_tensor"))), None)
            if back is not None:
                self._arrived(ActionKind.RECV_B, back, given("b_output_tensor_grad"))
            owner = ahead or back
            if owner is None:
                return original(*args, **options)
            single = ActionKind.F if ahead else ActionKind.B
            kind = ActionKind.OVERLAP_F_B if ahead and back else single
            made = self._computed(kind, owner, lambda: original(*args, **options))
            for tensors, whose in ((made[0], ahead), (made[2], back)):
                if whose is not None:
                    _own(tensors, whose)
            return made

        return combined_step

    def communicates(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Times messages; receives are kept until it is known what they were for."""

        def communicate(communicator: Any, **options: Any) -> Any:
            peers = communicator.next_rank, communicator.prev_rank
            start = self._tracer.mark()
            self._work.is_exchange = True
            try:
                prev, after, requests = original(communicator, **options)
            finally:
                self._work.is_exchange = False
            end = self._tracer.mark()
            self._sent(ActionKind.SEND_F, options.get("tensor_send_next"), start, end, peers[0])
            self._sent(ActionKind.SEND_B, options.get("tensor_send_prev"), start, end, peers[1])
            for tensor, name, peer in (
                (prev, "recv_prev", peers[1]),
                (after, "recv_next", peers[0]),
            ):
                if tensor is None:
                    continue
                # Whose it is says the step that takes it; until then its times stand on the tensor.
                # One that is still on its way is timed anew, by the wait for its request.
                arrival = _Arrival(start, end, peer)
                setattr(tensor, _ARRIVAL, arrival)
                if isinstance(requests, dict) and name in requests:
                    requests[name] = _Request(requests[name], arrival, self._tracer)
            return prev, after, requests

        return communicate

    def reduces(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Times what is left of the gradients' reduction when the schedule has ended."""

        def finish_grad_sync(*args: Any, **options: Any) -> Any:
            start = self._tracer.mark()
            self._work.is_exchange = True
            try:
                return original(*args, **options)
            finally:
                self._work.is_exchange = False
                self._tracer.keep_since(start, ActionKind.REDUCE_GRAD, self._rank)

        return finish_grad_sync

    def _forward_of(self, chunk: int | None, microbatch: int | None) -> tuple[int, int]:
        stage = (chunk or 0) * self._size + self._rank
        return stage, -1 if microbatch is None else microbatch

    def _computed(
        self, kind: ActionKind, owner: tuple[int, int], compute: Callable[[], Any]
    ) -> Any:
        start = self._tracer.mark()
        self._work.is_pipeline = True
        self._work.begin(*owner)
        try:
            return compute()
        finally:
            self._work.is_pipeline = False
            self._work.end()
            self._tracer.keep_since(start, kind, *owner)

    def _sent(self, kind: ActionKind, tensor: Any, start: Mark, end: Mark, peer: int) -> None:
        owner = _owner(tensor)
        if owner is not None and self._tracer.is_on:
            self._tracer.keep(kind, start, end, *owner, peer)

    def _arrived(self, kind: ActionKind, owner: tuple[int, int], tensors: Any) -> None:
        for tensor in _tensors(tensors):
            arrival = getattr(tensor, _ARRIVAL, None)
            if arrival is not None and self._tracer.is_on:
                delattr(tensor, _ARRIVAL)
                self._tracer.keep(kind, arrival.start, arrival.end, *owner, arrival.peer)


def _places(function: Callable[..., Any]) -> dict[str, int]:
    """Returns at which place each parameter stands."""
    return {name: place for place, name in enumerate(inspect.signature(function).parameters)}


def _given(
    places: dict[str, int], args: tuple[Any, ...], options: dict[str, Any]
) -> Callable[[str], Any]:
    def given(name: str) -> Any:
        place = places.get(name, len(args))
        return args[place] if place < len(args) else options.get(name)

    return given


def _tensors(given: Any) -> Iterator[torch.Tensor]:
    for each in given if isinstance(given, list | tuple) else [given]:
        if isinstance(each, torch.Tensor):
            yield each


def _own(made: Any, owner: tuple[int, int]) -> None:
    for tensor in _tensors(made):
        setattr(tensor, _OWNER, owner)


def _owner(tensor: Any) -> tuple[int, int] | None:
    owner: tuple[int, int] | None = getattr(tensor, _OWNER, None)
    return owner
