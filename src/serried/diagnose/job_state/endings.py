"""How ranks ended, as far as their logs and the launcher say: of themselves, or after others.

A process that the launcher closes (SIGTERM), that fails inside a collective because a peer went
away, or that torch aborts after a time-out, has not ended of itself: at that moment it waited. What
ended of itself is a root.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from serried.diagnose.evidence.quote import Quote
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.program import operation_of

_CLOSED = (-15, -2, 143, 130)
"""What a launcher ends the rest with."""
_KILLED = -9
_ABORTED = -6
_OF_WAITING = ("timeout", "nccl_remote")
"""Signs of a rank that waited, or whose peer went away: torch's watchdog then aborts it."""
_OF_JOB = ("own_log", "first_failure", "other_failure")
"""Signs that name a rank of the job, however it ended."""
_TOLD_TO_END = ("KeyboardInterrupt", "SignalException")
"""What a process raises that somebody stops from outside (Ctrl-C): it has not ended of itself."""
_CAUGHT = frozenset({"gloo_closed", "gloo_timeout"})
"""Words of an exception that a peer's end or a limit raised, wherever the stack stood."""


@dataclass
class Endings:
    """Holds what signs say of the ends of ranks."""

    dead: dict[int, Quote] = field(default_factory=dict)
    """Ranks that ended of themselves, each with the line that says so."""
    failed_in: dict[int, tuple[Frame, ...]] = field(default_factory=dict)
    """By rank, the stack, innermost first, in which a peer's end or a time-out caught it."""
    failed_quotes: dict[int, Quote] = field(default_factory=dict)
    gave_up: dict[int, str] = field(default_factory=dict)
    """By rank, ``send`` or ``recv`` where gloo says for which of them it waited too long."""
    expected_bytes: dict[int, int] = field(default_factory=dict)
    """By rank, how many bytes it expected where more came."""
    arrived_bytes: dict[int, int] = field(default_factory=dict)
    """By rank, how many came there."""
    fingerprints: dict[int, Sign] = field(default_factory=dict)
    """By rank, what torch's check says of two sides of a collective."""
    known: set[int] = field(default_factory=set)
    """Ranks that the job has: their own logs are there, or the launcher lists them."""
    listed: set[int] = field(default_factory=set)
    """Ranks of one host that its launcher lists, which leaves out who ended with code 0; empty
    where one of them failed by anything but a peer's end."""

    def left_in_order(self, rank: int, world_size: int) -> bool:
        """Tells whether a rank ended with code 0 while all others lost their connection to a peer.

        Nobody but the few that the launcher does not list can be that peer.
        """
        others = set(range(world_size)) - self.listed
        return bool(self.failed_in) and rank in others and 2 * len(others) < world_size


def endings_of(signs: Iterable[Sign]) -> Endings:
    """Returns how ranks ended, by the signs of their logs."""
    found = Endings()
    codes: dict[int, Sign] = {}
    waited: set[int] = set()
    signs = list(signs)
    caught = {
        (sign.quote.source, sign.quote.line): sign.facts.get("way")
        for sign in signs
        if sign.kind in _CAUGHT
    }
    for sign in signs:
        rank = sign.speaker.global_rank
        if rank is None:
            continue
        if sign.kind in _OF_WAITING:
            waited.add(rank)
        if sign.kind in _OF_JOB:
            found.known.add(rank)
        if sign.kind == "exception":
            place = sign.quote.source, sign.quote.line
            _exception(found, rank, sign, place in caught)
            if rank in found.failed_in and isinstance(way := caught.get(place), str):
                found.gave_up.setdefault(rank, way)
        elif sign.kind == "gloo_size":
            expected, arrived = sign.facts.get("expected"), sign.facts.get("arrived")
            found.expected_bytes[rank] = expected if isinstance(expected, int) else 0
            found.arrived_bytes[rank] = arrived if isinstance(arrived, int) else 0
        elif sign.kind == "fingerprints":
            found.fingerprints.setdefault(rank, sign)
        elif sign.kind == "first_failure" or (
            sign.kind == "other_failure" and sign.code != _KILLED
        ):
            # A kill of one that is not the first comes from a launcher whose SIGTERM did nothing.
            codes.setdefault(rank, sign)
    for rank, sign in codes.items():
        is_signal = sign.code is not None and sign.code < 0 and sign.code not in _CLOSED
        is_aborted = sign.code == _ABORTED and (
            rank in waited or rank in found.failed_in or rank in found.expected_bytes
        )
        if is_signal and not is_aborted:
            found.dead.setdefault(rank, sign.quote)
    if all(_is_of_the_end(found, rank, sign) for rank, sign in codes.items()):
        found.listed |= set(codes)
    return found


def _is_of_the_end(found: Endings, rank: int, sign: Sign) -> bool:
    """Tells whether a launcher's line of a rank is of its only host, and of no end of its own."""
    is_closed = sign.code in _CLOSED or rank in found.failed_in
    return sign.facts.get("local_rank") == rank and is_closed


def _exception(found: Endings, rank: int, sign: Sign, is_caught: bool) -> None:
    frames = sign.facts.get("frames")
    rows = frames if isinstance(frames, tuple) else ()
    stack = tuple(Frame(function, file, line) for file, line, function in reversed(rows))
    if operation_of(stack) is not None or (stack and is_caught):
        found.failed_in.setdefault(rank, stack)
        found.failed_quotes.setdefault(rank, sign.quote)
    elif stack and rank not in found.failed_in and sign.facts.get("name") not in _TOLD_TO_END:
        found.dead.setdefault(rank, sign.quote)
