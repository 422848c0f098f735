"""A diagnosis as a notebook draws it: every rank that is known of, the culprits and who waits."""

from __future__ import annotations

from serried.diagnose.diagnosis import Diagnosis
from serried.views.diagnose.text import diagnosis_lines
from serried.views.drawing import Drawing, DrawnArea, DrawnWords
from serried.views.notebook.drawn import Drawn
from serried.views.sentences import tell

MOST_RANKS = 1024
IN_A_LINE, CELL, TALL, TOP = 32, 30, 24, 30
CULPRIT, WAITS, HEARD, UNHEARD = "#e0728a", "#eec743", "#dfe4ea", "#ffffff"
"""Colours of a rank: at fault, waiting for one, read of, and not read of."""


def diagnosis_drawn(diagnosis: Diagnosis, lang: str = "en") -> Drawn:
    """Returns what is drawn: the ranks where any are known, else only what is said."""
    headline, *lines = diagnosis_lines(diagnosis, lang=lang, width=1000)
    known = _ranks(diagnosis)
    ranks = _most_telling(diagnosis, known)
    if len(ranks) < len(known):
        lines.insert(0, _cut(len(ranks), len(known), lang))
    rows = tuple((rank,) for rank in ranks)
    return Drawn(headline, _picture(diagnosis, ranks, lang) if ranks else "", tuple(lines), rows)


def _ranks(diagnosis: Diagnosis) -> list[int]:
    """Returns the ranks that are drawn: all of the world, or those that are named."""
    if diagnosis.world_size is not None:
        named = set(range(diagnosis.world_size))
    else:
        named = {*diagnosis.ranks_heard, *_culprits(diagnosis), *_waiting(diagnosis)}
    return sorted(named)


def _most_telling(diagnosis: Diagnosis, known: list[int]) -> list[int]:
    """Returns as many ranks as are drawn: culprits before those who wait, these before others."""
    culprits, waiting = _culprits(diagnosis), _waiting(diagnosis)
    first = sorted(known, key=lambda rank: (rank not in culprits, rank not in waiting, rank))
    return sorted(first[:MOST_RANKS])


def _cut(shown: int, count: int, lang: str) -> str:
    return tell(
        "{shown:,} of {count:,} ranks are drawn, those at fault first; serried serve shows all",
        lang,
        shown=shown,
        count=count,
    )


def _culprits(diagnosis: Diagnosis) -> set[int]:
    return {rank for cause in diagnosis.causes for rank in cause.ranks or ()}


def _waiting(diagnosis: Diagnosis) -> set[int]:
    return {each.rank for cause in diagnosis.causes for each in cause.waiting}


def _picture(diagnosis: Diagnosis, ranks: list[int], lang: str) -> str:
    culprits, waiting = _culprits(diagnosis), _waiting(diagnosis)
    heard = {*diagnosis.ranks_heard}
    states = (
        (culprits, CULPRIT, tell("at fault", lang)),
        (waiting, WAITS, tell("waits", lang)),
        (heard, HEARD, tell("heard of", lang)),
        ({*ranks}, UNHEARD, tell("not heard of", lang)),
    )
    lines = -(-len(ranks) // IN_A_LINE)
    drawing = Drawing(CELL * IN_A_LINE, TOP + TALL * lines + 4, tell("ranks by state", lang))
    x = 0.0
    for _, colour, word in states:
        drawing.add(DrawnArea(x + 1, 6, 12, 12, colour, edge=True), DrawnWords(x + 18, 16, word))
        x += 120
    for at, rank in enumerate(ranks):
        _, colour, word = next(each for each in states if rank in each[0])
        left, top = CELL * (at % IN_A_LINE), TOP + TALL * (at // IN_A_LINE)
        drawing.add(
            DrawnArea(
                left + 1, top + 1, CELL - 2, TALL - 2, colour, edge=True, row=at,
                told=f"rank {rank}: {word}",
            ),
            DrawnWords(
                left + CELL / 2, top + TALL / 2 + 4, str(rank), 10, "middle",
                is_strong=rank in culprits,
            ),
        )  # fmt: skip
    return drawing.svg()
