"""Reads a hostfile, and counts the ranks that DeepSpeed's launcher starts on it.

The rules are in ``deepspeed_hosts``; here stand the places of what is wrong in a file, and
``--num_nodes`` and ``--num_gpus``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from serried.errors import InputError
from serried.frameworks.deepspeed.hosts import LINE, filtered, read_hostfile, slots_of
from serried.launch.facts.found import Facts

Hosts = Mapping[str, tuple[int, ...]]
"""Host -> its slots, in the order of ranks."""


def is_one(text: str) -> bool:
    """Tells whether a text is a hostfile: each line that says something names slots."""
    # Each line must, for a script or a note may mention slots as well.
    rows = [row.strip() for row in text.split("\n")]
    told = [row for row in rows if row and not row.startswith("#")]
    return bool(told) and all(" slots" in row or "\tslots" in row for row in told)


def read(text: str, file: str) -> Hosts:
    """Returns the slots of each host; raises InputError naming the line that is wrong.

    >>> read("node1 slots=2\\n# spare\\nnode2 slots=1", "hostfile")
    {'node1': (0, 1), 'node2': (0,)}
    """
    lines: dict[str, int] = {}
    for number, row in enumerate(map(str.strip, text.split("\n")), 1):
        if not row or row.startswith("#"):
            continue
        found = LINE.match(row)
        # read_hostfile would refuse these lines as well, but names neither the file nor the line's
        # number.
        if not found:
            raise InputError(
                "{file} line {line} is '{row}'; a line of a hostfile is NAME slots=COUNT",
                file=file,
                line=number,
                row=row[:60],
            )
        if found[1] in lines:
            raise InputError(
                "{file} names host {host} twice, on lines {first} and {second}; keep one",
                file=file,
                host=found[1],
                first=lines[found[1]],
                second=number,
            )
        lines[found[1]] = number
    return read_hostfile(text)


def names(text: str) -> list[str]:
    """Returns the hosts of a file that holds one name a line, as ColossalAI's does."""
    rows = (row.split("#")[0].split() for row in text.split("\n"))
    return [row[0] for row in rows if row]


def count(
    facts: Facts, hosts: Hosts, *, include: str = "", exclude: str = "", line: int | None = None
) -> None:
    """Adds the ranks and nodes that the hosts hold, after the filters, to ``facts``.

    ``--num_nodes`` and ``--num_gpus`` that stand in ``facts`` go before the hostfile, unless
    there is a filter. Raises InputError for an unknown host or slot, or when nothing is left.
    """
    nodes, per_node = facts.number("nodes"), facts.number("gpus_per_node")
    # '--num_nodes 2' takes the first two hosts, '--num_gpus 4' slots 0 to 3 of each.
    if not include and not exclude:
        kept = list(hosts.items())[: nodes if nodes and nodes > 0 else None]
        hosts = {name: slots_of(name, str(per_node)) if per_node else own for name, own in kept}
    left = filtered(hosts, include, exclude)
    if not left:
        raise InputError("--exclude {exclude} leaves no slot at all", exclude=exclude)
    take(facts, [len(slots) for slots in left.values()], line, "hostfile")


def take(facts: Facts, slots: Sequence[int], line: int | None, key: str) -> None:
    """Adds ranks and nodes of hosts with so many slots each; a host without any is no node."""
    widths = [count for count in slots if count] or slots
    for name in ("nodes", "gpus_per_node", "node_gpus"):
        facts.drop(name)
    facts.add("world_size", sum(widths), line, key)
    facts.add("nodes", len(widths), line, key)
    # One number for nodes that differ would seat ranks on the wrong node, hence '4,1'.
    if len(set(widths)) == 1:
        facts.add("gpus_per_node", widths[0], line, key)
    else:
        facts.add("node_gpus", ",".join(map(str, widths)), line, key)
