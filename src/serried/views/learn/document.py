"""Cards and lessons as documents: ``serried.card/1`` and ``serried.lessons/1``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from serried.views.learn.cards import TermCard
from serried.views.learn.lessons import LessonShown

SCHEMA = "serried.card/1"


def card_document(card: TermCard) -> dict[str, Any]:
    """Returns a card as JSON holds it."""
    return {"schema": SCHEMA, **asdict(card)}


def lessons_document(lessons: Sequence[LessonShown]) -> dict[str, Any]:
    """Returns the lessons, each with its card, what to look at and the words of its address."""
    return {
        "schema": "serried.lessons/1",
        "lessons": [
            {
                "key": each.card.key,
                "title": each.title,
                "look": each.look,
                "words": dict(each.words),
                "address": each.address,
                "card": asdict(each.card),
            }
            for each in lessons
        ],
    }
