"""DeepSpeed's hostfile: which slots of which hosts a job runs on, after include and exclude.

Read from deepspeed 0.19.8, launcher/runner.py (_parse_hostfile, parse_resource_filter). Ranks
are counted host by host in the order of the file, slots ascending.

    worker-0 slots=4      include worker-1:0,2@worker-0      worker-0 0 1 2 3, worker-1 0 2
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from serried.errors import InputError, listed
from serried.frameworks.deepspeed.feature import Feature
from serried.limits import HOST_SLOTS
from serried.mesh import FixedKind, Mesh
from serried.mesh.sizes import Sizes

# DeepSpeed's own pattern: "worker-0 slots=8", and what follows the count is not looked at.
LINE = re.compile(r"^(\S+)\s+slots=(\d+)")
Slots = dict[str, tuple[int, ...]]


def hosts(sizes: Sizes, version: str) -> Feature:
    """Returns one kind per host, whose only group lists the slots in use, not ranks."""
    pool = read_hostfile(sizes.options.get("hostfile", ""))
    used = filtered(pool, sizes.options.get("include", ""), sizes.options.get("exclude", ""))
    num_ranks = sum(map(len, used.values()))
    total = sum(map(len, pool.values()))
    if not num_ranks:
        raise InputError(
            "include and exclude leave none of the {total} slots of {hosts}; leave one in",
            total=total,
            hosts=listed(pool),
        )
    # The world may be given as all slots there are, or as those in use, which are laid out.
    if sizes.world_size not in (num_ranks, total):
        raise InputError(
            "{world} ranks were asked for, but the hosts have {used} slots in use of {total}",
            world=sizes.world_size,
            used=num_ranks,
            total=total,
        )
    about = "slots of this host in use, not ranks"
    kinds = tuple(
        FixedKind(host, (), "hosts", about=about, lists=(slots,)) for host, slots in used.items()
    )
    mesh = Mesh({"rank": num_ranks})
    return Feature(
        {"hosts": mesh},
        kinds,
        order="hosts",
        world_size=num_ranks,
        ranks_per_host=tuple(map(len, used.values())),
    )


def read_hostfile(text: str) -> Slots:
    """Returns the slots of each host; raises InputError for a line that names none.

    >>> read_hostfile("worker-0 slots=2")
    {'worker-0': (0, 1)}
    """
    pool: Slots = {}
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        match = LINE.match(line)
        if not match:
            raise InputError(
                "hostfile line '{line}' is not one; it reads NAME slots=COUNT", line=line
            )
        host, count = match.groups()
        if host in pool:
            raise InputError("the hostfile names {host} twice; each host stands once", host=host)
        pool[host] = slots_of(host, count)
    if not pool:
        raise InputError("the hostfile names no host; a line reads NAME slots=COUNT")
    return pool


def filtered(pool: Mapping[str, tuple[int, ...]], include: str, exclude: str) -> Slots:
    """Returns the slots that a filter leaves, hosts in the order of the file.

    Raises InputError for both filters at once, for an unknown host, or for an unknown slot.

    >>> filtered({"a": (0, 1), "b": (0, 1)}, "b:1@a", "")
    {'a': (0, 1), 'b': (1,)}
    """
    if include and exclude:
        raise InputError("include and exclude do not go together; give one of them")
    if not include and not exclude:
        return dict(pool)
    # include keeps only the hosts that it names, exclude all others; a host named without slots
    # stands for all of its slots, so include takes them all and exclude takes the host away.
    named = _named(include or exclude)
    for host, slots in named.items():
        _check(host, slots, pool)
    if include:
        left = {host: named[host] or pool[host] for host in pool if host in named}
    else:
        left = {host: _without(pool[host], named.get(host)) for host in pool}
    return {host: slots for host, slots in left.items() if slots}


def _without(slots: tuple[int, ...], taken: tuple[int, ...] | None) -> tuple[int, ...]:
    # None takes no slot away, () takes all: a host that is named without slots stands for all of
    # them.
    if taken is None:
        return slots
    return tuple(slot for slot in slots if taken and slot not in taken)


def _named(text: str) -> Slots:
    """Returns the slots that a filter names; () stands for all slots of a host."""
    named: dict[str, set[int]] = {}
    # worker-0@worker-1:0,2 names all slots of one host and two of another; a host that is named
    # again adds to its slots.
    for word in text.split("@"):
        host, colon, slots = word.partition(":")
        found = slots.split(",") if colon else []
        if not all(slot.strip().isdecimal() and len(slot) < 10 for slot in found):
            raise InputError(
                "'{word}' is not a host filter; one reads NAME or NAME:SLOT,SLOT", word=word
            )
        named.setdefault(host, set()).update(map(int, found))
    return {host: tuple(sorted(slots)) for host, slots in named.items()}


def _check(host: str, slots: tuple[int, ...], pool: Mapping[str, tuple[int, ...]]) -> None:
    if host not in pool:
        raise unknown_host(host, pool)
    for slot in slots:
        if slot not in pool[host]:
            raise InputError(
                "host '{host}' has no slot {slot}; its slots are {known}",
                host=host,
                slot=slot,
                known=listed(pool[host]),
            )


def unknown_host(host: str, hosts: Iterable[str]) -> InputError:
    """Returns the error for a filter that names a host which the hostfile lacks."""
    return InputError(
        "host '{host}' is not in the hostfile; hosts that are: {known}",
        host=host,
        known=listed(hosts),
    )


def slots_of(host: str, count: str) -> tuple[int, ...]:
    """Returns the slots of a host that is given so many; raises InputError for too many."""
    if len(count) > 9 or int(count) > HOST_SLOTS.most:
        raise InputError(
            "host {host} is given {count} slots; a host has at most {limit:,}",
            host=host[:60],
            count=count[:20],
            limit=HOST_SLOTS.most,
        )
    return tuple(range(int(count)))
