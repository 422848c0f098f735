"""Which dumps are of one job and one moment of it: what else lies beside them is set apart.

    fr_trace_0, fr_trace_1   10:42:07 to 10:44:31     the job
    fr_trace_2, fr_trace_3   a day before             left by an earlier run in the same folder

Torch writes over the dumps of its last run, and leaves those of ranks that the new run has not, or
that ended without one. By their times alone they cannot be told from ranks of a host whose clock is
hours off. What can: a rank issues a collective only after all others issued the one before, so by
many collectives of one job one and the same difference of clocks is possible throughout.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

from serried.diagnose.evidence.dumps.flight_recorder import FlightDump
from serried.errors import listed
from serried.finding import Sentence, said

Key = tuple[str, str]
"""A group's number in the job, as text, and its name."""
APART_S = 600.0
"""By how much dumps of one job may end before others begin: a rank that is stuck ends early."""
ENOUGH = 32
"""Pairs of collectives that agree on one difference of clocks before it is believed to be one."""
_ZONE_S, _NEAR_S, _MOST_ZONE_S = 900.0, 60.0, 14 * 3600.0
"""Clocks that were set by the wall of another zone differ by whole quarters of an hour."""


@dataclass(frozen=True)
class OneJob:
    """Holds the dumps of one job, and what was odd."""

    dumps: tuple[FlightDump, ...]
    notes: tuple[Sentence, ...]


def of_one_job(dumps: Sequence[FlightDump]) -> OneJob:
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
    mine, others = of_one_moment(list(kept.values()))
    return OneJob(tuple(mine), (*notes, *others))


def of_one_moment(dumps: Sequence[FlightDump]) -> tuple[Sequence[FlightDump], list[Sentence]]:
    """Returns the dumps of the last moment that any are of, and what is said of the others.

    Those stay whose collectives go with the others' but for a difference of clocks.
    """
    kept, *earlier = list(_by_moment(dumps))[::-1] or [[]]
    mine = [*kept, *(dump for dump in dumps if not _first(dump))]
    notes = list[Sentence]()
    for others in earlier:
        hours = (min(map(_first, kept)) - max(map(_last, others))) / 3.6e12
        names = listed(sorted(dump.name for dump in others), limit=4)
        offset = _clock_ahead(others, kept)
        if offset is not None:
            mine += others
            notes.append(
                said(
                    "by the collectives in both, the clock of {names} and that of the other dumps "
                    "differ by about {hours:.1f} hours",
                    names=names,
                    hours=abs(offset) / 3.6e12,
                )
            )
            continue
        notes.append(
            said(
                "{names} ends {hours:.1f} hours before the other dumps begin: it is left from an "
                "earlier run, or the clock of that host is wrong, and was left out; empty the "
                "folder of dumps before each run"
                if len(others) == 1
                else "{names} end {hours:.1f} hours before the other dumps begin: they are left "
                "from an earlier run, or the clock of that host is wrong, and were left out; empty "
                "the folder of dumps before each run",
                names=names,
                hours=hours,
            )
        )
    return mine, notes


def _by_moment(dumps: Sequence[FlightDump]) -> Iterator[list[FlightDump]]:
    """Yields dumps whose times lie together, the earliest first."""
    timed = sorted((dump for dump in dumps if _first(dump)), key=_first)
    together: list[FlightDump] = []
    end = 0
    for dump in timed:
        if together and _first(dump) - end > APART_S * 1e9:
            yield together
            together = []
        together.append(dump)
        end = max(end, _last(dump))
    if together:
        yield together


def _clock_ahead(one: Sequence[FlightDump], other: Sequence[FlightDump]) -> float | None:
    """Returns by how many nanoseconds the clock of ``one`` is ahead, where both are of one job."""
    low, high, count = float("-inf"), float("inf"), 0
    for mine, theirs in ((_moments(a), _moments(b)) for a in one for b in other):
        shared = sorted(mine.keys() & theirs.keys())
        for before, after in pairwise(shared):
            if before[:-1] == after[:-1] and before[-1] + 1 == after[-1]:
                low = max(low, mine[before] - theirs[after])
                high = min(high, mine[after] - theirs[before])
                count += 1
    if low > high or not count:
        return None
    middle = (low + high) / 2
    beside = abs(middle) / 1e9 % _ZONE_S
    is_zone = min(beside, _ZONE_S - beside) < _NEAR_S and abs(middle) / 1e9 < _MOST_ZONE_S
    return middle if is_zone or count >= ENOUGH else None


def _moments(dump: FlightDump) -> dict[tuple[str, str, int], int]:
    """Returns when a rank issued the collectives of its dump, by their group and number."""
    return {
        (entry.group_id, entry.group_name, entry.seq): entry.created_ns
        for entry in dump.entries
        if entry.peer is None and entry.created_ns
    }


def _first(dump: FlightDump) -> int:
    return min((entry.created_ns for entry in dump.entries if entry.created_ns), default=0)


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
        other, among = _short_names(folder, rival)
        notes.append(
            said(
                "the dumps in {other} are of another job than those in {kept}, or of another "
                "moment, and were left out: give the folder of one job",
                other=other,
                kept=among,
            )
        )
    return [each for each in dumps if each.rank is None or each.folder in kept], notes


def _short_names(one: str, other: str) -> tuple[str, str]:
    """Returns the ends of two paths that tell them apart.

    >>> _short_names("/runs/a/fr", "/runs/b/fr")
    ('a/fr', 'b/fr')
    """
    parts, others = PurePath(one).parts, PurePath(other).parts
    longest = max(len(parts), len(others))
    least = next((n for n in range(1, longest) if parts[-n:] != others[-n:]), longest)
    return "/".join(parts[-least:]), "/".join(others[-least:])


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
