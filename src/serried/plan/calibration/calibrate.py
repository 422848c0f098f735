"""Constants for one cluster, from steps that were measured on it: few rows, and what they teach.

    shipped constants, and how well each is known ──┐
    jobs and their steps ───────────────────────────┴─> fit ──> constants, errors, never measured

What hardware and software reach may differ from what ships by about 15 %; the rest is held as
firmly as it is known. So five rows move what they bear on and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from serried.errors import InputError, listed
from serried.plan.calibration.fit import Expectation, fit
from serried.plan.request import PlanRequest
from serried.plan.time.chips import generation, kind
from serried.plan.time.constants import LIKE, Constant, Constants, shipped
from serried.plan.time.interval import experience_of
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times

LOOSE, STRANGE = 0.15, 0.6
"""Least width of what a cluster has of its own, and on devices that nobody measured before."""
OWN = ("gemm.", "attention.", "memory", "nvlink", "nic", "launch", "latency", "fixed", "stack_")
"""Beginnings of the names of constants that differ between clusters."""
OF_STRANGE = (*OWN, "kernel_gap", "optimizer_bytes", "elementwise", "pp_", "dp_", "tp_exposed")
"""The same where nobody measured the device: its software overlaps and launches otherwise too."""
RATES, SECONDS = (
    ("gemm.", "attention.", "memory", "nvlink", "nic"),
    ("launch", "kernel_gap", "latency", "fixed"),
)
"""Beginnings of the names of those that are shares of a speed, and of those that are times."""
CONTRADICTION = 1.3
"""Steps of one job that differ by more than this factor cannot both be learned from."""
UNTOLD = 1e-4
"""A constant that rows narrow by less has no part in any of them."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Holds constants of one cluster, what changed, and what no row told."""

    constants: Constants
    before: np.ndarray
    """ln(predicted / measured) of every row by the constants that ship."""
    after: np.ndarray
    unmeasured: tuple[str, ...]
    """Names of the constants that no row bears on, those of other GPUs left out."""


def calibrate(
    names: Sequence[str],
    requests: Sequence[PlanRequest],
    steps: Sequence[float],
    known: Constants | None = None,
) -> Calibration:
    """Returns constants fitted to measured steps (seconds); ``names`` are those of the rows.

    Raises InputError without rows, for steps that are not above 0, for steps in fp32 on a GPU, and
    for rows that measured one job twice and disagree, named.
    """
    if not names:
        raise InputError("there is no measured step to calibrate by; give rows with step_s")
    measured = np.array(steps, np.float64)
    for name, step in zip(names, steps, strict=True):
        if not (np.isfinite(step) and step > 0):
            raise InputError("row {row} has a step of {step} s; it is above 0", row=name, step=step)
    _require_planned(names, requests)
    _require_agreement(names, requests, measured)
    base = with_strange(known or shipped(), requests)
    jobs = Jobs.of(requests)
    before = np.log(step_times(jobs, base).step / measured)
    is_strange = all(generation(each.cluster.gpu) in LIKE for each in requests)
    if is_strange:
        base = _as_slow(base, float(np.exp(-before.mean())))
    start = {name: each.value for name, each in base.entries.items()}
    found = fit(jobs, measured, _expected(base, is_strange=is_strange), start=start)
    constants = replace(
        found.constants,
        residuals=_widened(base.residuals, found.residuals),
        source=f"{len(names)} rows: {listed(names, limit=5)}; else {base.source}",
        experience=base.experience.joined(experience_of(jobs)),
    )
    untold = tuple(
        name
        for name, each in constants.entries.items()
        if each.bears < UNTOLD and _concerns(name, requests)
    )
    return Calibration(constants, before, found.residuals, untold)


def _concerns(name: str, requests: Sequence[PlanRequest]) -> bool:
    """Returns whether a constant is of no GPU, or of one that the jobs run on."""
    family, _, rest = name.partition(".")
    gpus = [each.cluster.gpu for each in requests]
    own = {generation(gpu) for gpu in gpus} | {kind(gpu) for gpu in gpus}
    return family == name or rest.split(".")[0] in own


def with_strange(known: Constants, requests: Sequence[PlanRequest]) -> Constants:
    """Returns the constants with those of devices that have none, as those that they are like."""
    added: dict[str, Constant] = {}
    for each in requests:
        made = generation(each.cluster.gpu)
        for family, bits in (("gemm", ".16"), ("attention", "")):
            name = f"{family}.{made}{bits}"
            if made in LIKE and name not in known.entries:
                alike = known.value(f"{family}.{LIKE[made]}{bits}")
                added[name] = Constant(alike, STRANGE)
    return replace(known, entries={**added, **known.entries}) if added else known


def _as_slow(known: Constants, times: float) -> Constants:
    """Returns the constants of a device on which everything takes so many times as long.

    Few rows tell one factor well, and only then what differs from it.
    """
    entries = {
        name: replace(each, value=each.value / times)
        if name.startswith(RATES)
        else replace(each, value=each.value * times)
        if name.startswith(SECONDS)
        else each
        for name, each in known.entries.items()
    }
    return replace(known, entries=entries)


def _expected(known: Constants, *, is_strange: bool) -> Mapping[str, Expectation]:
    """Returns how firmly each constant is held: by its own error, or loosely where it is local."""
    found = {}
    own, local = (OF_STRANGE, STRANGE) if is_strange else (OWN, LOOSE)
    for name, each in known.entries.items():
        least = local if name.startswith(own) else 0.02
        found[name] = Expectation(each.value, max(each.error, least))
    return found


def _require_planned(names: Sequence[str], requests: Sequence[PlanRequest]) -> None:
    """Raises InputError for a step in fp32 on a GPU, which is planned for no one.

    It would be taken for one of 16 bits, and draw all constants its way.
    """
    for name, request in zip(names, requests, strict=True):
        if request.compute == "fp32" and generation(request.cluster.gpu) != "cpu":
            raise InputError(
                "{row} computed in fp32 on a GPU, and such steps are not planned; leave it out, or "
                "give one in bf16 or fp16",
                row=name,
            )


def _require_agreement(
    names: Sequence[str], requests: Sequence[PlanRequest], steps: np.ndarray
) -> None:
    """Raises InputError where rows of one job differ by more than runs do."""
    seen: dict[str, tuple[str, float]] = {}
    for name, request, step in zip(names, requests, steps.tolist(), strict=True):
        job = repr(request)
        other, before = seen.setdefault(job, (name, step))
        if max(step / before, before / step) > CONTRADICTION:
            raise InputError(
                "rows {one} and {other} are of the same job and took {before:.4g} s and {step:.4g} "
                "s; leave the wrong one out",
                one=other,
                other=name,
                before=before,
                step=step,
            )


def _widened(
    shipped_by: Mapping[str, tuple[float, ...]], residuals: np.ndarray
) -> dict[str, tuple[float, ...]]:
    """Returns intervals as shipped, wider where rows lie further off after the fit."""
    spread = 1.645 * float(np.sqrt(np.mean(residuals**2)))
    return {
        kind: tuple(max(width, spread) for width in widths) for kind, widths in shipped_by.items()
    }
