"""Fixed times that stand for a run's computation, so that few cores can show many ranks."""

from __future__ import annotations

from dataclasses import dataclass

from serried.runtime.job.option import check_bounds, require_above_zero, setting


@dataclass(frozen=True)
class Emulated:
    """Sets fixed times, in milliseconds, for a stage's computation of one microbatch.

    Each half of a backward that runs in two takes half of its time.
    """

    forward_ms: float = setting(
        12.0,
        en=(
            "With --compute emulated: milliseconds of a microbatch's forward on a stage; "
            "by default 12."
        ),
        zh="与 --compute emulated 合用：一个 stage 上一次前向的毫秒数；默认 12。",
        bound=require_above_zero,
    )
    backward_ms: float = setting(
        24.0,
        en="With --compute emulated: milliseconds of its backward; by default 24.",
        zh="与 --compute emulated 合用：一次反向的毫秒数；默认 24。",
        bound=require_above_zero,
    )

    def __post_init__(self) -> None:
        check_bounds(self)
