"""The groups that dumps speak of: their names and members, by what dumps and a layout say.

NCCL's dumps say the members of groups; gloo's do not, and where torch checks every collective
(TORCH_DISTRIBUTED_DEBUG=DETAIL) not even names. Then a layout tells: by the group's number in the
job, by its name, by its kind and the ranks that have issued something in it, or by its place among
the groups of the process, of which DETAIL makes two each. Without one, the members of a group are
those who have issued something in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from serried.diagnose.evidence.dumps.flight_recorder import FlightDump, FlightEntry
from serried.diagnose.waits.given import WORLD, GivenGroups, kind_of
from serried.diagnose.waits.group_names import Key, called, in_order
from serried.diagnose.waits.state import JobGroup
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


def of_one_job(dumps: Sequence[FlightDump]) -> tuple[list[FlightDump], list[Sentence]]:
    """Returns the dumps of one job, one for each rank, and what does not belong to it.

    Dumps that give one number to two groups are of two jobs: those that agree with most others
    stay. So do those of one folder of two that hold other dumps of the same ranks: the fuller, or
    the later. Of two of one rank in one folder the later stays.
    """
    dumps, notes = _of_one_folder(dumps)
    names: dict[str, Counter[_Identity]] = defaultdict(Counter)
    for dump in dumps:
        for key in dump.groups:
            names[key[0]][_identity(dump, key)] += 1
    usual = {number: _usual(counted) for number, counted in names.items()}
    kept: dict[int, FlightDump] = {}
    for dump in dumps:
        odd = next((k for k in dump.groups if _differs(_identity(dump, k), usual[k[0]])), None)
        if odd is not None and odd[0]:
            notes.append(_of_another(dump, odd, usual[odd[0]]))
            continue
        rank = -1 - len(kept) if dump.rank is None else dump.rank
        if (other := kept.get(rank)) is not None:
            if _is_twin(dump, other):
                kept[rank] = max(dump, other, key=_worth)
                continue
            later, earlier = (dump, other) if _last(dump) > _last(other) else (other, dump)
            notes.append(
                said(
                    "{later} and {earlier} are both of rank {rank} and differ: the later was read",
                    later=later.name,
                    earlier=earlier.name,
                    rank=rank,
                )
            )
            dump = later
        kept[rank] = dump
    return list(kept.values()), notes


def _of_one_folder(
    dumps: Sequence[FlightDump],
) -> tuple[Sequence[FlightDump], list[Sentence]]:
    """Returns the dumps without those of folders that another one has other dumps of."""
    folders: dict[str, dict[int, FlightDump]] = defaultdict(dict)
    for dump in dumps:
        if dump.rank is not None:
            folders[dump.folder].setdefault(dump.rank, dump)
    weights = {
        folder: (len(held), max(map(_last, held.values()))) for folder, held in folders.items()
    }
    by_weight = sorted(folders, key=lambda folder: weights[folder], reverse=True)
    kept, notes = list[str](), list[Sentence]()
    for folder in by_weight:
        mine = folders[folder]
        rival = next((each for each in kept if _are_apart(mine, folders[each])), None)
        if rival is None:
            kept.append(folder)
            continue
        notes.append(
            said(
                "the dumps in {other} are of another job than those in {kept}, or of another "
                "moment, and were left out: give the folder of one job",
                other=PurePath(folder).name,
                kept=PurePath(rival).name,
            )
        )
    return [each for each in dumps if each.rank is None or each.folder in kept], notes


def _are_apart(one: Mapping[int, FlightDump], other: Mapping[int, FlightDump]) -> bool:
    """Tells whether two folders hold dumps of the same ranks that do not say the same."""
    return any(not _is_twin(dump, other[rank]) for rank, dump in one.items() if rank in other)


_Identity = tuple[str, tuple[int, ...]]
"""What a group is called and, where that is told, its ranks."""


def _identity(dump: FlightDump, key: Key) -> _Identity:
    return key[1], dump.members.get(key[0], ())


def _usual(counted: Counter[_Identity]) -> _Identity:
    """Returns what most call a group, and the ranks that most of these tell, where any does."""
    named: Counter[str] = Counter()
    for (name, _), count in counted.items():
        named[name] += count
    name = named.most_common(1)[0][0]
    told = Counter({each: count for each, count in counted.items() if each[0] == name})
    with_ranks = Counter({each: count for each, count in told.items() if each[1]})
    return (with_ranks or told).most_common(1)[0][0]


def _differs(one: _Identity, other: _Identity) -> bool:
    """Tells whether two dumps mean two groups; ranks that one of them does not tell are none."""
    (name, ranks), (other_name, other_ranks) = one, other
    return name != other_name or bool(ranks and other_ranks and ranks != other_ranks)


def _of_another(dump: FlightDump, odd: Key, usual: _Identity) -> Sentence:
    return said(
        "{dump} is of another job, or of this one before it was resized: there group {number} is "
        "{found}, in the other dumps {usual}; it was left out",
        dump=dump.name,
        number=odd[0],
        found=_told(_identity(dump, odd)),
        usual=_told(usual),
    )


def _told(identity: _Identity) -> str:
    name, ranks = identity
    return f"{name} ({listed(ranks)})" if ranks else name


def _is_twin(one: FlightDump, other: FlightDump) -> bool:
    """Tells whether two dumps are one and the same, written as pickle and as JSON."""
    first = [(e.group_id, e.seq, e.created_ns) for e in one.entries[:1]]
    return first == [(e.group_id, e.seq, e.created_ns) for e in other.entries[:1]]


def _worth(dump: FlightDump) -> tuple[int, bool]:
    return len(dump.entries), any(entry.frames for entry in dump.entries)


def _last(dump: FlightDump) -> int:
    return dump.entries[-1].created_ns if dump.entries else 0
