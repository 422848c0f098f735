"""What gloo's time-outs and unequal buffers tell; they hold no ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from serried.diagnose.causes.logs.collectives.job_part import SAME_PATH, part_of_job
from serried.diagnose.causes.logs.collectives.limit import NEVER_MEET
from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import CollectiveFacts, Sign
from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.whom import named
from serried.errors import listed
from serried.finding import Sentence, said


def gloo_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what gloo's time-outs and unequal buffers tell; they hold no ranks."""
    if sizes := told.of("gloo_size"):
        arrived, expected = sizes[0].facts["arrived"], sizes[0].facts["expected"]
        facts = CollectiveFacts(
            numel_in=arrived if isinstance(arrived, int) else None,
            numel_out=expected if isinstance(expected, int) else None,
        )
        verdict = said(
            "two ranks are in different collectives: {arrived:,} bytes arrived where {expected:,} "
            "were expected; the rank that aborts is only the one with the smaller buffer",
            arrived=arrived,
            expected=expected,
        )
        cause = Cause(
            CauseClass.HANG,
            "mismatch_size",
            None,
            verdict,
            0.85,
            (),
            quotes(sizes),
            (SAME_PATH, NEVER_MEET),
            collective=facts,
        )
        yield RankedCause(cause, Standing.MISMATCH, told.place(sizes[0]))
    if late := told.of("gloo_timeout"):
        limit = late[0].facts.get("ms")
        ms = limit if isinstance(limit, int) else 0
        ranks = told.ranks(late)
        who = named(ranks) if ranks else said("a rank that the log does not name")
        verdict = said(
            "{who} waited {seconds:,} s in a gloo {way}: a peer did not come; the message names "
            "neither peer nor operation",
            who=who,
            seconds=ms // 1000,
            way=listed(_ways(late), last="or"),
        )
        if not ms:
            verdict = said(
                "{who} waited in gloo until the limit: a peer did not come; the message names "
                "neither peer nor operation",
                who=who,
            )
        kind, cause_class, cures = part_of_job(told, late[0])
        cause = Cause(
            cause_class,
            kind,
            None,
            verdict,
            0.5,
            tuple(_where(told, ranks)),
            quotes(late),
            cures,
            collective=CollectiveFacts(timeout_ms=ms or None),
        )
        # A watchdog's line of the same hang names the collective, which gloo's does not.
        standing = Standing.NOTICED if told.of("timeout") else Standing.WAITS
        yield RankedCause(cause, standing, told.place(late[0]))


def _ways(late: Sequence[Sign]) -> list[str]:
    """Returns ``recv`` and ``send``, as far as time-outs tell, in the order in which they do."""
    return list(dict.fromkeys(str(sign.facts["way"]) for sign in late if sign.facts.get("way")))


def _where(told: LoggedSigns, ranks: Sequence[int]) -> Iterator[Sentence]:
    """Yields where ranks stood as the limit ran out, by their tracebacks, where these differ."""
    stood: dict[tuple[str, str], set[int]] = {}
    for sign in told.of("exception"):
        rank, place = told.rank(sign.speaker), _place(sign)
        if rank is not None and rank in ranks and place is not None:
            stood.setdefault(place, set()).add(rank)
    if len(stood) < 2:
        return
    for (call, site), those in stood.items():
        yield said("{who} stood in {call} at {site}", who=named(those), call=call, site=site)


def _place(sign: Sign) -> tuple[str, str] | None:
    """Returns the call in which a traceback ends, and the line of the user's code above it."""
    rows = sign.facts.get("frames")
    frames = (
        [Frame(name, file, line) for file, line, name in rows] if isinstance(rows, tuple) else []
    )
    at = next((n for n in reversed(range(len(frames))) if frames[n].is_users), None)
    if at is None or at + 1 == len(frames):
        return None
    users = frames[at]
    inner = frames[at + 1 :]
    call = next((each for each in inner if each.function != "wrapper"), inner[0])
    return call.function, f"{users.file.rsplit('/', 1)[-1]}:{users.line}"
