"""What a plan comes to where it is worked out for one job alone."""

from __future__ import annotations

import numpy as np

from serried.plan.request import PlanRequest
from serried.plan.time.constants import Constants
from serried.plan.time.jobs import Jobs
from serried.plan.time.step import step_times


def step_time(
    request: PlanRequest, constants: Constants | None = None
) -> tuple[float, dict[str, float]]:
    """Returns the seconds of one job's step, and its parts."""
    found = step_times(Jobs.of([request]), constants)
    parts = {name: float(np.ravel(value)[0]) for name, value in found.parts.items()}
    return float(np.ravel(found.step)[0]), parts
