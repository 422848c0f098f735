"""The comment line in files that serried wrote: what their format has no place for.

    # serried: framework=internevo@0.5.2 world_size=64 gpus_per_node=8

A config of InternEvo, say, does not hold the number of ranks; reading the file back needs it.
The line only fills gaps: what the file itself says goes first.
"""

from __future__ import annotations

import re

from serried.launch.facts.config import Reading
from serried.launch.facts.whole_number import count

LINE = re.compile(r"(?m)^[ \t]*#[ \t]*serried:[ \t]*(.+)$")
PAIR = re.compile(r"(\w+)=(\S+)")


def line(framework: str, world_size: int, gpus_per_node: int) -> str:
    """Returns the comment that says a framework with its version, and the ranks.

    >>> line("megatron@0.16.1", 16, 8)
    '# serried: framework=megatron@0.16.1 world_size=16 gpus_per_node=8'
    """
    return f"# serried: framework={framework} world_size={world_size} gpus_per_node={gpus_per_node}"


def fill(reading: Reading, text: str) -> None:
    """Fills what ``reading`` leaves open with the comment of ``text``, where there is one."""
    found = LINE.search(text)
    if not found:
        return
    number = text.count("\n", 0, found.start()) + 1
    pairs = dict(PAIR.findall(found[1]))
    name, _, version = pairs.get("framework", "").partition("@")
    # InternEvo's config may read as classic InternLM's, and the other way round; the comment knows
    # which it is.
    is_sibling = {name, reading.framework} == {"internlm", "internevo"}
    if name and (reading.framework is None or is_sibling):
        reading.framework = name
        reading.facts.drop("framework")
    if version and reading.framework == name:
        reading.version = version
    facts = reading.facts
    has_world = facts.says("world_size") or (facts.says("nodes") and facts.says("gpus_per_node"))
    for key in ("world_size", "gpus_per_node"):
        value = pairs.get(key, "")
        size = count(value)
        if size is not None and not facts.says(key) and not (key == "world_size" and has_world):
            facts.add(key, size, number, "serried")
