"""A run beside its plan: which constant was wrong, planned and measured, and what it costs a step.

planned step 205 ms, measured 231 ms: +12.7%; most wrong was message from rank to rank, 400 us
planned and 1.90 ms measured, which alone makes +19.0 ms
"""

from __future__ import annotations

from typing import Any

from serried.finding import Sentence, said
from serried.plan.retime.constants import ConstantChange, PlanError
from serried.plan.retime.retimed import RetimedStep
from serried.units import duration_text
from serried.views.explain.plain import wrap
from serried.views.plan.retimed_text import signed
from serried.views.sentences import say, tell
from serried.views.table import Table

SCHEMA = "serried.plan-error/1"
CONSTANTS = {
    "forward": said("forward of a microbatch on a stage"),
    "input_grad": said("its backward, of the input"),
    "weight_grad": said("its backward, of the weights"),
    "hop": said("message from rank to rank"),
    "gap": said("pause between computations"),
    "sums": said("sum of gradients"),
    "around": said("data, optimizer, Python"),
}
"""Constants of a plan, as they are called."""
LEAST_SHARE = 0.005
"""Share of a step that a constant must cost to be called wrong."""


def error_verdict(found: PlanError) -> Sentence:
    """Says how far the step was from its plan, and which constant was wrong."""
    told: dict[str, object] = {
        "planned": _text(found.planned_s),
        "measured": _text(found.measured_s),
        "share": round(found.more_s / found.planned_s, 3) + 0.0,  # no -0.0%
    }
    largest = found.changes[0]
    if max(abs(largest.more_s), abs(found.rest_s)) < LEAST_SHARE * found.planned_s:
        return said(
            "planned step {planned}, measured {measured}: {share:+.1%}; no constant was wrong",
            **told,
        )
    if abs(found.rest_s) > abs(largest.more_s):
        return said(
            "planned step {planned}, measured {measured}: {share:+.1%}; no constant alone explains "
            "most of it ({rest}): several together, or single delays, as from other programs",
            rest=signed(found.rest_s),
            **told,
        )
    return said(
        "planned step {planned}, measured {measured}: {share:+.1%}; most wrong was {constant}, "
        "{had} planned and {has} measured, which alone makes {more}",
        constant=CONSTANTS[largest.name],
        had=_text(largest.planned_s),
        has=_text(largest.measured_s),
        more=signed(largest.more_s),
        **told,
    )


def interval_line(found: PlanError, planned: RetimedStep) -> Sentence:
    """Says whether the measured step lies in the plan's interval."""
    low, high = planned.interval
    if low <= found.measured_s <= high:
        return said(
            "the measured step lies within the plan's interval, {low} to {high}",
            low=_text(low),
            high=_text(high),
        )
    return said(
        "the measured step lies outside the plan's interval, {low} to {high}, in which nine of ten "
        "lie",
        low=_text(low),
        high=_text(high),
    )


def error_parts(
    found: PlanError, planned: RetimedStep, *, columns: int, lang: str = "en"
) -> list[str | Table]:
    """Returns the verdict, the interval, and a row for each constant, the most wrong first."""
    head = (error_verdict(found), interval_line(found, planned))
    lines = [line for each in head for line in wrap(say(each, lang), columns)]
    return [*lines, "", error_table(found, lang=lang)]


def error_table(found: PlanError, *, lang: str = "en") -> Table:
    """Returns a row for each constant: planned, measured, and what it alone does to the step."""
    rows = Table()
    for word in (said("constant"), said("planned"), said("measured"), said("of the step")):
        rows.add_column(say(word, lang), justify="left" if not rows.columns else "right")
    for each in found.changes:
        values = (_text(each.planned_s), _text(each.measured_s), signed(each.more_s))
        rows.add_row(say(CONSTANTS[each.name], lang), *values)
    rows.add_row(tell("what no single one explains", lang), "", "", signed(found.rest_s))
    values = (_text(found.planned_s), _text(found.measured_s), signed(found.more_s))
    rows.add_row(tell("step", lang), *values)
    return rows


def error_document(
    found: PlanError, planned: RetimedStep, run: str, *, lang: str = "en"
) -> dict[str, Any]:
    """Returns the ``serried.plan-error/1`` document; times are in seconds."""
    return {
        "schema": SCHEMA,
        "verdict": say(error_verdict(found), lang),
        "run": run,
        "planned_s": found.planned_s,
        "interval_s": list(planned.interval),
        "measured_s": found.measured_s,
        "constants": [_change(each) for each in found.changes],
        "rest_s": found.rest_s,
    }


def _change(each: ConstantChange) -> dict[str, Any]:
    return {
        "name": each.name,
        "planned_s": each.planned_s,
        "measured_s": each.measured_s,
        "more_s": each.more_s,
    }


def _text(seconds: float) -> str:
    return duration_text(seconds * 1e9)
