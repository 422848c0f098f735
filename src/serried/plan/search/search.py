"""The search: every row of every manner weighed, those that fit ranked, and why the others lose.

    rows ──bytes──> fit? ──no──> lacks x GiB                      never timed
                     └─yes──time──> ranked; the best again by exact memory and the schedule itself

Nothing is skipped but the time of what does not fit, so that the ranking is that of timing all;
``is_pruned=False`` does the latter, and a test holds both beside one another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from serried.errors import InputError
from serried.plan.degrees import Degrees
from serried.plan.job_plan import JobPlan, job_plan
from serried.plan.memory.implementation import implementation_of
from serried.plan.memory.job_memory import USABLE, job_memory
from serried.plan.memory.sweep import Layouts, Sweep
from serried.plan.request import PlanRequest
from serried.plan.search.space import DEGREES, SearchSpace, Whole, orders_in, rows_of
from serried.plan.search.weigh import Real, times_of
from serried.plan.time.constants import Constants

Progress = Callable[[int, int, int], None]
"""Called with the manners that are done, those there are, and the layouts weighed so far."""
CHECKED = 3
"""How many times as many layouts as are asked for are weighed exactly."""


@dataclass(frozen=True, eq=False)
class WeighedManner:
    """Holds the rows of one manner, their bytes and, where they were timed, their seconds."""

    asked: PlanRequest
    rows: Mapping[str, Whole]
    in_use: Real
    step: Real
    """Infinity where a row was not timed."""
    parts: Mapping[str, Real]
    orders: tuple[str, ...]
    """The orders of axes that the rows' column of that name numbers."""

    def request(self, row: int) -> PlanRequest:
        """Returns the request of one row."""
        told = {name: int(self.rows[name][row]) for name in DEGREES}
        micro_batch = told.pop("micro_batch")
        told.pop("microbatches")
        degrees, order = Degrees(**told), int(self.rows["order"][row])
        return replace(
            self.asked,
            degrees=degrees,
            micro_batch=micro_batch,
            order=self.orders[order] if order >= 0 else "",
            stage_layers=_layers_of(self.asked.model.layers, degrees.num_stages),
        )


@dataclass(frozen=True)
class Room:
    """Holds what a card can use, and what a plan may take of it to fit for sure."""

    card: float
    limit: float
    """Plans up to here leave nine of ten peaks within the card."""

    @classmethod
    def of(cls, asked: PlanRequest) -> Room:
        """Returns the room on the GPUs of a request's cluster."""
        card = asked.cluster.gpu.memory_bytes * USABLE
        built = implementation_of(asked.framework, asked.options)
        return cls(card, (card - built.error_bytes) / (1 + built.error_of(asked.model)))


@dataclass(frozen=True, eq=False)
class FoundLayout:
    """Holds one layout that a search found: what it takes, and why it is not the best."""

    request: PlanRequest
    step_s: float
    parts: Mapping[str, float]
    """What the step consists of, in seconds; they sum to it."""
    in_use: float
    """Bytes of the fullest rank."""
    card: float
    """Bytes of a card that can be used."""
    limit: float
    """Bytes up to which nine of ten peaks stay within the card, by what plans are off by."""
    plan: JobPlan | None = None
    """The whole plan, where schedule and memory were walked."""
    slower_part: str = ""
    """The part of the step that costs most beside the best layout's."""
    slower_s: float = 0.0
    """What that part costs more, in seconds."""

    @property
    def lacks(self) -> float:
        """Bytes that a card lacks to hold it for sure; 0 where it does."""
        return max(0.0, self.in_use - self.limit)

    @cached_property
    def fullest_stages(self) -> tuple[int, ...]:
        """The stages of the rank that has most in use, its schedule walked for it."""
        memory = self.plan.memory if self.plan else job_memory(self.request)
        return memory.fullest.stages

    @property
    def tokens_per_gpu_s(self) -> float:
        """Tokens per second and GPU."""
        tokens = self.request.global_batch * self.request.sequence
        return tokens / self.step_s / self.request.degrees.world_size


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Holds what a search found: the best layouts, those on the edge of memory, and counts."""

    best: tuple[FoundLayout, ...]
    """The quickest first; empty where nothing fits."""
    pareto: tuple[FoundLayout, ...]
    """Layouts that no other beats in both memory and time, the quickest first."""
    misses: tuple[FoundLayout, ...]
    """Those that do not fit and lack least."""
    num_layouts: int
    num_fitting: int
    manners: tuple[WeighedManner, ...] = field(repr=False)


def search(
    asked: PlanRequest,
    space: SearchSpace,
    *,
    most: int = 10,
    constants: Constants | None = None,
    is_pruned: bool = True,
    progress: Progress = lambda done, of, weighed: None,
) -> SearchResult:
    """Returns the best layouts of a request's model and batch; its own degrees are not looked at.

    Raises InputError where the rules allow no layout at all.
    """
    card = Room.of(asked)
    wanted = list(space.manners(asked))
    weighed: list[WeighedManner] = []
    known: dict[tuple[str, bool], _Rows | None] = {}
    count = 0
    for done, manner in enumerate(wanted, 1):
        kind = manner.schedule, manner.zero >= 3
        if kind not in known:  # the same whatever is recomputed or offloaded
            known[kind] = _Rows.of(space, manner)
        rows = known[kind]
        if rows is not None:
            orders = orders_in(space, manner)
            found = _weigh(manner, rows, orders, card.limit, constants, is_pruned=is_pruned)
            weighed.append(found)
            count += len(found.in_use)
        progress(done, len(wanted), count)
    if not weighed:
        raise _none(asked, space)
    fitting = sum(int((each.in_use <= card.limit).sum()) for each in weighed)
    best = _exact(_quickest(weighed, card, most * CHECKED), most, constants)
    return SearchResult(
        _beside(best),
        _beside(_pareto(weighed, card)),
        _misses(weighed, card, most, constants),
        count,
        fitting,
        tuple(weighed),
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Holds the layouts of one schedule, and where they have its layers."""

    columns: Mapping[str, Whole]
    sweep: Sweep

    @classmethod
    def of(cls, space: SearchSpace, manner: PlanRequest) -> _Rows | None:
        columns = rows_of(space, manner)
        return cls(columns, Sweep(manner, Layouts.of(columns))) if len(columns["tp"]) else None


def _weigh(
    manner: PlanRequest,
    rows: _Rows,
    orders: tuple[str, ...],
    limit: float,
    constants: Constants | None,
    *,
    is_pruned: bool,
) -> WeighedManner:
    in_use = rows.sweep.fullest(manner)
    timed = np.flatnonzero(in_use <= limit) if is_pruned else np.arange(len(in_use))
    step = np.full(len(in_use), np.inf)
    parts: dict[str, Real] = {}
    if len(timed):
        chosen = {name: column[timed] for name, column in rows.columns.items()}
        step[timed], found = times_of(manner, chosen, constants, orders)
        for name, each in found.items():
            parts[name] = np.zeros(len(in_use))
            parts[name][timed] = each
    return WeighedManner(manner, rows.columns, in_use, step, parts, orders)


def _layers_of(layers: int, stages: int) -> tuple[int, ...] | None:
    """Returns the layers of each stage where both ends count as one; None where all are even."""
    if layers % stages == 0:
        return None
    whole = (layers + 2) // stages
    return (whole - 1, *[whole] * (stages - 2), whole - 1)


def _layout(manner: WeighedManner, row: int, card: Room) -> FoundLayout:
    parts = {name: float(each[row]) for name, each in manner.parts.items()}
    step, used = float(manner.step[row]), float(manner.in_use[row])
    return FoundLayout(manner.request(row), step, parts, used, card.card, card.limit)


def _quickest(weighed: list[WeighedManner], card: Room, most: int) -> list[FoundLayout]:
    """Returns the layouts that fit, the quickest first; of equal ones that which offloads nothing,
    then that which holds less."""
    keys = []
    for number, manner in enumerate(weighed):
        rows = np.flatnonzero(manner.in_use <= card.limit)
        order = np.lexsort((manner.in_use[rows], manner.step[rows]))[:most]
        is_away = manner.asked.offload != "none"
        keys += [
            (manner.step[row], is_away, manner.in_use[row], number, row) for row in rows[order]
        ]
    keys.sort()
    return [_layout(weighed[number], int(row), card) for *_, number, row in keys[:most]]


def _exact(found: list[FoundLayout], most: int, constants: Constants | None) -> list[FoundLayout]:
    """Returns the quickest as ``serried plan`` plans them: memory and schedule walked."""
    kept = []
    for each in found:
        made = job_plan(each.request, constants)
        fullest = made.memory.fullest
        if fullest.interval[1] <= fullest.card_bytes:
            kept.append(
                replace(
                    each,
                    step_s=made.step_s,
                    parts=made.parts,
                    in_use=float(fullest.total),
                    plan=made,
                )
            )
    kept.sort(key=lambda each: each.step_s)
    return kept[:most]


def _beside(found: list[FoundLayout]) -> tuple[FoundLayout, ...]:
    """Returns each with the part of its step that costs most beside the first one's."""
    if not found:
        return ()
    first = found[0]
    told = [first]
    for each in found[1:]:
        more = {name: each.parts[name] - first.parts.get(name, 0.0) for name in each.parts}
        part = max(more, key=lambda name: more[name])
        told.append(replace(each, slower_part=part, slower_s=more[part]))
    return tuple(told)


def _pareto(weighed: list[WeighedManner], card: Room) -> list[FoundLayout]:
    places = [
        (manner.step[row], manner.in_use[row], number, int(row))
        for number, manner in enumerate(weighed)
        for row in _front(manner.step, np.where(manner.in_use <= card.limit, manner.in_use, np.inf))
    ]
    places.sort()
    found, least = [], np.inf
    for _, used, number, row in places:
        if used < least:
            least = used
            found.append(_layout(weighed[number], row, card))
    return found


def _front(step: Real, used: Real) -> Whole:
    """Returns the rows that none beats in both, the quickest first."""
    order = np.lexsort((used, step))
    order = order[np.isfinite(step[order]) & np.isfinite(used[order])]
    if not len(order):
        return order
    least = np.minimum.accumulate(used[order])
    is_first = np.r_[True, used[order][1:] < least[:-1]]
    return order[is_first]


def _misses(
    weighed: list[WeighedManner], card: Room, most: int, constants: Constants | None
) -> tuple[FoundLayout, ...]:
    """Returns layouts that do not fit, those first that lack least, and time them too."""
    keys = []
    for number, manner in enumerate(weighed):
        rows = np.flatnonzero(manner.in_use > card.limit)
        order = np.argsort(manner.in_use[rows], kind="stable")[:most]
        keys += [(manner.in_use[row], number, int(row)) for row in rows[order]]
    keys.sort()
    return tuple(_timed(weighed[number], row, card, constants) for _, number, row in keys[:most])


def _timed(manner: WeighedManner, row: int, card: Room, constants: Constants | None) -> FoundLayout:
    rows = {name: column[row : row + 1] for name, column in manner.rows.items()}
    step, parts = times_of(manner.asked, rows, constants, manner.orders)
    told = {name: float(each[0]) for name, each in parts.items()}
    used = float(manner.in_use[row])
    return FoundLayout(manner.request(row), float(step[0]), told, used, card.card, card.limit)


def _none(asked: PlanRequest, space: SearchSpace) -> InputError:
    if space.fixed:
        return InputError(
            "no layout of {model} on {gpus} GPUs has {sizes}: tp must divide {heads} heads, stages "
            "{layers} layers, dp x microbatch the global batch of {batch}, 2 cp the sequence of "
            "{sequence}, and all of them the GPUs; leave a size open, or give another",
            model=asked.model.name,
            gpus=space.num_gpus,
            sizes=" ".join(f"{name} {size}" for name, size in space.fixed.items()),
            heads=asked.model.heads,
            layers=asked.model.layers,
            batch=asked.global_batch,
            sequence=asked.sequence,
        )
    return InputError(
        "no layout of {model} on {gpus} GPUs has dp x microbatch that divides the global batch of "
        "{batch} and stages that divide {layers} layers; give another batch or number of GPUs",
        model=asked.model.name,
        gpus=space.num_gpus,
        batch=asked.global_batch,
        layers=asked.model.layers,
    )
