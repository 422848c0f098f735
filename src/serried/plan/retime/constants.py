"""Which constant of a plan was wrong: each one's planned and measured value, and what it cost.

    planned step 205 ms, measured 231 ms
    hop       0.4 -> 1.9 ms    the step with this alone changed: 224 ms, +19 ms
    forward  12.0 -> 12.6 ms                                     +7 ms

The effects are of one constant at a time, so that they need not add up: what they leave of the
difference is told as the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from serried import user_file
from serried.errors import InputError
from serried.finding import said
from serried.limits import RETIMED_BYTES
from serried.plan.retime.observed import WORK, ObservedRun, SplitBackward, StageWork
from serried.plan.retime.retimed import RetimedStep, Target, exposed_sums, retime

SCHEMA = "serried.retimed-step/1"
TIMES = ("hop", "gap", "sums", "around")
_PARTS = ("layer", "fixed", "stage", "first", "last")


@dataclass(frozen=True)
class ConstantChange:
    """Says how one constant was planned and found, and what that alone does to the step."""

    name: str
    planned_s: float
    """What a microbatch takes on a stage for work, else what one hop, gap or step takes."""
    measured_s: float
    more_s: float
    """The step with this constant as measured, less the planned step."""


@dataclass(frozen=True)
class PlanError:
    """Holds how far a step is from its plan, by constant; the largest effect first."""

    planned_s: float
    measured_s: float
    changes: tuple[ConstantChange, ...]

    @property
    def more_s(self) -> float:
        """How much longer the step takes than was planned."""
        return self.measured_s - self.planned_s

    @property
    def rest_s(self) -> float:
        """What no single constant explains of it."""
        return self.more_s - sum(each.more_s for each in self.changes)


def plan_error(planned: RetimedStep, measured: ObservedRun) -> PlanError:
    """Returns which constants of a plan differ in the run that was to be like it.

    Raises InputError for a run of another pipeline than the plan's.
    """
    measured = _with_layers_of(measured, planned.observed)
    _require_alike(planned, measured)
    # The plan's own constants, as if observed in a run of its own sizes: one change at a time.
    base = _as_run(planned)
    again = retime(base, Target())
    changes = [_change(name, base, again, measured, planned) for name in (*WORK, *TIMES)]
    changes.sort(key=lambda each: -abs(each.more_s))
    return PlanError(planned.period, measured.period, tuple(changes))


def _with_layers_of(measured: ObservedRun, planned: ObservedRun) -> ObservedRun:
    """Returns the run with its work told by the plan's layers, where it does not say its own."""
    if measured.says_layers and planned.says_layers:
        return measured
    share = measured.num_layers / planned.num_layers
    exchange = measured.exchange and measured.exchange.times(share)
    return replace(
        measured,
        num_layers=planned.num_layers,
        layer=measured.layer.times(share),
        fixed=measured.fixed.times(share),
        exchange=exchange,
    )


def _require_alike(planned: RetimedStep, measured: ObservedRun) -> None:
    asked: dict[str, tuple[object, object]] = {
        **{axis: (size, measured.sizes.get(axis, 1)) for axis, size in planned.sizes.items()},
        "microbatches": (planned.num_microbatches, measured.num_microbatches),
        "sequences": (planned.sequences, measured.sequences),
        "schedule": (planned.schedule.name, measured.schedule),
        "layers": (planned.observed.num_layers, measured.num_layers),
    }
    for name, (told, found) in asked.items():
        if told != found:
            raise InputError(
                "{name} is {told} in the plan and {found} in run {run}; give the run that the "
                "plan is of",
                name=name,
                told=told,
                found=found,
                run=measured.run,
            )


def _as_run(planned: RetimedStep) -> ObservedRun:
    """Returns the plan's constants as those of a run with the plan's own sizes."""
    observed, shorter = planned.observed, 1 / planned.compute_speed
    hop = observed.hop if planned.hop_s is None else planned.hop_s + observed.gap
    works = {name: getattr(observed, name).times(shorter) for name in _PARTS}
    return replace(
        observed,
        **works,
        hop=hop,
        sizes={**observed.sizes, **planned.sizes},
        schedule=planned.schedule.name,
        chunks=planned.schedule.placement.stages_per_rank,
        num_microbatches=planned.num_microbatches,
        sequences=planned.sequences,
    )


def _change(
    name: str,
    base: ObservedRun,
    again: RetimedStep,
    measured: ObservedRun,
    planned: RetimedStep,
) -> ConstantChange:
    if name in TIMES:
        changed = replace(base, **{name: getattr(measured, name)})
        values = getattr(base, name) or 0.0, getattr(measured, name) or 0.0
        if name == "sums":  # of this step, not of the whole model and endlessly many replicas
            values = planned.sums, exposed_sums(measured, planned.sizes)
    else:
        changed = _with_work(base, measured, name)
        values = _of_stage(base, name, planned), _of_stage(measured, name, planned)
    return ConstantChange(name, *values, retime(changed, Target()).period - again.period)


def _with_work(base: ObservedRun, measured: ObservedRun, name: str) -> ObservedRun:
    """Returns ``base`` with one kind of work as measured, in layers and at both ends."""
    parts: dict[str, StageWork] = {
        part: replace(getattr(base, part), **{name: getattr(getattr(measured, part), name)})
        for part in _PARTS
    }
    return replace(base, **parts)  # type: ignore[arg-type]


def _of_stage(run: ObservedRun, name: str, planned: RetimedStep) -> float:
    """Returns what a stage's microbatch takes on average, its share of both ends with it."""
    layers, ends = run.num_layers, (run.first, run.last)
    whole = getattr(run.layer, name) * layers + sum(getattr(each, name) for each in ends)
    stages = planned.schedule.placement.num_stages * planned.sizes["tp"]
    whole = whole * planned.sequences + getattr(run.fixed, name) * layers
    whole += getattr(run.stage, name) * stages
    return float(whole / stages)


def retimed_document(step: RetimedStep) -> dict[str, Any]:
    """Returns the ``serried.retimed-step/1`` document, from which ``read_retimed`` makes it again.

    Seconds throughout.
    """
    observed, (low, high) = step.observed, step.interval
    return {
        "schema": SCHEMA,
        "from": observed.run,
        "sizes": step.sizes,
        "schedule": step.schedule.name,
        "chunks": step.schedule.placement.stages_per_rank,
        "microbatches": step.num_microbatches,
        "sequences": step.sequences,
        "compute_speed": step.compute_speed,
        "hop_s": step.hop_s,
        "step_s": step.period,
        "interval_s": [low, high],
        "time": {
            "computing_s": step.computing,
            "waiting_s": step.waiting,
            "sums_s": step.sums,
            "around_s": step.around,
        },
        "stage_ms": dict(zip(("forward", "backward"), step.stage_ms, strict=True)),
        "assumptions": [str(each) for each in step.assumptions],
        "constants": asdict(observed),
    }


def read_retimed_file(path: Path) -> RetimedStep:
    """Returns the step that a file of JSON is of; raises InputError for what is none."""
    text = user_file.read_text(path, RETIMED_BYTES.most, said("a plan of a run"))
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("{file} is no JSON: {reason}", file=path.name, reason=error) from error
    return read_retimed(document if isinstance(document, Mapping) else {}, path)


def read_retimed(document: Mapping[str, Any], path: object) -> RetimedStep:
    """Returns the step that a document is of; raises InputError for what is none."""
    if document.get("schema") != SCHEMA:
        raise InputError(
            "{path} is no plan of a run; serried plan --from RUN -o FILE.json writes one", path=path
        )
    try:
        fields = dict(document["constants"])
        for part in (*_PARTS, "exchange"):
            if fields[part] is not None or part != "exchange":
                told = {key: _time(s, part == "first") for key, s in fields[part].items()}
                fields[part] = StageWork(**told)
        if (halves := fields.get("halves")) is not None:
            fields["halves"] = SplitBackward(**{key: _time(each) for key, each in halves.items()})
        for name in (*TIMES, "period"):
            if fields[name] is not None or name != "sums":
                fields[name] = _time(fields[name])
        sizes = {axis: int(size) for axis, size in document["sizes"].items()}
        chunks = int(document["chunks"]) if document["chunks"] > 1 else None
        hop = document["hop_s"]
        target = Target(
            **sizes,
            schedule=str(document["schedule"]),
            microbatches=int(document["microbatches"]),
            chunks=chunks,
            compute_speed=float(document["compute_speed"]),
            hop_s=None if hop is None else float(hop),
        )
        return retime(ObservedRun(**fields), target)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            "the plan in {path} cannot be read: {reason}", path=path, reason=error
        ) from error


def _time(value: object, may_be_less: bool = False) -> float:
    """Returns seconds as a file has them; raises ValueError for what no time can be.

    A first stage may take less than its layers: its input needs no gradient.
    """
    seconds = float(value)  # type: ignore[arg-type]
    if not (-inf if may_be_less else 0) <= seconds < inf or seconds == -inf:
        raise ValueError(f"{value} s is no time")
    return seconds
