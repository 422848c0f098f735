"""Plans of sends and receives, as a schedule prints them, played until they stand: a deadlock.

rank 0   0SendF0 0SendF1 0RecvB0      each send waits for its receive: both ranks stay
rank 1   1SendB0 1RecvF0              in a send, and neither comes to the other's
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.errors import listed
from serried.finding import said

_ORDER = said(
    "break the circle: let one side receive first, or issue both at once (batch_isend_irecv), and "
    "validate the schedule with serried schedule"
)
Action = tuple[int, str, int]
"""A stage, what it does (``send_f``, ``recv_b``, or a computation), and its microbatch."""


def circle_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields ranks that each wait in a send or receive whose partner is in another one."""
    signs = {
        sign.speaker.rank: sign for sign in told.of("actions") if sign.speaker.rank is not None
    }
    plans = {rank: _actions(sign) for rank, sign in signs.items()}
    stuck = _stuck(plans)
    if len(stuck) < 2:
        return
    verdict = said(
        "the order of sends and receives is a deadlock: {calls}; each waits for what the other "
        "would do next",
        calls=listed(
            [
                said("rank {rank} waits in {action}", rank=rank, action=_word(action))
                for rank, action in stuck.items()
            ],
            last="and",
        ),
    )
    cause = Cause(
        CauseClass.HANG,
        "pp_deadlock",
        tuple(sorted(stuck)),
        verdict,
        confidence=0.9,
        quotes=quotes(signs.values()),
        cures=(_ORDER,),
    )
    yield RankedCause(cause, Standing.MISMATCH, told.place(next(iter(signs.values()))))


def _actions(sign: Sign) -> list[Action]:
    actions = sign.facts["actions"]
    return list(actions) if isinstance(actions, tuple) else []


def _stuck(plans: Mapping[int, list[Action]]) -> dict[int, Action]:
    """Returns the action in which each rank of a deadlock stays; messages wait for one another."""
    homes = {stage: rank for rank, actions in plans.items() for stage, _, _ in actions}
    at = dict.fromkeys(plans, 0)
    moved = True
    while moved:
        moved = False
        for rank, actions in plans.items():
            if at[rank] == len(actions):
                continue
            partner = _partner(actions[at[rank]], homes)
            if partner is None:
                at[rank], moved = at[rank] + 1, True
                continue
            other, wanted = partner
            if at[other] < len(plans[other]) and plans[other][at[other]] == wanted:
                at[rank], at[other], moved = at[rank] + 1, at[other] + 1, True
    return {rank: plans[rank][place] for rank, place in at.items() if place < len(plans[rank])}


def _partner(action: Action, homes: Mapping[int, int]) -> tuple[int, Action] | None:
    """Returns whose action must meet this one, and which; None for what needs nobody known."""
    stage, name, microbatch = action
    if "_" not in name:
        return None
    way, kind = name.split("_")
    step = 1 if (way == "send") == (kind == "f") else -1
    if stage + step not in homes:
        return None
    other = "recv" if way == "send" else "send"
    return homes[stage + step], (stage + step, f"{other}_{kind}", microbatch)


def _word(action: Action) -> str:
    stage, name, microbatch = action
    way, _, kind = name.partition("_")
    return f"{stage}{way.capitalize()}{kind.upper()}{microbatch}"
