"""What the ranks of a job left, each piece as it was read, before it is put together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from serried.diagnose.evidence.dumps.flight_recorder import FlightDump
from serried.diagnose.evidence.records.left import GuardedRank
from serried.diagnose.evidence.stacks.stack import ThreadStack
from serried.diagnose.job_state.given import GivenGroups
from serried.diagnose.job_state.program import Site


@dataclass
class LeftBehind:
    """Collects what the ranks of a job left, before it is put together."""

    dumps: list[FlightDump] = field(default_factory=list)
    guarded: list[GuardedRank] = field(default_factory=list)
    stacks: dict[int, ThreadStack] = field(default_factory=dict)
    """By rank, the stack of its main thread."""
    process_states: dict[int, str] = field(default_factory=dict)
    """By rank, the letter of ``/proc/PID/stat``: T is stopped; ``gone`` where there was none."""
    given: GivenGroups | None = None
    texts: Mapping[Site, str] = field(default_factory=dict)
    """The code of lines, from tracebacks."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing but logs is there."""
        return not (self.dumps or self.guarded or self.stacks or self.process_states)

    @property
    def before(self) -> Mapping[int, LeftBehind]:
        """What guards left of each start before the last, by its number from 0 on."""
        found: dict[int, LeftBehind] = defaultdict(LeftBehind)
        for each in self.guarded:
            found[each.file.header.attempt].guarded.append(each)
        last = max(found, default=0)
        return {number: left for number, left in found.items() if number < last}

    @property
    def earlier_pids(self) -> frozenset[int]:
        """The guarded processes of earlier starts of a job, of which its launcher's log tells."""
        headers = [each.file.header for each in self.guarded]
        last = max((each.attempt for each in headers), default=0)
        current = {each.pid for each in headers if each.attempt == last}
        return frozenset({each.pid for each in headers} - current)

    @property
    def rank_of_pid(self) -> Mapping[int, int]:
        """The ranks of guarded processes, without numbers that several of them had."""
        ranks: dict[int, set[int]] = defaultdict(set)
        for each in self.guarded:
            ranks[each.file.header.pid].add(each.rank)
        hosts = {each.file.header.record.boot for each in self.guarded}
        return {pid: min(those) for pid, those in ranks.items() if len(those) == len(hosts) == 1}

    def is_active(self, rank: int) -> bool | None:
        """Returns whether a rank's main thread ran on a processor; None where nothing tells."""
        thread = self.stacks.get(rank)
        if thread is not None and thread.is_active is not None:
            return thread.is_active
        return {"R": True, "S": False}.get(self.process_states.get(rank, "")[:1])
