"""Between which times a step lies, nine times in ten: from the residuals of cross-validation.

Residuals are of constants that saw nothing of what they predict: neither its configuration, nor
its model or GPU type. They are wider for experts and for adapters than for dense training.
"""

from __future__ import annotations

import numpy as np

from serried.plan.time.constants import Constants, shipped
from serried.plan.time.jobs import Column, Jobs

SHARE = 0.9
"""How often the interval holds."""
KINDS = ("dense", "moe", "lora")


def intervals(
    jobs: Jobs, steps: Column, constants: Constants | None = None
) -> tuple[Column, Column]:
    """Returns the least and the most that each step takes, nine times in ten, in seconds."""
    known = constants or shipped()
    low, high = (
        np.array([known.residuals.get(kind, (-0.3, 0.3))[end] for kind in KINDS]) for end in (0, 1)
    )
    kind = np.where(jobs.is_lora > 0, 2, np.where(jobs.is_moe, 1, 0))
    return steps * np.exp(low[kind]), steps * np.exp(high[kind])
