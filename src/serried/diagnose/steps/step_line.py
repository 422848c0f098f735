"""What one line says of a step: its number, how long it took and its parts took, and where.

    step 4 compute_ms 46.3 step_ms 99.8 data_ms 0.4 loss 2.31
         │         │             └ step: the whole of it
         │         └ compute, forward, backward, optimizer, data: parts of it
         └ its number

>>> told = told_step("step 4 compute_ms 46.5 step_ms 99.8")
>>> told.number_at, told.times
(5, (('step', 31, 1000000.0), ('computing', 18, 1000000.0)))

Places count bytes, for lines are read as such: a bar before them is drawn with wider letters.

>>> told_step("▏▏ step 4 step_ms 99.8").number_at
12
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

SIGNS = (b"_ms", b"time_s", b"step_s", b"s/step", b"sec/step", b"s/it", b"per iteration (ms)")
"""What stands in every line that tells how long a step took."""
_STEP = re.compile(
    r"\b(?:global_?|train_?)?(?:step|iteration|iter)s?\s*[:=#]?\s*(\d{1,12})\b(?![.\d]*\s?%)", re.I
)
_TIME = re.compile(
    r"\b(step|iter|iteration|compute|forward|backward|optimizer|data|load|loader)(?:_time)?"
    r"_(ms|s)\b[\"']?\s*[:=]?\s*(\d{1,12}(?:\.\d{1,9})?)",
    re.I,
)
_OF_MEGATRON = re.compile(r"elapsed time per iteration \(ms\): (\d{1,12}(?:\.\d{1,9})?)")
_SECONDS_A_STEP = re.compile(r"\b(\d{1,9}(?:\.\d{1,9})?) ?(?:s|sec|seconds)/(?:step|iter|it)\b")
_PART = {"compute": "computing", "load": "data", "loader": "data"}
_WHOLE = ("step", "iter", "iteration")
_NS = {"ms": 1e6, "s": 1e9}

Time = tuple[str, int, float]
"""A part, the byte at which its number begins, and nanoseconds to its unit."""


@dataclass(frozen=True)
class ToldStep:
    """Says at which byte of a line its step's number stands, and its times, the whole first."""

    number_at: int
    times: tuple[Time, ...]


def told_step(text: str) -> ToldStep | None:
    """Returns where a line tells a step and its times; None where it does not tell both."""
    step = _STEP.search(text)
    times = {each[0]: each for each in _times(text)} if step else {}
    whole = next((times.pop(name) for name in _WHOLE if name in times), None)
    if step is None or whole is None:
        return None
    found = (("step", *whole[1:]), *sorted(times.values()))
    return ToldStep(
        _byte(text, step.start(1)), tuple((name, _byte(text, at), ns) for name, at, ns in found)
    )


def _byte(text: str, at: int) -> int:
    return at if text.isascii() else len(text[:at].encode())


def _times(text: str) -> Iterator[Time]:
    is_named = "_ms" in text or "_s" in text or "_MS" in text or "_S" in text
    named = list(_TIME.finditer(text)) if is_named else []
    for each in named:
        part = each[1].lower()
        yield _PART.get(part, part), each.start(3), _NS[each[2].lower()]
    if not named and (whole := _OF_MEGATRON.search(text)):
        yield "step", whole.start(1), 1e6
    elif not named and (whole := _SECONDS_A_STEP.search(text)):
        yield "step", whole.start(1), 1e9
