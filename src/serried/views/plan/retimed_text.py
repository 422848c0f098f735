"""A recorded step timed again: recorded and asked for side by side, what is assumed, how to check.

step 231 ms as recorded, 187 ms as asked (9 of 10 lie within 178 ms to 196 ms): -19.0%; what changes
most is waiting for other ranks, 84.2 ms to 40.1 ms
"""

from __future__ import annotations

from typing import Any

from serried.finding import Sentence, said
from serried.plan.retime.constants import retimed_document
from serried.plan.retime.retimed import RetimedStep, Target, retime
from serried.units import difference_text, duration_text
from serried.views.explain.plain import wrap
from serried.views.sentences import say, tell
from serried.views.table import Table

PARTS = {
    "computing": said("computation"),
    "waiting": said("waiting for other ranks"),
    "sums": said("sum of gradients"),
    "around": said("data, optimizer, Python"),
}
"""Parts of a re-timed step, by the properties that hold them."""
STEPS = 8
"""Steps of a run that checks an answer."""


def retimed_verdict(now: RetimedStep, then: RetimedStep) -> Sentence:
    """Says how long a step took and would take, and which part of it changes most."""
    low, high = then.interval
    name = max(PARTS, key=lambda part: abs(getattr(then, part) - getattr(now, part)))
    recorded = now.observed.period
    if all(getattr(then, part) == getattr(now, part) for part in PARTS):
        return said(
            "step {before} as recorded, {after} as asked: it is asked for as it was recorded",
            before=_text(recorded),
            after=_text(then.period),
        )
    return said(
        "step {before} as recorded, {after} as asked (9 of 10 lie within {low} to {high}): "
        "{share:+.1%}; what changes most is {part}, {had} to {has}",
        before=_text(recorded),
        after=_text(then.period),
        low=_text(low),
        high=_text(high),
        share=round(then.period / recorded - 1, 3) + 0.0,
        part=PARTS[name],
        had=_text(getattr(now, name)),
        has=_text(getattr(then, name)),
    )


def layout_line(step: RetimedStep, *, is_recorded: bool) -> Sentence:
    """Says the layout, schedule and microbatches of a step."""
    told: dict[str, object] = {
        "sizes": " ".join(f"{axis} {step.sizes[axis]}" for axis in ("tp", "pp", "dp")),
        "schedule": step.schedule.name,
        "chunks": step.schedule.placement.stages_per_rank,
        "times": step.num_microbatches,
        "sequences": step.sequences,
    }
    if not is_recorded:
        return said(
            "asked: {sizes}, {schedule} (stages on each rank: {chunks}), {sequences:,} x "
            "{times:,} microbatches",
            **told,
        )
    return said(
        "recorded: {sizes}, {schedule} (stages on each rank: {chunks}), {sequences:,} x "
        "{times:,} microbatches",
        **told,
    )


def again_line(now: RetimedStep) -> Sentence:
    """Says how far the run's own step is from what it recorded, timed again as it was."""
    off = round(now.period / now.observed.period - 1, 3) + 0.0  # no -0.0%
    told: dict[str, object] = {"again": _text(now.period), "off": off}
    if abs(off) <= now.error:
        return said(
            "timed again as it was, the recorded step takes {again}, {off:+.1%} off", **told
        )
    return said(
        "timed again as it was, the recorded step takes {again}, {off:+.1%} off: its ranks were "
        "held up in ways that no constant holds; record it where nothing else runs",
        **told,
    )


def retimed_parts(then: RetimedStep, *, columns: int, lang: str = "en") -> list[str | Table]:
    """Returns the verdict, both layouts, the table of parts, assumptions, and what checks it."""
    now = as_recorded(then)
    head = [
        retimed_verdict(now, then),
        layout_line(now, is_recorded=True),
        layout_line(then, is_recorded=False),
    ]
    notes = [
        again_line(now),
        *(said("assumed: {what}", what=each) for each in then.assumptions),
    ]
    lines = [line for each in head for line in wrap(say(each, lang), columns)]
    told = [line for each in notes for line in wrap(say(each, lang), columns)]
    return [*lines, "", parts_table(now, then, lang=lang), "", *told, *_checking(then, lang)]


def parts_table(now: RetimedStep, then: RetimedStep, *, lang: str = "en") -> Table:
    """Returns a row for each part of a step: as recorded, as asked, and the change."""
    rows = Table()
    rows.add_column(tell("part of a step", lang))
    for word in (said("as recorded"), said("as asked"), said("change")):
        rows.add_column(say(word, lang), justify="right")
    shown = [(say(word, lang), name) for name, word in PARTS.items()]
    for title, name in (*shown, (tell("step", lang), "period")):
        before, after = getattr(now, name), getattr(then, name)
        rows.add_row(title, _text(before), _text(after), signed(after - before))
    return rows


def as_recorded(step: RetimedStep) -> RetimedStep:
    """Returns the step of the run itself, timed again as it was."""
    return retime(step.observed, Target())


def check_command(step: RetimedStep) -> str | None:
    """Returns the command that runs the step for real; None where compute is not emulated."""
    observed, sizes = step.observed, step.sizes
    if observed.compute != "emulated":
        return None
    forward, backward = step.stage_ms
    ranks = sizes["tp"] * sizes["pp"] * sizes["dp"]
    layers = observed.num_layers if observed.says_layers else step.schedule.placement.num_stages
    chunks = step.schedule.placement.stages_per_rank
    batch = step.sequences * step.num_microbatches * sizes["dp"]
    words = [
        f"serried train --nproc {ranks} --tp {sizes['tp']} --pp {sizes['pp']}",
        f"--schedule {step.schedule.name}",
        *([f"--chunks {chunks}"] if chunks > 1 else []),
        f"--layers {layers} --microbatches {step.num_microbatches} --global-batch-size {batch}",
        f"--steps {STEPS} --compute emulated",
        f"--forward-ms {forward:.3f} --backward-ms {backward:.3f} --trace-dir runs/check",
    ]
    return " ".join(words)


def retimed_answer(step: RetimedStep) -> dict[str, Any]:
    """Returns the ``serried.retimed-step/1`` document with the command that checks it."""
    return {**retimed_document(step), "check": check_command(step)}


def _checking(step: RetimedStep, lang: str) -> list[str]:
    command = check_command(step)
    if command is None:
        return []
    # A command is copied whole, so that no width breaks it.
    return [tell("this runs it, with compute emulated:", lang), f"  {command}"]


def signed(seconds: float) -> str:
    """Returns seconds with their sign, such as +1.20 ms.

    >>> signed(0.0012), signed(-2)
    ('+1.20 ms', '-2.00 s')
    """
    return difference_text(seconds * 1e9)


def _text(seconds: float) -> str:
    return duration_text(seconds * 1e9)
