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
from serried.diagnose.waits.program import operation_of

_CLOSED = (-15, -2, 143, 130)
"""What a launcher ends the rest with."""
_KILLED = -9
_ABORTED = -6
_OF_WAITING = ("timeout", "nccl_remote")
"""Signs of a rank that waited, or whose peer went away: torch's watchdog then aborts it."""


@dataclass
class Endings:
    """Holds what signs say of the ends of ranks."""

    dead: dict[int, Quote] = field(default_factory=dict)
    """Ranks that ended of themselves, each with the line that says so."""
    failed_in: dict[int, tuple[Frame, ...]] = field(default_factory=dict)
    """By rank, the stack, innermost first, in which a peer's end or a time-out caught it."""
    failed_quotes: dict[int, Quote] = field(default_factory=dict)
    expected_bytes: dict[int, int] = field(default_factory=dict)
    """By rank, how many bytes it expected where more came."""
    fingerprints: dict[int, Sign] = field(default_factory=dict)
    """By rank, what torch's check says of two sides of a collective."""


def endings_of(signs: Iterable[Sign]) -> Endings:
    """Returns how ranks ended, by the signs of their logs."""
    found = Endings()
    codes: dict[int, Sign] = {}
    waited: set[int] = set()
    for sign in signs:
        rank = sign.speaker.global_rank
        if rank is None:
            continue
        if sign.kind in _OF_WAITING:
            waited.add(rank)
        if sign.kind == "exception":
            _exception(found, rank, sign)
        elif sign.kind == "gloo_size":
            expected = sign.facts.get("expected")
            found.expected_bytes[rank] = expected if isinstance(expected, int) else 0
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
    return found


def _exception(found: Endings, rank: int, sign: Sign) -> None:
    frames = sign.facts.get("frames")
    rows = frames if isinstance(frames, tuple) else ()
    stack = tuple(Frame(function, file, line) for file, line, function in reversed(rows))
    if operation_of(stack) is not None:
        found.failed_in.setdefault(rank, stack)
        found.failed_quotes.setdefault(rank, sign.quote)
    elif stack and rank not in found.failed_in:
        found.dead.setdefault(rank, sign.quote)
