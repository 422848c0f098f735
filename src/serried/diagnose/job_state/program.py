"""What a rank does by its stack: the collective or message it waits in, and the user's line.

    innermost  send (torch/distributed/distributed_c10d.py:2753)     the operation
               train (train.py:124)                                  the user's line
    outermost  main (train.py:204)

>>> frames = (Frame("send", "torch/distributed/distributed_c10d.py", 2753),
...           Frame("train", "train.py", 124))
>>> operation_of(frames), site_of(frames)
('send', ('train.py', 124))
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile

from serried.diagnose.evidence.stacks.stack import Frame

Site = tuple[str, int]
"""A file's name without its folders, and a line."""

_OPERATIONS = {
    "isend": "send",
    "irecv": "recv",
    "all_gather_single": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
    **{
        name: name
        for name in (
            "send",
            "recv",
            "all_reduce",
            "all_gather",
            "all_gather_into_tensor",
            "all_to_all",
            "all_to_all_single",
            "barrier",
            "broadcast",
            "gather",
            "monitored_barrier",
            "reduce",
            "reduce_scatter",
            "reduce_scatter_tensor",
            "scatter",
        )
    },
}
_ENGINE = re.compile(r"_engine_run_backward$")
_COMMUNICATION = re.compile(r"_engine_run_backward$|c10d::|gloo::|p?nccl[A-Z]")
"""Functions in which a stack waits for other ranks, C++ of torch's and its libraries' included."""
_MESSAGES = re.compile(r"torch/distributed/(?:pipelining/|distributed_c10d)")
_FUNCTIONAL = re.compile(r"torch/distributed/_functional_collectives")
_OF_GLOO = re.compile(r"c10d::ProcessGroupGloo::(Send|Recv)Work::wait")
_GPU = re.compile(r"torch/cuda/|\bcu(?:da)?[A-Z]|libcuda|[ .:]synchronize$")
RECORDED_AS = {
    "all_gather_into_tensor": ("all_gather", "_all_gather_base"),
    # gloo carries it out as an all-reduce, and its dumps call it so (torch 2.13).
    "reduce_scatter_tensor": ("reduce_scatter", "_reduce_scatter_base", "all_reduce"),
    "reduce_scatter": ("all_reduce",),
}
"""What dumps call a collective of Python, beside its own name and ``_NAME_base``."""
_BEFORE = re.compile(
    r"(?<![a-z])(?:prev(?:ious)?|left)(?![a-z])|upstream|recv_forward|send_backward", re.IGNORECASE
)
_AFTER = re.compile(
    r"(?<![a-z])(?:ne?xt|right)(?![a-z])(?! *\()|downstream|send_forward|recv_backward",
    re.IGNORECASE,
)


def operation_of(frames: tuple[Frame, ...]) -> str | None:
    """Returns the collective or message that a stack, innermost frame first, waits in; or None."""
    message = None
    for frame in frames:
        if frame.is_users:
            return message
        if "distributed" in frame.file and frame.function in _OPERATIONS:
            return _OPERATIONS[frame.function]
        if native := _OF_GLOO.match(frame.function):
            message = native[1].lower()
        elif frame.file.endswith(".py"):
            message = None  # of torch's own code the user's line tells no peer
    return None


def is_in_communication(frames: tuple[Frame, ...]) -> bool:
    """Tells whether a stack stands inside torch's communication, or a backward that may hold it.

    >>> is_in_communication((Frame("_wait_batch_p2p", "torch/distributed/pipelining/x.py", 9),))
    True
    """
    for frame in frames:
        if frame.is_users:
            return False
        if "torch/distributed/" in frame.file or _COMMUNICATION.match(frame.function):
            return True
    return False


def is_in_engine(frames: tuple[Frame, ...]) -> bool:
    """Tells whether the innermost frame is torch's backward, whose C++ may issue collectives.

    >>> is_in_engine((Frame("_engine_run_backward", "torch/autograd/graph.py", 979),))
    True
    """
    return bool(frames) and _ENGINE.match(frames[0].function) is not None


def is_in_functional(frames: tuple[Frame, ...]) -> bool:
    """Tells whether a stack waits in a functional collective, as tensor parallelism's are.

    Its wait stands behind the call, and does not say which collective it is for.

    >>> is_in_functional((Frame("wait_tensor", "torch/distributed/_functional_collectives.py", 1),))
    True
    """
    inner = takewhile(lambda frame: not frame.is_users, frames)
    return any(_FUNCTIONAL.search(frame.file) for frame in inner)


def waits_for_messages(frames: tuple[Frame, ...]) -> bool:
    """Tells whether the innermost frame is a wait of torch's pipelines, or of its communication.

    Where a stack shows C++ as well, that has to wait too.

    >>> waits_for_messages((Frame("_wait_batch_p2p", "torch/distributed/pipelining/x.py", 9),))
    True
    >>> waits_for_messages((Frame("write", "torch/distributed/checkpoint/filesystem.py", 9),))
    False
    """
    native = list(takewhile(lambda frame: not frame.file.endswith(".py"), frames))
    inner = frames[len(native)] if len(native) < len(frames) else None
    if inner is None or not _MESSAGES.search(inner.file):
        return False
    return not native or any(_COMMUNICATION.match(frame.function) for frame in native)


def is_elsewhere(frames: tuple[Frame, ...]) -> bool:
    """Tells whether a stack stands in something other than communication or a wait for the GPU.

    >>> is_elsewhere((Frame("wait", "threading.py", 331), Frame("main", "train.py", 175)))
    True
    >>> is_elsewhere((Frame("synchronize", "torch/cuda/__init__.py", 9),))
    False
    """
    return bool(frames) and not is_in_communication(frames) and not waits_for_gpu(frames)


def waits_for_gpu(frames: tuple[Frame, ...]) -> bool:
    """Tells whether a stack stands in a call of CUDA's above the user's innermost line.

    >>> waits_for_gpu((Frame("synchronize", "torch/cuda/__init__.py", 9), Frame("f", "train.py")))
    True
    """
    until = next((place for place, frame in enumerate(frames) if frame.is_users), len(frames))
    return any(_GPU.search(f"{each.file} {each.function}") for each in frames[:until])


def site_of(frames: tuple[Frame, ...]) -> Site | None:
    """Returns the innermost line of the user's own code, or None."""
    for frame in frames:
        if frame.is_users:
            return frame.file.rsplit("/", 1)[-1], frame.line
    return None


def towards(text: str) -> int | None:
    """Returns -1 or 1 where a line of code names the stage before or after; None where it does not.

    So do the names that pipelines give to what they do: ``recv_forward``, ``send_backward``.

    >>> towards("dist.send(x.grad, prev)"), towards("dist.recv(g, nxt)"), towards("send(y, dst)")
    (-1, 1, None)
    >>> towards("send_forward_recv_backward"), towards("x = next(batches)")
    (1, None)
    """
    before, after = bool(_BEFORE.search(text)), bool(_AFTER.search(text))
    if before == after:
        return None
    return -1 if before else 1


def directions(
    sites: Mapping[tuple[Site, str], set[int]],
    last_stage: int,
    told: Mapping[tuple[Site, str], int],
) -> dict[tuple[Site, str], int]:
    """Returns to which neighbouring stage the messages of each line go: -1 before, 1 after.

    ``sites`` holds, by line and ``send`` or ``recv``, the stages that were seen there; ``told``
    where to a line's own code or function says that they go. The first stage has only a stage
    after it, the last only one before; of the other lines, those of the forward come before those
    of the backward in a program that is written in the order in which it runs.
    """
    found: dict[tuple[Site, str], int] = {}
    for (site, op), stages in sites.items():
        if (site, op) in told:
            found[site, op] = told[site, op]
        elif 0 in stages and last_stage not in stages:
            found[site, op] = 1
        elif last_stage in stages and 0 not in stages:
            found[site, op] = -1
    known = [(site, _PHASES[op, way]) for (site, op), way in found.items()]
    for site, op in sites:
        if (site, op) not in found:
            lines = [(at[1], phase) for at, phase in known if at[0] == site[0]]
            phase = _phase(site[1], op, lines)
            if phase is not None:
                found[site, op] = 1 if phase in (1, 2) else -1
    return found


_PHASES = {("recv", -1): 0, ("send", 1): 1, ("recv", 1): 2, ("send", -1): 3}
"""The order in which a stage does its messages: the forward's receive and send, then back."""


def _phase(line: int, op: str, known: list[tuple[int, int]]) -> int | None:
    """Returns the phase of a line by those before and behind it; None where that leaves two."""
    possible = {1, 3} if op == "send" else {0, 2}
    for other, phase in known:
        possible = {p for p in possible if p == phase or (p < phase) == (line < other)}
    return possible.pop() if len(possible) == 1 else None
