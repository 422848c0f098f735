"""Closed forms: what the literature computes without simulating, and where that is exact.

    p ranks, m microbatches, v chunks a rank, N microbatches a group, r the rank
    f, i, w   forward, input half, weight half of one chunk; b = i + w a whole backward
    FB        an overlapped pair; c the latency between ranks

A form is silent outside its region; inside, tests hold it against the simulation exactly. Idle
time is the makespan less a rank's work, window idle the longest window less that work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from serried.pipeline.costs import Costs, Duration, Links, Number
from serried.pipeline.schedule import Schedule


class Quantity(Enum):
    """Says what a closed form computes."""

    IDLE = "most idle time of any rank"
    WINDOW_IDLE = "idle time within the longest window"
    PEAK = "most activations on any rank, counted to W"


@dataclass(frozen=True)
class ClosedForm:
    """Holds one result: the quantity, its value, the formula, and the region where it is exact."""

    quantity: Quantity
    value: Number
    formula: str
    region: str


@dataclass(frozen=True)
class _Sizes:
    p: int
    m: int
    v: int
    N: int
    f: Number
    i: Number
    w: Number
    b: Number
    FB: Number
    c: Number


@dataclass(frozen=True)
class _Form:
    quantity: Quantity
    formula: str
    value: Callable[[_Sizes], Number]
    region: str = "always"
    holds: Callable[[_Sizes], bool] = lambda s: True


def closed_forms(schedule: Schedule, costs: Costs) -> list[ClosedForm]:
    """Returns the forms that are exact for this schedule and these costs.

    >>> from serried.pipeline.schedules.gpipe import gpipe
    >>> [(form.formula, form.value) for form in closed_forms(gpipe(4, 8), Costs())]
    [('(p - 1)(f + b + 2c)', 9), ('m', 8)]
    """
    sizes = _sizes(schedule, costs)
    forms = _FORMS.get(schedule.name, ())
    return [
        ClosedForm(form.quantity, form.value(sizes), form.formula, form.region)
        for form in forms
        if sizes and form.holds(sizes)
    ]


def _sizes(schedule: Schedule, costs: Costs) -> _Sizes | None:
    """Returns the symbols, or None where stages differ or more than work and latency counts."""
    # The formulas know one number for each of these. Costs that say more (a list per stage, an
    # embedding, an optimizer, blocking messages) differ from costs of only these numbers.
    numbers = [
        _one(value)
        for value in (
            costs.forward,
            costs.input_grad,
            costs.weight_grad,
            0 if costs.backward is None else costs.backward,
            0 if costs.overlap is None else costs.overlap,
            costs.links.latency,
        )
    ]
    f, i, w, whole, pair, c = (0 if number is None else number for number in numbers)
    only_these = replace(
        Costs(), forward=f, input_grad=i, weight_grad=w, links=replace(Links(), latency=c),
        backward=costs.backward, overlap=costs.overlap,
    )  # fmt: skip
    if None in numbers or costs != only_these:
        return None
    b = i + w if costs.backward is None else whole
    p, m = schedule.num_ranks, schedule.num_microbatches
    v = schedule.placement.stages_per_rank
    together = f + b if costs.overlap is None else pair
    return _Sizes(p, m, v, schedule.group or m, f, i, w, b, together, c)


def _one(duration: Duration) -> Number | None:
    return None if isinstance(duration, Sequence) else duration


def _free(s: _Sizes) -> bool:
    return s.c == 0


def _gains(s: _Sizes) -> bool:
    """Tells whether a pair takes no longer than its two halves one after the other."""
    return s.f + s.b >= s.FB


def _apart(one: Number, other: Number) -> Number:
    return max(one, other) - min(one, other)


IDLE, WINDOW, PEAK = Quantity.IDLE, Quantity.WINDOW_IDLE, Quantity.PEAK

_FORMS: dict[str, tuple[_Form, ...]] = {
    "gpipe": (
        _Form(IDLE, "(p - 1)(f + b + 2c)", lambda s: (s.p - 1) * (s.f + s.b + 2 * s.c)),
        _Form(PEAK, "m", lambda s: s.m),
    ),
    "1f1b": (
        _Form(IDLE, "(p - 1)(f + b)", lambda s: (s.p - 1) * (s.f + s.b), "c = 0", _free),
        _Form(
            IDLE,
            "(p - 1)(f + b) + 2c (k - floor(k / p)), k = m + p - 2",
            lambda s: (s.p - 1) * (s.f + s.b) + 2 * s.c * (s.m + s.p - 2 - (s.m + s.p - 2) // s.p),
            "c > 0, m >= p",
            lambda s: s.c > 0 and s.m >= s.p,
        ),
        _Form(PEAK, "min(m, p)", lambda s: min(s.m, s.p)),
    ),
    "eager-1f1b": (
        _Form(
            IDLE,
            "(p - 1)(f + b + 2c)",
            lambda s: (s.p - 1) * (s.f + s.b + 2 * s.c),
            "2c <= f + b",
            lambda s: 2 * s.c <= s.f + s.b,
        ),
        _Form(PEAK, "min(m, 2p - 1)", lambda s: min(s.m, 2 * s.p - 1)),
    ),
    "interleaved-1f1b": (
        _Form(
            IDLE,
            "(p - 1)(f + b)",
            lambda s: (s.p - 1) * (s.f + s.b),
            "c = 0, groups full or at least p",
            lambda s: s.c == 0 and s.p <= s.N <= s.m and (s.m % s.N == 0 or s.m % s.N >= s.p),
        ),
        _Form(
            PEAK,
            "min(mv, 2(p - 1) + (v - 1)N + 1)",
            lambda s: min(s.m * s.v, 2 * (s.p - 1) + (s.v - 1) * s.N + 1),
        ),
    ),
    "looped-bfs": (
        _Form(
            IDLE,
            "(p - 1)(f + b)",
            lambda s: (s.p - 1) * (s.f + s.b),
            "c = 0, m >= p",
            lambda s: s.c == 0 and s.m >= s.p,
        ),
        _Form(PEAK, "mv", lambda s: s.m * s.v),
    ),
    "zb-h1": (
        _Form(
            IDLE,
            "(p - 1)(f + i - w)",
            lambda s: (s.p - 1) * (s.f + s.i - s.w),
            "c = 0, w <= min(f, i), m >= p",
            lambda s: s.c == 0 and s.w <= min(s.f, s.i) and s.m >= s.p,
        ),
        _Form(PEAK, "min(m, p)", lambda s: min(s.m, s.p)),
    ),
    "zb-h2": (
        _Form(
            WINDOW,
            "(p - 1)(f + i - 2w)",
            lambda s: (s.p - 1) * (s.f + s.i - 2 * s.w),
            "c = 0, w <= min(f, i)",
            lambda s: s.c == 0 and s.w <= min(s.f, s.i),
        ),
        _Form(PEAK, "2p - 1", lambda s: 2 * s.p - 1),
    ),
    "interleaved-zb": (
        _Form(
            IDLE,
            "(p - 1)(f + i - w)",
            lambda s: (s.p - 1) * (s.f + s.i - s.w),
            "c = 0, w <= min(f, i), N >= p",
            lambda s: s.c == 0 and s.w <= min(s.f, s.i) and s.p <= s.N,
        ),
        _Form(
            PEAK,
            "(v - 1)N + p",
            lambda s: (s.v - 1) * s.N + s.p,
            "N >= p",
            lambda s: s.p <= s.N,
        ),
    ),
    "zbv": (
        _Form(
            IDLE,
            "(p - 1) max(i, 2(i - w))",
            lambda s: (s.p - 1) * max(s.i, 2 * (s.i - s.w)),
            "c = 0, w <= f <= i, m >= 2p - 1",
            lambda s: s.c == 0 and s.w <= s.f <= s.i and s.m >= 2 * s.p - 1,
        ),
        _Form(
            WINDOW,
            "2(p - 1)(i - w)",
            lambda s: 2 * (s.p - 1) * (s.i - s.w),
            "c = 0, w <= f <= i, m >= 2p - 1",
            lambda s: s.c == 0 and s.w <= s.f <= s.i and s.m >= 2 * s.p - 1,
        ),
        _Form(PEAK, "2p", lambda s: 2 * s.p, "m >= 2p - 1", lambda s: s.m >= 2 * s.p - 1),
    ),
    "dualpipe": (
        _Form(
            IDLE,
            "(p/2 - 1)(FB + b - 3w)",
            lambda s: (s.p // 2 - 1) * (s.FB + s.b - 3 * s.w),
            "c = 0, f = i, w <= i, FB <= f + b",
            lambda s: _free(s) and s.f == s.i and s.w <= s.i and s.b == s.i + s.w and _gains(s),
        ),
        _Form(PEAK, "p + 1", lambda s: s.p + 1),
    ),
    "dualpipev": (
        _Form(
            IDLE,
            "(p - 1)(FB + b - 3w)",
            lambda s: (s.p - 1) * (s.FB + s.b - 3 * s.w),
            "c = 0, f = i, w <= i, FB <= f + b",
            lambda s: _free(s) and s.f == s.i and s.w <= s.i and s.b == s.i + s.w and _gains(s),
        ),
        _Form(PEAK, "2p + 1", lambda s: 2 * s.p + 1),
    ),
    "chimera": (
        _Form(
            IDLE,
            "(p - 2)(max(f, b) + (m/p - 1)|f - b|)",
            lambda s: (s.p - 2) * (max(s.f, s.b) + (s.m // s.p - 1) * _apart(s.f, s.b)),
            "c = 0",
            _free,
        ),
        _Form(PEAK, "p", lambda s: s.p),
    ),
    "hanayo": (
        _Form(
            IDLE,
            "2(p - 1)(max(f, b) + (m/p - 1)|f - b|)",
            lambda s: 2 * (s.p - 1) * (max(s.f, s.b) + (s.m // s.p - 1) * _apart(s.f, s.b)),
            "c = 0, p divides m",
            lambda s: s.c == 0 and s.m % s.p == 0,
        ),
        _Form(PEAK, "pv", lambda s: s.p * s.v, "m >= p", lambda s: s.m >= s.p),
    ),
    "v-half": (
        _Form(PEAK, "2 min(m, floor((p + 2) / 2))", lambda s: 2 * min(s.m, (s.p + 2) // 2)),
    ),
    "v-min": (_Form(PEAK, "2 min(m, floor((p + 4) / 3))", lambda s: 2 * min(s.m, (s.p + 4) // 3)),),
    "1f1b-v": (
        _Form(PEAK, "2 min(m, floor(2p / 3) + 1)", lambda s: 2 * min(s.m, 2 * s.p // 3 + 1)),
    ),
    "group-interleaved": (
        _Form(
            PEAK, "p + (v - 1)N", lambda s: s.p + (s.v - 1) * s.N, "m >= p", lambda s: s.m >= s.p
        ),
    ),
}
