"""How right answers are: class, culprit, innocents accused, figures of the collective.

class     the word of the first cause, plain and weighted by how often such faults happen
culprit   exactly the ranks of the truth, where the log tells them
accused   cases that name a rank where the log tells none
figures   operation, number, sizes, time-out and group, each where the truth has it
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.diagnosis.cases import FIELDS, Case

_OURS = {"pg": "group"}


@dataclass(frozen=True)
class Score:
    """Holds hits and of how many, for each question."""

    cause_class: tuple[int, int]
    weighted: float
    """The share of classes that are right, each class counting as often as it happens."""
    culprit: tuple[int, int]
    accused: tuple[int, int]
    fields: tuple[int, int]


def scored(
    cases: Sequence[Case], answers: Sequence[Mapping[str, Any]], weights: Mapping[str, float]
) -> Score:
    """Returns the score of answers, one for each case."""
    pairs = list(zip(cases, answers, strict=True))
    told = [(case, answer) for case, answer in pairs if case.tells_culprit]
    untold = [(case, answer) for case, answer in pairs if not case.tells_culprit]
    fields = [right for case, answer in pairs for right in field_hits(case, answer).values()]
    return Score(
        cause_class=(sum(a["class"] == c.cause_class for c, a in pairs), len(pairs)),
        weighted=_weighted(pairs, weights),
        culprit=(sum(_named(a) == c.culprits for c, a in told), len(told)),
        accused=(sum(bool(_named(a)) for _, a in untold), len(untold)),
        fields=(sum(fields), len(fields)),
    )


def field_hits(case: Case, answer: Mapping[str, Any]) -> dict[str, bool]:
    """Returns for each figure that the truth has whether the answer has it too."""
    ours = answer.get("collective") or {}
    return {
        name: ours.get(_OURS.get(name, name)) == case.collective[name]
        for name in FIELDS
        if case.collective.get(name) is not None
    }


def _named(answer: Mapping[str, Any]) -> tuple[int, ...] | None:
    ranks = answer.get("ranks")
    return tuple(sorted(ranks)) if ranks else None


def _weighted(
    pairs: Sequence[tuple[Case, Mapping[str, Any]]], weights: Mapping[str, float]
) -> float:
    hits: dict[str, list[bool]] = defaultdict(list)
    for case, answer in pairs:
        hits[case.cause_class].append(answer["class"] == case.cause_class)
    known = {name: weights.get(name, 0.0) for name in hits}
    whole = sum(known.values())
    if not whole:
        return 0.0
    return sum(known[name] * sum(each) / len(each) for name, each in hits.items()) / whole
