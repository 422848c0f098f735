"""Numbers and devices of a launcher's options: what counts as settled, and what does not."""

from __future__ import annotations

import re
from collections.abc import Mapping

from serried.finding import said
from serried.launch.facts.flags import Meaning, flags_of, take
from serried.launch.facts.found import Facts, Found, all_of_a_node, not_a_number
from serried.launch.facts.whole_number import NUMBER
from serried.launch.facts.words import Field, text_of
from serried.launch.shell.story import DEVICES
from serried.launch.starters.launchers import Launch


def take_options(launch: Launch, facts: Facts, meanings: Mapping[str, Meaning]) -> None:
    """Adds what the launcher's own options say."""
    take(facts, flags_of(launch.options), meanings)


def number(facts: Facts, private: str, name: str) -> bool:
    """Turns text found under ``private`` into the number ``name``; tells whether it was there."""
    for because in facts.lacks.pop(private, []):
        facts.lack(name, because)
    claims = facts.claims.pop(private, [])
    for found in claims:
        text = str(found.value)
        low, _, high = text.partition(":")
        # torchrun takes '--nnodes 2', a range such as '1:4' ('2:2' is one number all the same), and
        # '--nproc_per_node gpu' for all that a node has; the last two are settled only at start.
        if NUMBER.fullmatch(text):
            facts.claim(name, _as_int(found, text))
        elif high and low == high and NUMBER.fullmatch(low):
            facts.claim(name, _as_int(found, low))
        elif high and NUMBER.fullmatch(low) and NUMBER.fullmatch(high):
            facts.lack(
                name,
                said(
                    "{where} is a range, {range}, settled at start", where=found.where, range=text
                ),
            )
        elif text in ("gpu", "auto", "cpu"):
            facts.lack(name, all_of_a_node(found.where, text))
        else:
            facts.lack(name, not_a_number(found.where, text))
    return bool(claims) or facts.says(name)


def _as_int(found: Found, text: str) -> Found:
    return Found(int(text), found.file, found.line, found.key, found.via)


def visible(launch: Launch) -> Found | None:
    """Returns how many devices the script makes visible."""
    for name in DEVICES:
        value = launch.run.variables.get(name)
        text = text_of(value) if isinstance(value, tuple) else None
        # '0,1,2,3' are four devices; names such as 'GPU-8932f937' are left alone.
        if text and re.fullmatch(r"\d+(,\d+)*", text) and isinstance(value, tuple):
            line = Field(value).line
            return Found(text.count(",") + 1, line.file, line.number, name)
    return None
