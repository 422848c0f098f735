"""Cards as text: a list of all of them, or one with its sections and further reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from serried.views.explain.explanation import Explanation, Section
from serried.views.explain.plain import as_text
from serried.views.learn.cards import TermCard
from serried.views.sentences import tell
from serried.views.table import Table


def card_text(card: TermCard, columns: int, *, lang: str) -> str:
    """Returns a card as lines of at most ``columns``; this job's numbers come first."""
    above = [Section(tell("In this job", lang), card.here)] if card.here else []
    cost = [Section(tell("What it costs here", lang), card.cost)] if card.cost else []
    explained = Explanation(card.title, (*above, *cost, *card.sections), card.reading)
    first = Section(card.name, (card.text,))
    return as_text(replace(explained, sections=(first, *explained.sections)), columns)


def cards_table(cards: Sequence[TermCard], *, lang: str) -> Table:
    """Returns a row for each card: how it is asked for, and what it is about."""
    rows = Table()
    rows.add_column(tell("term", lang), no_wrap=True)
    rows.add_column(tell("what it is", lang))
    for each in cards:
        rows.add_row(each.key, each.title)
    return rows
