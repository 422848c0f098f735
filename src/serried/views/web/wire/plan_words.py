"""The words of an address that say a plan: those with a field of their own, and one for all others.

model=llama3-8b global_batch=64 …     more=states=fp16-adam tp_comm_overlap=true
└─ a field each ─┘                         └─ further words, and settings ─┘
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.errors import InputError
from serried.number import shortened
from serried.pipeline.registry import ENTRIES
from serried.plan.asked import FIELDS as ASKED
from serried.views.web.wire.query import Words, read_word

FIELDS = (
    *("model", "cluster", "sequence", "global_batch", "micro_batch"),
    *("recompute", "compute", "schedule", "chunks", "account_for"),
)
"""Words that the panel has a field for."""
MORE = tuple(each for each in ASKED if each not in FIELDS)
"""Words that its field for all others takes, beside settings; model and cluster are none."""
ALL = (*FIELDS, "more")
"""Words of an address that say a plan."""
PLANNED = {
    "model": "llama3-8b",
    "cluster": "dgx-h100",
    "sequence": "8192",
    "global_batch": "64",
    "micro_batch": "1",
    "recompute": "none",
}
"""What a page plans where its address says no other (static/plan/state.js)."""
SIMULATED = ("1f1b", "zb-h1", "zbv")
"""What the Schedule tab compares where nobody says (static/schedule/state.js)."""


def given(words: Words) -> dict[str, str]:
    """Returns the words of a plan that are not empty.

    >>> given({"model": ["llama3-8b"], "more": ["lora=16 fp8_param_gather=true"]})
    {'model': 'llama3-8b', 'lora': '16'}

    Raises InputError for a further word that is no NAME=VALUE.
    """
    told = {name: text for name in FIELDS if (text := read_word(words, name))}
    return told | {name: text for name, text in _further(words) if name in MORE}


def settings_of(words: Words) -> dict[str, str]:
    """Returns the settings among the further words of a plan."""
    return {name: text for name, text in _further(words) if name not in MORE}


def _further(words: Words) -> Iterator[tuple[str, str]]:
    """Yields names and values of the one word that holds several."""
    for each in read_word(words, "more").split():
        name, sign, text = each.partition("=")
        if not (name and sign and text):
            raise InputError(
                "'{text}' is not read here; write NAME=VALUE, such as states=fp16-adam",
                text=shortened(each),
                option="more",
            )
        yield name, text


def simulated_words(name: str, chunks: int, microbatches: int) -> dict[str, str]:
    """Returns the words of the Schedule tab that say a job's own step, before others to compare.

    ``name`` is "" where there is no pipeline, ``microbatches`` 0 where nobody says.

    >>> simulated_words("zb-h1", 1, 32)
    {'microbatches': '32', 'name': 'zb-h1,1f1b,zbv'}
    """
    found = {"microbatches": str(microbatches)} if microbatches else {}
    if name not in ENTRIES:
        return found
    names = [name, *(each for each in SIMULATED if each != name)][: len(SIMULATED)]
    several = {"chunks": str(chunks)} if chunks > 1 and ENTRIES[name].chunks is None else {}
    return found | several | ({"name": ",".join(names)} if name != SIMULATED[0] else {})
