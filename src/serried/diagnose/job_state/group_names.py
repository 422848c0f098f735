"""Names and kinds of groups that dumps speak of by number, where no name tells them apart.

    number  name        ranks            called            kind
    0       default_pg  0 1 2 3          default_pg        world
    8       dp_3        5 7              dp_3              dp
    4       mesh_dp     1 3              mesh_dp [1, 3]    mesh_dp      torch's device meshes
    1       undefined   0 1              group 1 [0, 1]    shape: 2 ranks, 1 apart, the first such

Groups of one kind stand for one another: what the rank of one does in it, that of another does in
its own. Of groups without a name the kind is their shape, and how many of that shape a rank is in
before.

>>> found = called({("1", "undefined"): (0, 1), ("2", "undefined"): (2, 3)}, world_size=4)
>>> [(group.name, group.kind == found["1", "undefined"].kind) for group in found.values()]
[('group 1 [0, 1]', True), ('group 2 [2, 3]', True)]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from serried.diagnose.job_state.given import WORLD, kind_of, listed_in_brackets
from serried.diagnose.job_state.group_shapes import UNNAMED, Shapes
from serried.diagnose.job_state.state import JobGroup

Key = tuple[str, str]
"""A group's number in the job, as text, and its name."""


def called(
    members: Mapping[Key, tuple[int, ...]], world_size: int, given: Iterable[JobGroup] = ()
) -> dict[Key, JobGroup]:
    """Returns the groups with names that differ; ``given`` lends its own where ranks are the same.

    Two groups of the same ranks stay two: each counts its collectives for itself.
    """
    names = Counter(name for _, name in members if name not in UNNAMED)
    of_ranks: dict[tuple[int, ...], list[JobGroup]] = defaultdict(list)
    for group in given:
        of_ranks[tuple(sorted(group.ranks))].append(group)
    shapes = Shapes()
    found = {}
    for key in sorted(members, key=in_order):
        number, name = key
        ranks = members[key]
        lent = of_ranks.get(tuple(sorted(ranks)), [])
        if kind_of(name) == WORLD or (number == "0" and len(ranks) == world_size):
            found[key] = JobGroup(name or WORLD, WORLD, ranks)
        elif name in UNNAMED and lent:
            found[key] = lent.pop(0)
        elif name in UNNAMED:
            name = f"group {number} {listed_in_brackets(ranks)}"
            found[key] = JobGroup(name, shapes.kind(ranks), ranks)
        elif names[name] > 1:
            found[key] = JobGroup(f"{name} {listed_in_brackets(ranks)}", kind_of(name), ranks)
        else:
            found[key] = JobGroup(name, kind_of(name), ranks)
    return _apart(found)


def _apart(found: dict[Key, JobGroup]) -> dict[Key, JobGroup]:
    """Gives groups that are still called alike their number."""
    names = Counter(group.name for group in found.values())
    return {
        key: JobGroup(f"{group.name} #{key[0]}", group.kind, group.ranks)
        if names[group.name] > 1
        else group
        for key, group in found.items()
    }


def in_order(key: Key) -> tuple[int, str, str]:
    """Returns what sorts groups as the job made them: by number, then by name."""
    return (int(key[0]) if key[0].isdecimal() else 1 << 30, *key)
