"""One thing worth a user's attention: what it is, whom it concerns, the evidence, the cure.

A finding speaks in sentences that are templates with values, as errors are, so that the
workbench can say them in another language.

>>> finding = Finding(
...     "overlap",
...     evidence=(said("ranks of {kind} stand in several groups", kind="gqa"),),
...     cure=said("set tp={tp}", tp=32),
... )
>>> str(finding)
'ranks of gqa stand in several groups; set tp=32'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """Holds one sentence as a template and the values that fill it."""

    template: str
    values: Mapping[str, object]

    def __str__(self) -> str:
        return self.template.format(**self.values)


def said(template: str, /, **values: object) -> Sentence:
    """Returns the sentence that ``template`` says with ``values``."""
    return Sentence(template, values)


@dataclass(frozen=True)
class Finding:
    """Says one thing that a user should know of a layout, a trace or a hang.

    ``kind`` is a short name such as ``overlap``; ``ranks`` and ``groups`` (kinds or groups by
    name) say whom it concerns; ``evidence`` holds what was seen, ``cure`` what would help.
    """

    kind: str
    evidence: tuple[Sentence, ...]
    ranks: tuple[int, ...] = ()
    groups: tuple[str, ...] = ()
    cure: Sentence | None = None
    confidence: float = 1.0
    """Between 0 (a guess) and 1 (derived, not guessed)."""

    def __str__(self) -> str:
        words = [str(sentence) for sentence in self.evidence]
        return "; ".join([*words, str(self.cure)] if self.cure else words)
