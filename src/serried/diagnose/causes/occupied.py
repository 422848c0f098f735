"""What a rank is busy with that keeps it from its peers, by the frames that its stack goes through.

>>> from serried.diagnose.evidence.stacks.stack import Frame
>>> stack = (Frame("poll", "selectors.py", 415), Frame("_try_get_data", LOADER, 1291))
>>> str(occupied(stack).sentence)
"its stack goes through torch's data loader (_try_get_data): it has no data to go on with"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from serried.diagnose.evidence.stacks.stack import Frame
from serried.finding import Sentence, said

LOADER = "torch/utils/data/dataloader.py"


@dataclass(frozen=True)
class Occupation:
    """Says what a rank is busy with, and what to do about that."""

    sentence: Sentence
    cures: tuple[Sentence, ...]


_KINDS: tuple[tuple[re.Pattern[str], Callable[[str], Sentence], tuple[Sentence, ...]], ...] = (
    (
        re.compile(r"(^|/)torch/utils/data/"),
        lambda function: said(
            "its stack goes through torch's data loader ({function}): it has no data to go on with",
            function=function,
        ),
        (
            said(
                "take the stacks of the loader's workers too (py-spy dump --subprocesses), and "
                "look whether the storage that they read answers; DataLoader(timeout=…) makes it "
                "fail with words"
            ),
        ),
    ),
    (
        re.compile(r"(^|/)torch/(serialization\.py|distributed/checkpoint/)|(^|/)safetensors/"),
        lambda function: said(
            "its stack goes through a checkpoint ({function}): it saves or loads one",
            function=function,
        ),
        (
            said(
                "look whether the file system answers: df, and a small write from that node; where "
                "it is only slow, give that part a group of its own with a longer time-out"
            ),
        ),
    ),
    (
        re.compile(
            r"(^|/)torch/(_dynamo/(convert_frame|output_graph)\.py|utils/cpp_extension\.py|"
            r"_inductor/(graph|scheduler|async_compile|select_algorithm)\.py)|(^|/)triton/compiler/"
        ),
        lambda function: said(
            "its stack goes through a compiler ({function}): it compiles what its peers have "
            "compiled",
            function=function,
        ),
        (
            said(
                "compile on every rank before the first collective, keep the compiler's cache on "
                "each node, and look for shapes that only some ranks meet"
            ),
        ),
    ),
)


def occupied(stack: Iterable[Frame]) -> Occupation | None:
    """Returns what a rank is busy with; None where its stack goes through nothing that tells."""
    outermost_first = tuple(stack)[::-1]
    for pattern, told, cures in _KINDS:
        found = next((each for each in outermost_first if pattern.search(each.file)), None)
        if found is not None:
            return Occupation(told(found.function), cures)
    return None
