"""The groups of a job as somebody gives them: a layout file, ``serried groups``, or a launch file.

    layout.json        {"tp": 2, "pp": 2, "dp": 2, "order": "tp-dp-pp", "microbatches": 2,
                        "groups": {"8": {"desc": "dp_3", "ranks": [5, 7]}, ...}}
    serried groups     {"schema": "serried.groups/1", "sizes": {...}, "groups": {"dp": [[5, 7]]}}

The numbers of the first are those under which a flight recorder knows the groups.

>>> given = given_groups({"tp": 2, "dp": 1, "order": "tp-dp",
...                       "groups": {"1": {"desc": "tp_0", "ranks": [0, 1]}}}, "layout.json")
>>> given.by_number["1"].kind, given.world_size, given.axes
('tp', 2, (('tp', 2), ('dp', 1)))
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from serried.diagnose.job_state.group_shapes import UNNAMED, Shapes
from serried.diagnose.job_state.state import JobGroup
from serried.errors import InputError, listed
from serried.mesh import Layout

WORLD = "world"
_DEFAULT = ("default_pg", "default", "world")
MOST_NAMED = 4
"""Ranks that stand behind the name of a group."""
_NUMBERED = re.compile(r"[-_.]?\d+$")


@dataclass(frozen=True)
class GivenGroups:
    """Holds the groups of a job, and how its ranks stand on the layout's axes."""

    name: str
    """The file that says so."""
    world_size: int
    groups: tuple[JobGroup, ...]
    by_number: Mapping[str, JobGroup] = field(default_factory=dict)
    """By the number that a group has in the job's dumps, where that is told."""
    axes: tuple[tuple[str, int], ...] = ()
    num_microbatches: int | None = None
    schedule: str | None = None
    gpus_per_node: int | None = None
    descs: Mapping[str, str] = field(default_factory=dict)
    """What the job itself calls the groups of ``by_number``, which several of them may share."""


def kind_of(name: str) -> str:
    """Returns the kind that a group's name tells: ``dp`` for ``dp_3``.

    >>> kind_of("dp_3"), kind_of("default_pg"), kind_of("TENSOR_MODEL_PARALLEL_GROUP")
    ('dp', 'world', 'TENSOR_MODEL_PARALLEL_GROUP')
    """
    return WORLD if name in _DEFAULT else _NUMBERED.sub("", name) or name


def looks_like_groups(document: Any) -> bool:
    """Tells whether a JSON document says which ranks form which groups."""
    return isinstance(document, dict) and isinstance(document.get("groups"), dict)


def given_groups(document: Mapping[str, Any], name: str) -> GivenGroups:
    """Returns the groups that a JSON document says; raises InputError for one that does not."""
    try:
        if str(document.get("schema", "")).startswith("serried.groups"):
            return _of_serried(document, name)
        return _of_layout_file(document, name)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise InputError(
            "{path} does not say which ranks form which groups; under groups it needs, by each "
            "group's number, its desc and its ranks",
            path=name,
        ) from error


def groups_of_layout(layout: Layout, name: str, gpus_per_node: int | None = None) -> GivenGroups:
    """Returns the groups that a framework makes, named by kind and number: ``dp_3``."""
    groups = [
        JobGroup(f"{kind.name}_{number}", kind.name, tuple(ranks))
        for kind in layout.kinds
        if not kind.twin_of
        for number, ranks in enumerate(layout.groups(kind.name).lists())
    ]
    mesh = layout.mesh
    axes = tuple((axis, mesh.sizes[axis]) for axis in mesh.sizes)
    order = tuple(reversed(axes)) if layout.world_size > 1 and _is_slowest_first(layout) else axes
    everyone = JobGroup(WORLD, WORLD, tuple(range(layout.world_size)))
    return GivenGroups(
        name, layout.world_size, (everyone, *groups), axes=order, gpus_per_node=gpus_per_node
    )


def _is_slowest_first(layout: Layout) -> bool:
    """Tells whether a mesh lists its slowest axis first, by the place of rank 1."""
    at = layout.coordinates(1)
    wide = [axis for axis, size in layout.mesh.sizes.items() if size > 1]
    return bool(wide) and at.get(wide[-1]) == 1 and len(wide) > 1


def _of_layout_file(document: Mapping[str, Any], name: str) -> GivenGroups:
    descs, members = dict[str, str](), dict[str, tuple[int, ...]]()
    for number, group in document["groups"].items():
        descs[str(number)] = str(group.get("desc") or group.get("name") or number)
        members[str(number)] = tuple(int(rank) for rank in group["ranks"])
    by_number = _named_apart(descs, members)
    world_size = 1 + max(rank for group in by_number.values() for rank in group.ranks)
    words = str(document.get("order", "")).split("-")
    axes = tuple((axis, int(document[axis])) for axis in words if axis in document)
    if math.prod(size for _, size in axes) != world_size:
        axes = ()
    microbatches = document.get("microbatches")
    return GivenGroups(
        name,
        world_size,
        tuple(by_number.values()),
        by_number,
        axes,
        int(microbatches) if microbatches else None,
        str(document["schedule"]) if document.get("schedule") else None,
        descs=descs,
    )


def _named_apart(
    descs: Mapping[str, str], members: Mapping[str, tuple[int, ...]]
) -> dict[str, JobGroup]:
    """Returns groups by number, those that are called alike, as torch's meshes', by ranks too.

    Of groups to which nobody gave a name the kind is their shape.

    >>> both = _named_apart({"1": "mesh_dp", "2": "mesh_dp"}, {"1": (0, 2), "2": (1, 3)})
    >>> [(group.name, group.kind) for group in both.values()]
    [('mesh_dp [0, 2]', 'mesh_dp'), ('mesh_dp [1, 3]', 'mesh_dp')]
    """
    times, shapes = Counter(descs.values()), Shapes()
    found: dict[str, JobGroup] = {}
    taken: set[str] = set()
    for number in sorted(descs, key=lambda each: int(each) if each.isdecimal() else len(descs)):
        desc, ranks = descs[number], members[number]
        is_named = desc not in UNNAMED
        name = desc if is_named else f"group {number}"
        name = f"{name} {listed_in_brackets(ranks)}" if times[desc] > 1 else name
        name = f"{name} #{number}" if name in taken else name
        taken.add(name)
        found[number] = JobGroup(name, kind_of(desc) if is_named else shapes.kind(ranks), ranks)
    return found


def listed_in_brackets(ranks: Sequence[int]) -> str:
    """Returns the first ranks of a group, as they stand behind its name.

    >>> listed_in_brackets((0, 2))
    '[0, 2]'
    """
    return f"[{listed(ranks, limit=MOST_NAMED)}]"


def _of_serried(document: Mapping[str, Any], name: str) -> GivenGroups:
    world_size = int(document["world_size"])
    groups = [JobGroup(WORLD, WORLD, tuple(range(world_size)))]
    for kind, lists in document["groups"].items():
        groups += [
            JobGroup(f"{kind}_{number}", kind, tuple(int(rank) for rank in ranks))
            for number, ranks in enumerate(lists)
        ]
    sizes = {str(axis): int(size) for axis, size in document.get("sizes", {}).items()}
    axes = tuple((axis, sizes[axis]) for axis in ("tp", "cp", "dp", "pp") if axis in sizes)
    if math.prod(size for _, size in axes) != world_size:
        axes = ()
    return GivenGroups(name, world_size, tuple(groups), axes=axes)
