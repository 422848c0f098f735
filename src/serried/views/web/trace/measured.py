"""One recorded step for the Schedule view: a payload as a simulated schedule's, times as measured.

What stands between an action's input and its start is no schedule's doing, so its cause is of its
own, ``DELAY``; the header lists the causes in the order of their numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from serried.errors import InputError
from serried.pipeline import IdleCause
from serried.pipeline.measured import MeasuredSchedule
from serried.trace.measure.measured_step import NS_PER_UNIT, MeasuredStep, measured_step
from serried.views.web.schedule.payload import columns_of
from serried.views.web.schedule.query import MOST_CELLS
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.wire.payload import pack
from serried.views.web.wire.query import Words, read_count

DELAY = "DELAY"
CAUSES = [*(cause.name for cause in IdleCause), DELAY]


def measured_payload(named: NamedTrace, words: Words) -> bytes:
    """Returns one step of the first pipeline; without ``step`` the one of the middling window.

    Raises InputError for a step that is not there, and for one that has no picture.
    """
    steps = named.answers.windows.steps
    asked = read_count(words, "step")
    if not len(steps) or (asked is not None and asked not in steps):
        raise InputError(
            "the run has no step {step}; it has {count}, from {first} to {last}",
            step="?" if asked is None else asked,
            count=len(steps),
            first=int(steps.min(initial=0)),
            last=int(steps.max(initial=0)),
        )
    found = measured_step(named.trace, _middling(named) if asked is None else asked)
    simulation = found.simulation
    # MOST_CELLS counts microbatches of stages, each of which has a forward and a backward.
    if len(simulation.start) > 2 * MOST_CELLS:
        raise InputError(
            "step {step} holds {count} actions, more than this page draws ({most})",
            step=found.step,
            count=len(simulation.start),
            most=2 * MOST_CELLS,
        )
    header, columns = columns_of(MeasuredSchedule(simulation), [])
    # What a plan calls latency is in a recorded run any delay, so it goes under DELAY, the cause
    # behind all those of IdleCause.
    idle = header["idle"]["causes"]
    idle[DELAY] = idle.pop(IdleCause.LATENCY.name)
    cause = columns["idle:cause"]
    columns["idle:cause"] = np.where(cause == IdleCause.LATENCY, len(IdleCause), cause).astype(
        np.uint8
    )
    header |= _told(named, found)
    return pack(header, columns)


def _told(named: NamedTrace, found: MeasuredStep) -> dict[str, Any]:
    """Returns what the header says of a measured step beside its times."""
    placement, job = found.simulation.schedule.placement, named.trace.job
    steps = named.answers.windows.steps
    return {
        "kind": "measured",
        "name": named.name,
        "step": found.step,
        "steps": [int(steps.min()), int(steps.max())],
        "ranks": found.ranks.tolist(),
        "compute": job.compute,
        "schedule": job.schedule,
        "causes": CAUSES,
        "parts": max(1, placement.num_stages // placement.num_ranks),
        "options": "",
        "latency": 0,
        "latency_adds": None,
        "times": _times(named, found),
    }


def _times(named: NamedTrace, found: MeasuredStep) -> dict[str, str]:
    """Returns the fields of a plan of this run: its sizes, and a mean rank's times in ms."""
    schedule, costs = found.simulation.schedule, named.answers.costs
    chunks = schedule.placement.stages_per_rank
    times: dict[str, str] = {}
    for name in ("forward", "input_grad", "weight_grad"):
        of_stages = np.asarray(getattr(costs, name), np.float64)
        times[name] = f"{of_stages.sum() / schedule.num_ranks / NS_PER_UNIT:.4g}"
    return {
        "stages": str(schedule.num_ranks),
        "microbatches": str(schedule.num_microbatches),
        "chunks": str(chunks) if chunks > 1 else "",
        **times,
    }


def _middling(named: NamedTrace) -> int:
    """Returns the complete step whose window is the median; the first one where none is."""
    steps = sorted(named.answers.statistics.steps, key=lambda each: each.window_ns)
    return steps[len(steps) // 2].step if steps else int(named.answers.windows.steps[0])
