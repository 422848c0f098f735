"""What a rank was exchanging, and with whom, when the others did not answer: in words of its own.

    gloo    [/…/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:6865: Connection reset by …
    told    it lost the connection to another rank in all_reduce of group dp [1 3]

Which exchange it was is read from the calls that the error came through, so that it costs nothing
while all goes well. A peer is named where a message has one; who of a group is at fault is not
known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import FrameType

import torch.distributed as dist

from serried.errors import SerriedError
from serried.finding import Sentence, said

OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "barrier")
"""Words in the names of torch's functions that say what a collective is."""
# gloo: "Timed out waiting 8000ms for recv operation to complete".
LATE = re.compile(r"[Tt]imed out|timeout")
# gloo: "Connection closed by peer [10.0.0.2]:41234", "writev [10.0.0.2]:41234: Broken pipe".
GONE = re.compile(r"closed by peer|reset by peer|Broken pipe|Read error|writev|refused")
# Errors of gloo begin with a source file of it, or say "Application timeout caused pair closure".
GLOO = re.compile(r"/gloo/|gloo|pair closure")

Groups = Mapping[str, dist.ProcessGroup]


class MessageLost(RuntimeError):
    """Says that a message between two ranks did not come or leave, and why, in torch's words."""

    def __init__(self, what: Sentence, peer: int | None, reason: BaseException) -> None:
        super().__init__(str(reason))
        self.what, self.peer = what, peer


def exchange_lost(error: BaseException, groups: Groups, timeout_s: float) -> SerriedError | None:
    """Returns what ``error`` means to a user; None where it is not of an exchange between ranks.

    ``groups`` are the rank's own by the names that they have in the run.
    """
    for each in _causes(error):
        if isinstance(each, MessageLost):
            return _told(str(each), each.what, each.peer, timeout_s)
    root = list(_causes(error))[-1]
    # A RuntimeError may be anything: it is of an exchange where its type or gloo's words say so.
    if not (isinstance(root, RuntimeError) and (_is_of_torch(root) or GLOO.search(str(root)))):
        return None
    return _told(str(root), _operation(root, groups), None, timeout_s)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error, what caused it, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _is_of_torch(error: BaseException) -> bool:
    """Tells whether torch itself says that communication failed: of NCCL, or of a store."""
    return isinstance(error, dist.DistBackendError | dist.DistNetworkError)


def _told(words: str, what: Sentence, peer: int | None, timeout_s: float) -> SerriedError:
    is_late, is_gone = LATE.search(words), GONE.search(words)
    if is_late and peer is not None:
        return SerriedError(
            "it waited {seconds:g} s for rank {peer} in {what}",
            seconds=timeout_s,
            peer=peer,
            what=what,
        )
    if is_late:
        return SerriedError(
            "it waited {seconds:g} s for other ranks in {what}", seconds=timeout_s, what=what
        )
    if is_gone and peer is not None:
        return SerriedError("it lost the connection to rank {peer} in {what}", peer=peer, what=what)
    if is_gone:
        return SerriedError("it lost the connection to another rank in {what}", what=what)
    return SerriedError("{what} failed: {reason}", what=what, reason=_reason(words))


def _reason(words: str) -> str:
    """Returns the library's first sentence, without the place in its source."""
    first = re.sub(r"^\[[^]]*\]\s*", "", words.strip()).splitlines()
    return first[0].partition(". ")[0].rstrip(".") if first else ""


def _operation(error: BaseException, groups: Groups) -> Sentence:
    """Returns which collective of which group the error came out of, as far as the calls tell."""
    # torch's error names no group, but the calls that it came through hold it: the innermost
    # function named after a collective says which, and the first local that is a group of ours says
    # where.
    name: str | None = None
    for frame in _frames(error):
        function = frame.f_code.co_name
        name = name or next((each for each in OPERATIONS if each in function), None)
        for local in ("group", "group_name", "pg", "process_group"):
            found = _named(frame.f_locals.get(local), groups)
            if found:
                group, ranks = found
                return said(
                    "{name} of group {group} [{ranks}]",
                    name=name or said("an exchange"),
                    group=group,
                    ranks=ranks,
                )
    return said("{name} of all ranks", name=name) if name else said("an exchange")


def _frames(error: BaseException) -> Iterator[FrameType]:
    """Yields the calls that the error came through, innermost first."""
    trace, frames = error.__traceback__, []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    yield from reversed(frames)


def _named(held: object, groups: Groups) -> tuple[str, str] | None:
    """Returns the name and ranks of a group, given itself or by torch's name for it."""
    for name, group in groups.items():
        if held is group or (isinstance(held, str) and held == group.group_name):
            return name, " ".join(map(str, dist.get_process_group_ranks(group)))
    return None
