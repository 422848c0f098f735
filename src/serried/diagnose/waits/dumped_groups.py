"""The groups that dumps speak of: their names and members, by what dumps and a layout say.

NCCL's dumps say the members of groups; gloo's do not, and where torch checks every collective
(TORCH_DISTRIBUTED_DEBUG=DETAIL) not even names. Then a layout tells: by the group's number in the
job, by its name, or by its place among the groups of the process, of which DETAIL makes two each.
Without one, the members of a group are those who have issued something in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from serried.diagnose.evidence.dumps.flight_recorder import FlightDump, FlightEntry
from serried.diagnose.waits.given import WORLD, GivenGroups, kind_of
from serried.diagnose.waits.state import JobGroup
from serried.errors import listed
from serried.finding import Sentence, said


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
        self._seen = {} if given else _seen(dumps, world_size)
        self.notes: list[Sentence] = []
        if given:
            self.notes += _contradictions(dumps, given)

    @property
    def groups(self) -> tuple[JobGroup, ...]:
        """All groups, those of the layout first."""
        known = [*self._by_name.values(), *self._seen.values()]
        return tuple({group.name: group for group in known}.values())

    def of(self, rank: int, dump: FlightDump, entry: FlightEntry) -> JobGroup | None:
        """Returns the group that an entry is in; None where nothing tells, or it is a check's."""
        if not self._given:
            return self._seen.get((entry.group_id, entry.group_name))
        found = self._given.by_number.get(entry.group_id) or self._by_name.get(entry.group_name)
        if found is not None or entry.group_name or entry.group_id:
            return found if found is not None else self._world(entry)
        # DETAIL: the groups of the process in their order, each followed by one for its checks.
        own, is_check = divmod(entry.own_group, 2)
        groups = self._of_rank[rank]
        return groups[own] if not is_check and own < len(groups) else None

    def _world(self, entry: FlightEntry) -> JobGroup | None:
        if kind_of(entry.group_name) == WORLD or entry.group_id == "0":
            return next((g for g in self._by_name.values() if g.kind == WORLD), None)
        return None


def _seen(dumps: Iterable[FlightDump], world_size: int) -> dict[tuple[str, str], JobGroup]:
    members: dict[tuple[str, str], set[int]] = defaultdict(set)
    told: dict[tuple[str, str], tuple[int, ...]] = {}
    for dump in dumps:
        for entry in dump.entries:
            key = entry.group_id, entry.group_name
            if dump.rank is not None:
                members[key].add(dump.rank)
            if entry.group_id in dump.members:
                told[key] = dump.members[entry.group_id]
    found = {}
    for (number, name), ranks in members.items():
        kind = kind_of(name) if name else f"group {number}"
        everyone = tuple(range(world_size))
        whole = told.get((number, name), everyone if kind == WORLD else tuple(sorted(ranks)))
        found[number, name] = JobGroup(name or f"group {number}", kind, whole)
    return found


def _contradictions(dumps: Iterable[FlightDump], given: GivenGroups) -> list[Sentence]:
    """Returns the first way in which dumps contradict a layout."""
    for dump in dumps:
        if dump.rank is not None and dump.rank >= given.world_size:
            return [
                said(
                    "{layout} has {count} ranks, and {dump} is of rank {rank}: they are of two "
                    "jobs, or the job was resized",
                    layout=given.name,
                    count=given.world_size,
                    dump=dump.name,
                    rank=dump.rank,
                )
            ]
        for entry in dump.entries:
            if (found := _contradiction(dump, entry, given)) is not None:
                return [found]
    return []


def _contradiction(dump: FlightDump, entry: FlightEntry, given: GivenGroups) -> Sentence | None:
    group = given.by_number.get(entry.group_id)
    if group is None:
        return None
    if entry.group_name and group.name != entry.group_name:
        return said(
            "{layout} calls group {number} {given}, and {dump} calls it {found}: the layout is of "
            "another job",
            layout=given.name,
            number=entry.group_id,
            given=group.name,
            dump=dump.name,
            found=entry.group_name,
        )
    members = dump.members.get(entry.group_id, ())
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
    stay. Of two of one rank the later stays.
    """
    names: dict[str, Counter[str]] = defaultdict(Counter)
    for dump in dumps:
        for number, name in {(e.group_id, _identity(dump, e)) for e in dump.entries}:
            names[number][name] += 1
    usual = {number: counted.most_common(1)[0][0] for number, counted in names.items()}
    kept: dict[int, FlightDump] = {}
    notes = []
    for dump in dumps:
        odd = next((e for e in dump.entries if _identity(dump, e) != usual[e.group_id]), None)
        if odd is not None and odd.group_id:
            notes.append(_of_another(dump, odd, usual[odd.group_id]))
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


def _identity(dump: FlightDump, entry: FlightEntry) -> str:
    members: Mapping[str, tuple[int, ...]] = dump.members
    return f"{entry.group_name} {members.get(entry.group_id, '')}"


def _of_another(dump: FlightDump, odd: FlightEntry, usual: str) -> Sentence:
    return said(
        "{dump} is of another job, or of this one before it was resized: there group {number} is "
        "{found}, in the other dumps {usual}; it was left out",
        dump=dump.name,
        number=odd.group_id,
        found=_identity(dump, odd).strip(),
        usual=usual.strip(),
    )


def _is_twin(one: FlightDump, other: FlightDump) -> bool:
    """Tells whether two dumps are one and the same, written as pickle and as JSON."""
    first = [(e.group_id, e.seq, e.created_ns) for e in one.entries[:1]]
    return first == [(e.group_id, e.seq, e.created_ns) for e in other.entries[:1]]


def _worth(dump: FlightDump) -> tuple[int, bool]:
    return len(dump.entries), any(entry.frames for entry in dump.entries)


def _last(dump: FlightDump) -> int:
    return dump.entries[-1].created_ns if dump.entries else 0
