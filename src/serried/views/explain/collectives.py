"""What each collective is for, what it costs and what goes wrong with it, in sections to read."""

from __future__ import annotations

from serried.views.explain.content import items, line, localized, paragraphs, table
from serried.views.explain.explanation import Explanation, Section, links_of

HEADINGS = {
    "en": {
        "does": "What it does",
        "used": "Which groups use it, and when",
        "costs": "What it costs, and by which algorithm",
        "mistakes": "Typical mistakes",
    },
    "zh": {
        "does": "做什么",
        "used": "哪些组用它，什么时候用",
        "costs": "代价与算法",
        "mistakes": "常见错误",
    },
}


def explained_collective(name: str, *, lang: str) -> Explanation:
    """Returns the explanation of a collective; raises KeyError where it has none.

    >>> explained_collective("all-gather", lang="en").title
    'All-gather: every rank gets every part'
    """
    entry = table(localized("collectives", lang)[name])
    sections = tuple(
        Section(heading, paragraphs(entry[key])) for key, heading in HEADINGS[lang].items()
    )
    reading = links_of([line(each) for each in items(entry["reading"])])
    return Explanation(line(entry["title"]), sections, reading)
