"""Draws schedules that can be, and costs that are exact."""

from __future__ import annotations

from hypothesis import strategies as st

from serried.errors import InputError
from serried.pipeline import ENTRIES, Costs, Links, Request, Schedule, generate

NAMES = sorted(ENTRIES)


@st.composite
def requests(draw: st.DrawFn, *, most_ranks: int = 6, most_microbatches: int = 14) -> Request:
    m = draw(st.integers(1, most_microbatches))
    return Request(
        draw(st.integers(1, most_ranks)),
        m,
        draw(st.sampled_from((None, None, 1, 2, 3, 4))),
        draw(st.none() | st.integers(1, m)),
    )


@st.composite
def schedules(draw: st.DrawFn) -> tuple[Schedule, Request]:
    """Draws a schedule by name, with sizes that it takes, raised until it does."""
    name = draw(st.sampled_from(NAMES))
    asked = draw(requests())
    for request in (asked, _rounded(asked)):
        try:
            return generate(name, request), request
        except InputError:
            continue
    raise AssertionError(f"{name} takes neither {asked} nor {_rounded(asked)}")


def _rounded(asked: Request) -> Request:
    """Returns sizes that every schedule takes: even ranks, and 2p to 4p microbatches."""
    p = 2 * -(-asked.num_ranks // 2)
    return Request(p, p * (2 + asked.num_microbatches % 3))


times = st.integers(0, 9) | st.fractions(0, 9, max_denominator=6)


@st.composite
def costs(draw: st.DrawFn) -> Costs:
    return Costs(
        draw(times),
        draw(times),
        draw(times),
        overlap=draw(st.none() | times),
        recompute=draw(st.just(0) | times),
        is_recompute_early=draw(st.booleans()),
        links=Links(draw(times), is_blocking=draw(st.booleans())),
        all_reduce=draw(st.just(0) | times),
        optimizer=draw(st.just(0) | times),
        is_optimizer_synchronous=draw(st.booleans()),
    )
