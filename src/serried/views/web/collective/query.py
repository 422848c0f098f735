"""What the page asks of a collective, read from the words of an address.

name=all-reduce algorithm=ring ranks=8 bytes=1GiB network=h100      ranks 0 to 7
world_size=16 tp=2 kind=dp rank=3 name=all-gather                   the group of rank 3
from=0 to=64                                                        the steps in view
priced=plan model=llama3-8b cluster=h100 …                          bytes and network as planned
"""

from __future__ import annotations

from collections.abc import Mapping

from serried.collective.placed_group import PlacedGroup
from serried.plan.collective_price import CollectiveQuestion
from serried.views.job.collective import FIELDS, CollectiveWords
from serried.views.job.layout_group import group_of
from serried.views.web.collective.planned import PlannedUse, planned_use
from serried.views.web.wire.query import Words, read_count, read_each, read_query, read_word


def read_collective_query(words: Words) -> CollectiveQuestion:
    """Reads a question; raises InputError for a word that cannot be."""
    return collective_words(words, read_use(words)).question(_group(words))


def read_use(words: Words) -> PlannedUse | None:
    """Returns what the plan of the job runs over the group, None where no plan is asked for."""
    kinds = read_each(words, "kind")
    return planned_use(read_query(words), words, kinds[0]) if kinds else None


def collective_words(words: Words, use: PlannedUse | None) -> CollectiveWords:
    """Returns what is asked of a collective; the plan says what is left open."""
    told: Mapping[str, str] = {name: read_word(words, name) for name in FIELDS}
    if use is None:
        return CollectiveWords(told)
    given = {name: text for name, text in told.items() if text}
    return CollectiveWords({**use.told(told["name"]), **given})


def _group(words: Words) -> PlacedGroup | None:
    """Returns the group of a layout, where a kind is named."""
    kinds = read_each(words, "kind")
    if not kinds:
        return None
    query = read_query(words)
    return group_of(query.layout, query.placement, kinds[0], read_count(words, "rank"))
