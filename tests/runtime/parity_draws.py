"""Parity rows drawn at random over all options of a run, each a pure function of its number.

    python -m tests.runtime.parity_draws 0:200        draws 0 to 199: what each was and how far off
    python -m tests.runtime.parity_draws 137          one of them

A draw knows nothing of what fits what: sizes are drawn, TrainSettings is asked, and a refusal is
a draw of its own, which has to be one InputError. What is accepted must run, and lose what one
process loses.
"""

from __future__ import annotations

import math
import random
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from serried.errors import InputError
from serried.pipeline import ENTRIES
from serried.runtime.job.settings import (
    Emulated,
    ModelSizes,
    OptimizerSettings,
    TrainSettings,
    Validation,
)
from tests.runtime.many_runs import Ran, run_each
from tests.runtime.parity import LIMITS, Difference, difference_of
from tests.runtime.reference import train_alone

MOST_RANKS = 8
STEPS = 3
HALF = Difference(loss=1e-2, norm=0.1)
"""How far 16 bits may be from float32; a gradient that is missing or twice there is further."""


@dataclass(frozen=True)
class Draw:
    """Holds what a number gave: a run, or the sentence that refused it."""

    number: int
    options: dict[str, Any]
    settings: TrainSettings | None
    refusal: str = ""

    def __str__(self) -> str:
        words = [f"{name}={value}" for name, value in self.options.items()]
        return f"draw {self.number}: {' '.join(words)}"


def draw(number: int) -> Draw:
    """Returns the draw of that number; anything but a run or an InputError is an error here."""
    options = _options(random.Random(number))
    try:
        return Draw(number, options, _settings(options))
    except InputError as error:
        return Draw(number, options, None, str(error))


def _options(chance: random.Random) -> dict[str, Any]:
    """Draws a value for every option, likelier one that goes with many others."""

    def often(usual: Any, *others: Any, share: float = 0.5) -> Any:
        return usual if chance.random() < share else chance.choice(others)

    tp, pp, cp, dp = _sizes(chance)
    experts = often(0, 2, 4, 6, share=0.6)
    heads = chance.choice((1, 2, 4)) * tp if chance.random() < 0.9 else chance.choice((3, 4))
    dtype = often("float64", "float32", "bfloat16", "float16", share=0.6)
    schedule = often("1f1b", *ENTRIES, share=0.2)
    microbatches = chance.choice((1, 2, 2, 4, 4, 8))
    return {
        "world_size": tp * pp * cp * dp,
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "ep": chance.choice((1, 2, 4)) if experts else 1,
        "vocab_divisible_by": often(128, 1, 100, 256, share=0.7),
        "cp_form": chance.choice(("ring", "ring-two-pass", "ulysses", "all-gather")),
        "sequence_parallel": tp > 1 and (experts > 0 or chance.random() < 0.5),
        "loss_parallel": tp > 1 and chance.random() < 0.5,
        "dp_style": often("replicate", "buffer", share=0.6),
        "zero": often(0, 1, 2, 3),
        "zero_shard": often(None, 1, 2, share=0.8),
        "framework": often("megatron", "internlm", share=0.9),
        "order": often(None, "tp-cp-ep-pp-dp", "pp-tp-cp-ep-dp", share=0.8),
        "schedule": schedule,
        "chunks": often(None, 1, 2, 3, share=0.7),
        "group": often(None, 1, 2, 4, share=0.8),
        "layers": often(8, *range(1, 13)),
        "heads": heads,
        "hidden": 2 * heads * chance.choice((2, 4)),
        "kv_heads": often(None, 1, tp, 2 * tp),
        "seq_len": chance.choice((8, 16, 24)) * tp if chance.random() < 0.9 else 30,
        "experts": experts,
        "top_k": often(2, 1),
        "balance": often(0.0, 0.1) if experts else 0.0,
        "tie": chance.random() < 0.5,
        "lr_schedule": often("constant", "cosine"),
        "warmup": often(0, 2),
        "clip": often(1.0, 0.0, 0.05),
        "recompute": often("none", "selective", "full", share=0.6),
        "microbatches": microbatches,
        "global_batch_size": dp * microbatches * chance.choice((1, 2)),
        "validate_every": often(0, 2, share=0.7),
        "dtype": dtype,
        "emulated": chance.random() < 0.05,
        "seed": chance.randrange(100),
    }


def _sizes(chance: random.Random) -> tuple[int, int, int, int]:
    """Draws tp, pp, cp and dp whose product is at most MOST_RANKS."""
    while True:
        tp, pp = chance.choice((1, 1, 2, 2, 3, 4, 5)), chance.choice((1, 1, 2, 2, 3, 4))
        cp, dp = chance.choice((1, 1, 1, 2, 3, 4)), chance.choice((1, 1, 2, 3, 4))
        if tp * pp * cp * dp <= MOST_RANKS:
            return tp, pp, cp, dp


MODEL = ("layers", "heads", "hidden", "kv_heads", "seq_len", "experts", "top_k", "balance", "tie")
LEARNING = ("lr_schedule", "warmup", "clip")


def _settings(options: dict[str, Any]) -> TrainSettings:
    """Returns the run of ``options``; raises InputError as the command line does."""
    left = dict(options)
    model = ModelSizes(**{name: left.pop(name) for name in MODEL})
    # Scaled so that gradients in float16 do not overflow: a step that taught nothing is no parity.
    learning = OptimizerSettings(**{name: left.pop(name) for name in LEARNING}, loss_scale=256.0)
    validation = Validation(left.pop("validate_every"), sequences=5)
    emulated = Emulated(forward_ms=1, backward_ms=2) if left.pop("emulated") else None
    return TrainSettings(
        model=model,
        optimizer=learning,
        validation=validation,
        emulated=emulated,
        device="cpu",
        steps=STEPS,
        timeout_s=60,
        **left,
    )


def limit_of(settings: TrainSettings) -> Difference:
    """Returns what counts as equal in the type that a run computes in."""
    return LIMITS.get(settings.dtype, HALF)


def off_by(settings: TrainSettings, ran: Ran) -> Difference:
    """Returns how far a run is from one process, which computes in float32 at least."""
    if settings.emulated:
        is_whole = len(ran.steps) == settings.steps and not ran.error
        return Difference(0.0, 0.0) if is_whole else Difference(math.inf, math.inf)
    dtype = settings.dtype if settings.dtype in LIMITS else "float32"
    told = train_alone(replace(settings, dtype=dtype))
    return difference_of(ran, told)


def outcomes(draws: Sequence[Draw]) -> Iterator[tuple[Draw, str]]:
    """Yields each of ``draws``, which were all accepted, and what is wrong with it, once it ran.

    Where a run breaks, those after it begin on a new launch.
    """
    left = deque(draws)
    while left:
        try:
            for ran in run_each([it.settings for it in left if it.settings]):
                it = left.popleft()
                assert it.settings
                yield it, _fault(it.settings, ran)
        except AssertionError as error:
            yield left.popleft(), str(error)


def _fault(settings: TrainSettings, ran: Ran) -> str:
    """Returns how far a run is from what it is to be, or nothing."""
    found = off_by(settings, ran)
    if found.within(limit_of(settings)):
        return ""
    return f"loss off by {found.loss:.1e}, norm by {found.norm:.1e} {ran.error}"


def accepted(numbers: Iterable[int]) -> list[Draw]:
    """Returns the draws of ``numbers`` that TrainSettings takes."""
    return [it for it in map(draw, numbers) if it.settings]


def main(arguments: Sequence[str]) -> int:
    """Prints each draw that is wrong and how many were refused, ran, and were right."""
    first, _, end = (arguments[0] if arguments else "0:50").partition(":")
    draws = [draw(number) for number in range(int(first), int(end or int(first) + 1))]
    runs = [it for it in draws if it.settings]
    wrong = 0
    for it, fault in outcomes(runs):
        wrong += bool(fault)
        if fault:
            print(f"{it}\n    {fault}", flush=True)  # noqa: T201  it is what the command is for
    print(  # noqa: T201
        f"{len(draws)} drawn, {len(draws) - len(runs)} refused, {len(runs)} ran, "
        f"{len(runs) - wrong} as one process"
    )
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
