"""One rank's part in a check: its groups made, asked who is there, timed; its links timed.

    members of <kind>                    every kind: each rank contributes its number
    <operation> of <kind>, <size>        every round: all groups of the kind at once, then one alone
    links, turn <n>                      every round: pairs of ranks exchange messages

All ranks go through all steps in this order, also through those that they take no part in.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from serried.mesh import Groups
from serried.runtime.check.findings import check_findings
from serried.runtime.check.operations import Exchange, meetings, operation, timed
from serried.runtime.check.report import (
    CheckReport,
    GroupTimes,
    Link,
    Membership,
    Seat,
    Seated,
    StepBegun,
)
from serried.runtime.check.settings import CheckSettings, waves
from serried.runtime.groups.devices import device_of, join_world
from serried.runtime.groups.process_groups import LiveGroup, LiveLayout, init
from serried.runtime.job.report import Place
from serried.runtime.run.heartbeat import Heartbeat
from serried.runtime.run.worker import Rendezvous
from serried.units import bytes_text

Told = Seated | StepBegun | CheckReport
Tell = Callable[[Told], None]

Samples = dict[tuple[Any, ...], list[int]]
"""Times of every iteration: by step, round and group, or by link, round and size."""


def check_rank(settings: CheckSettings, place: Place, rendezvous: Rendezvous, tell: Tell) -> None:
    """Checks one rank, from its first message to its last; all ranks of the job call it."""
    device = device_of(settings.device, place)
    timeout = timedelta(seconds=settings.timeout_s)
    with Heartbeat(rendezvous["store"], place.rank, place.world_size) as heart:
        with heart.step("joining the others"):
            backend = join_world(device, place, timeout, rendezvous)
            control = dist.new_group(backend="gloo", timeout=timeout)
            seats = _gathered(Seat.own(place.rank, node_of(settings, place), str(device)), control)
        rank = _RankCheck(settings, place.rank, device, seats, heart, tell)
        if place.rank == 0:
            tell(Seated(tuple(seats), backend, rank.num_steps))
        report = rank.run(control)
        with heart.step("leaving"):
            if report is not None:
                tell(report)
            dist.barrier(control)


def node_of(settings: CheckSettings, place: Place) -> int:
    """Returns the node that this rank is on: pretended, as its launcher says, or counted."""
    if settings.ranks_per_node:
        return place.rank // settings.ranks_per_node
    # GROUP_RANK is the node's number under torchrun, SLURM_NODEID that under Slurm.
    for name in ("GROUP_RANK", "SLURM_NODEID"):
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    return place.rank // place.local_world_size


class _RankCheck:
    """Runs the steps of one rank and keeps its times until the end."""

    def __init__(
        self,
        settings: CheckSettings,
        rank: int,
        device: torch.device,
        seats: list[Seat],
        heart: Heartbeat,
        tell: Tell,
    ) -> None:
        self.settings = settings
        self.rank = rank
        self.device = device
        self.seats = seats
        self.heart = heart
        self.tell = tell
        self.turns = meetings(seats)
        self.times: Samples = {}
        self.step = 0
        timings = len(settings.timed) * len(settings.operations) * len(settings.sizes_bytes)
        kinds = len(settings.whole.kinds)
        self.num_steps = kinds + settings.rounds * (timings + len(self.turns))

    def run(self, control: dist.ProcessGroup) -> CheckReport | None:
        """Runs all steps; returns the report on rank 0."""
        settings = self.settings
        with self.heart.step("making groups"):
            live = init(settings.whole, timeout_s=settings.timeout_s, device=self.device.type)
        members = [each for kind in live.kinds for each in self._members(live, kind)]
        # A round goes through everything before the next begins, so a passing disturbance slows one
        # round of many things and never all rounds of one.
        for round_ in range(settings.rounds):
            for kind in settings.timed:
                for name in settings.operations:
                    for size_bytes in settings.sizes_bytes:
                        self._time(live, (kind, name, size_bytes), round_, control)
            for number, turn in enumerate(self.turns):
                self._exchange(number, turn, round_, control)
        with self.heart.step("collecting the times"):
            told = _gathered((members, self.times), control)
        if self.rank:
            return None
        return self._report([each for own, _ in told for each in own], [t for _, t in told])

    def _begin(self, name: str) -> str:
        self.step += 1
        if self.rank == 0:
            self.tell(StepBegun(name, self.step, self.num_steps))
        return name

    def _members(self, live: LiveLayout, kind: str) -> list[Membership]:
        """Asks each of this rank's groups who is in it, and for the sum of their numbers."""
        found = []
        with self.heart.step(self._begin(f"members of {kind}")):
            for group in _in_waves(live, kind):
                answered = torch.full((group.size,), -1, dtype=torch.int64, device=self.device)
                own = torch.tensor([self.rank], device=self.device)
                dist.all_gather_single(answered, own, group=group.group)
                dist.all_reduce(own, group=group.group)
                ranks = tuple(int(rank) for rank in answered)
                found.append(Membership(kind, group.number, ranks, int(own)))
        return found

    def _time(
        self,
        live: LiveLayout,
        what: tuple[str, str, int],
        round_: int,
        control: dist.ProcessGroup,
    ) -> None:
        kind, name, size_bytes = what
        with self.heart.step(self._begin(f"{name} of {kind}, {bytes_text(size_bytes)}")):
            groups = [each for each in live.groups(kind) if each.size > 1]
            runs = {
                each.number: operation(name, each.group, size_bytes, self.device) for each in groups
            }
            for wave in waves(self.settings.whole.groups(kind)):
                own = [number for number in wave if number in runs]
                for number in own:
                    runs[number]()  # opens connections, and lets all of a group come together
                dist.barrier(control)
                for number in own:
                    took = timed(runs[number], self.settings.iterations, self.device)
                    self.times[(*what, round_, number)] = took
            if len(self.settings.whole.groups(kind)) > 1:
                dist.barrier(control)
                if 0 in runs:
                    took = timed(runs[0], self.settings.iterations, self.device)
                    self.times[(*what, round_, "alone")] = took
                dist.barrier(control)

    def _exchange(
        self, number: int, turn: list[tuple[int, int]], round_: int, control: dist.ProcessGroup
    ) -> None:
        partners = {a: Exchange(b, sends_first=True) for a, b in turn}
        partners |= {b: Exchange(a, sends_first=False) for a, b in turn}
        with self.heart.step(self._begin(f"links, turn {number + 1} of {len(self.turns)}")):
            dist.barrier(control)
            mine = partners.get(self.rank)
            if mine is None:
                return
            for size_bytes in self.settings.sizes_bytes:
                # The first message may have a connection to open, so it is not timed.
                mine.run(size_bytes, 1, self.device)
                took = mine.run(size_bytes, self.settings.iterations, self.device)
                self.times[("link", self.rank, mine.partner, round_, size_bytes)] = took

    def _report(self, members: list[Membership], times: list[Samples]) -> CheckReport:
        settings = self.settings
        node = {seat.rank: seat.node for seat in self.seats}
        timings = tuple(
            _group_times(settings, times, (kind, name, size_bytes), node)
            for kind in settings.timed
            for name in settings.operations
            for size_bytes in settings.sizes_bytes
        )
        links = tuple(_links(settings, times, node))
        whole = settings.whole
        return CheckReport(
            seats=tuple(self.seats),
            backend=dist.get_backend(),
            torch_version=torch.__version__.partition("+")[0],
            sizes_bytes=settings.sizes_bytes,
            rounds=settings.rounds,
            same_as=settings.same_as,
            num_groups={kind.name: len(whole.groups(kind.name)) for kind in whole.kinds},
            timings=timings,
            links=links,
            findings=check_findings(
                whole, self.seats, members, timings, links, settings.sizes_bytes
            ),
        )


def _in_waves(live: LiveLayout, kind: str) -> list[LiveGroup]:
    """Returns this rank's groups in the order in which all ranks come to them."""
    order = [number for wave in waves(live.layout.groups(kind)) for number in wave]
    return sorted(live.groups(kind), key=lambda each: order.index(each.number))


def _group_times(
    settings: CheckSettings,
    times: list[Samples],
    what: tuple[str, str, int],
    node: dict[int, int],
) -> GroupTimes:
    """Joins what the ranks measured: in each group and round the slowest rank counts."""
    groups: Groups = settings.whole.groups(what[0])
    lists = groups.lists()
    rounds = range(settings.rounds)

    def of(round_: int, group: int | str, members: list[int]) -> list[list[int]]:
        return [times[rank][(*what, round_, group)] for rank in members]

    real = [(g, members) for g, members in enumerate(lists) if len(members) > 1]
    fastest = np.full((len(lists), settings.rounds), np.nan)
    median = np.full(len(lists), np.nan)
    for g, members in real:
        each = np.array(
            [of(round_, g, members) for round_ in rounds]
        )  # (rounds, ranks, iterations)
        fastest[g] = each.min(axis=2).max(axis=1)
        median[g] = np.median(each, axis=(0, 2)).max()
    alone = None
    if len(lists) > 1 and len(lists[0]) > 1:
        each = np.array([of(round_, "alone", lists[0]) for round_ in rounds])
        alone = float(np.median(each, axis=(0, 2)).max())
    return GroupTimes(
        *what,
        sizes=tuple(len(members) for members in lists),
        nodes=tuple(len({node[rank] for rank in members}) for members in lists),
        times_ns=fastest,
        median_ns=median,
        alone_ns=alone,
    )


def _links(settings: CheckSettings, times: list[Samples], node: dict[int, int]) -> list[Link]:
    found: dict[tuple[int, int], np.ndarray[Any, Any]] = {}
    for samples in times:
        for key, took in samples.items():
            if key[0] == "link":
                _, source, target, round_, size_bytes = key
                shape = (settings.rounds, len(settings.sizes_bytes))
                table = found.setdefault((source, target), np.zeros(shape))
                # The fastest iteration is nearest to what the link can do; others met something
                # else besides.
                table[round_, settings.sizes_bytes.index(size_bytes)] = min(took)
    return [Link(a, b, node[a] != node[b], table) for (a, b), table in sorted(found.items())]


def _gathered(own: Any, control: dist.ProcessGroup) -> list[Any]:
    told: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(told, own, group=control)
    return told
