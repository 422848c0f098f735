"""The groups that dumps speak of: their names and members, by what dumps and a layout say.

NCCL's dumps say the members of groups; gloo's do not, and where torch checks every collective
(TORCH_DISTRIBUTED_DEBUG=DETAIL) not even names. Then a layout tells: by the group's number in the
job, by its name, by its kind and the ranks that have issued something in it, or by its place among
the groups of the process, of which DETAIL makes two each. Without one, the members of a group are
those who have issued something in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from serried.diagnose.evidence.dumps.flight_recorder import FlightDump, FlightEntry
from serried.diagnose.job_state.given import WORLD, GivenGroups, kind_of
from serried.diagnose.job_state.group_names import Key, called, in_order
from serried.diagnose.job_state.state import JobGroup
from serried.errors import listed
from serried.finding import Sentence, said

_MESH = "mesh_"
"""What torch puts before the name of a mesh's dimension (2.13, distributed/device_mesh.py)."""


class DumpedGroups:
    """Tells of each entry of a dump in which group it is."""

    def __init__(
        self, dumps: Sequence[FlightDump], given: GivenGroups | None, world_size: int
    ) -> None:
        self._given = given
        self._by_name = {group.name: group for group in given.groups} if given else {}
        self._of_rank: dict[int, list[JobGroup]] = defaultdict(list)
        for group in given.groups if given else ():
            for rank in group.ranks:
                self._of_rank[rank].append(group)
        keys = {key for dump in dumps for key in dump.groups}
        self._by_key = {key: each for key in keys if (each := self._as_given(*key)) is not None}
        members = _members(dumps, world_size, keys - self._by_key.keys() - {("", "")})
        self._by_key |= self._of_kind(members)
        members = {key: ranks for key, ranks in members.items() if key not in self._by_key}
        taken = set(self._by_key.values())
        free = [group for group in given.groups if group not in taken] if given else []
        self._by_key |= called(members, world_size, free)

    @property
    def groups(self) -> tuple[JobGroup, ...]:
        """All groups, those of the layout first."""
        known = [*self._by_name.values(), *self._by_key.values()]
        return tuple({group.name: group for group in known}.values())

    def of(self, rank: int, dump: FlightDump, entry: FlightEntry) -> JobGroup | None:
        """Returns the group that an entry is in; None where nothing tells, or it is a check's."""
        if entry.group_name or entry.group_id:
            return self._by_key.get((entry.group_id, entry.group_name))
        # DETAIL: the groups of the process in their order, each followed by one for its checks.
        own, is_check = divmod(entry.own_group, 2)
        groups = self._of_rank[rank]
        return groups[own] if not is_check and own < len(groups) else None

    def named(self, key: Key) -> JobGroup | None:
        """Returns the group that dumps call by a number and a name; None for one they do not."""
        return self._by_key.get(key)

    def _as_given(self, number: str, name: str) -> JobGroup | None:
        """Returns the group that a layout calls so, by its number, its name, or as all ranks."""
        if self._given is None or not (number or name):
            return None
        found = self._given.by_number.get(number) or self._by_name.get(name)
        if found is None and (kind_of(name) == WORLD or number == "0"):
            found = next((g for g in self._by_name.values() if g.kind == WORLD), None)
        return found

    def _of_kind(self, members: Mapping[Key, tuple[int, ...]]) -> dict[Key, JobGroup]:
        """Returns the layout's groups that dumps call by their kind alone, as torch's meshes do.

        ``mesh_dp`` is of kind dp, or mesh_dp; of these it is the one that holds all who speak of
        it. Of two with the same ranks the first in the job's order is the layout's.
        """
        found: dict[Key, JobGroup] = {}
        taken = {group.name for group in self._by_key.values()}
        for key in sorted(members, key=in_order):
            kinds = {kind_of(key[1]), kind_of(key[1].removeprefix(_MESH))}
            ranks = set(members[key])
            near = self._of_rank[min(ranks)] if ranks else []  # a job has many groups, a rank few
            fits = [g for g in near if g.kind in kinds and ranks.issubset(g.ranks)]
            if len(fits) == 1 and fits[0].name not in taken:
                found[key] = fits[0]
                taken.add(fits[0].name)
        return found


def _members(
    dumps: Iterable[FlightDump], world_size: int, keys: set[Key]
) -> dict[Key, tuple[int, ...]]:
    """Returns the ranks of groups: as a dump tells, else those that have issued something there."""
    seen: dict[Key, set[int]] = {key: set() for key in keys}
    told: dict[Key, tuple[int, ...]] = {}
    for dump in dumps:
        for key in dump.groups:
            if key not in seen:
                continue
            if dump.rank is not None:
                seen[key].add(dump.rank)
            if key[0] in dump.members:
                told[key] = dump.members[key[0]]
    everyone = tuple(range(world_size))
    return {
        key: told.get(key, everyone if kind_of(key[1]) == WORLD else tuple(sorted(ranks)))
        for key, ranks in seen.items()
    }


def highest_ranks(dumps: Sequence[FlightDump]) -> list[int]:
    """Returns the highest rank that each dump tells of, itself among them."""
    # The group of all ranks is one tuple in the dumps of all, and looked through once.
    known: dict[int, int] = {}
    found = []
    for dump in dumps:
        for ranks in dump.members.values():
            if id(ranks) not in known:
                known[id(ranks)] = max(ranks, default=0)
        found.append(max([dump.rank or 0, *(known[id(each)] for each in dump.members.values())]))
    return found


def contradictions(dumps: Sequence[FlightDump], given: GivenGroups) -> list[Sentence]:
    """Returns the first way in which dumps contradict a layout, and that it was left out."""
    left_out = said(
        "{layout} contradicts the dumps and was left out: give the layout of this job",
        layout=given.name,
    )
    for dump, highest in zip(dumps, highest_ranks(dumps), strict=True):
        if highest >= given.world_size:
            found = said(
                "{layout} has {count} ranks, and {dump} tells of rank {rank}: they are of two "
                "jobs, or the job was resized",
                layout=given.name,
                count=given.world_size,
                dump=dump.name,
                rank=highest,
            )
            return [found, left_out]
        for key in dump.groups:
            if (odd := _contradiction(dump, key, given)) is not None:
                return [odd, left_out]
    return []


def _contradiction(dump: FlightDump, key: Key, given: GivenGroups) -> Sentence | None:
    number, name = key
    group = given.by_number.get(number)
    if group is None:
        return None
    desc = given.descs.get(number, group.name)
    if name and desc != name:
        return said(
            "{layout} calls group {number} {given}, and {dump} calls it {found}: the layout is of "
            "another job",
            layout=given.name,
            number=number,
            given=desc,
            dump=dump.name,
            found=name,
        )
    members = dump.members.get(number, ())
    if members and set(members) != set(group.ranks):
        return said(
            "{layout} has ranks {given} in {group}, and {dump} has ranks {found}",
            layout=given.name,
            given=listed(group.ranks),
            group=group.name,
            dump=dump.name,
            found=listed(members),
        )
    if dump.rank is not None and dump.rank not in group.ranks:
        return said(
            "{layout} has ranks {given} in {group}, and {dump} shows rank {rank} in it",
            layout=given.name,
            given=listed(group.ranks),
            group=group.name,
            dump=dump.name,
            rank=dump.rank,
        )
    return None
