"""What is asked of a schedule: a name or a file, sizes, times and memory, whatever the way in.

    options, an address ──> texts ────┐
    Python ──> numbers, Costs ────────┴─> ScheduleRequest ──> Schedule ──┐
                                                   times of its stages ──┴─> MeasuredSchedule

Every way in makes this one value, under the names of the options, so that all answer alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from serried.errors import InputError
from serried.number import shortened, whole_number
from serried.pipeline.action_lists import read_csv
from serried.pipeline.costs import Costs, Duration, Extra, Links, Number, read_numbers
from serried.pipeline.in_flight import TO_WEIGHT, Weights
from serried.pipeline.measured import MeasuredSchedule
from serried.pipeline.registry import Request, generate, known
from serried.pipeline.schedule import Schedule
from serried.pipeline.schedules.zero_bubble.auto import Memory
from serried.pipeline.simulate import simulate

SIZES = ("stages", "microbatches", "chunks", "group")
OF_A_STAGE = (
    *("forward", "input_grad", "weight_grad", "backward"),
    *("overlap", "recompute", "all_reduce"),
)
"""Times of one stage, or of all stages of a rank together."""
OF_LINKS = ("latency", "message_bytes", "bandwidth")
BOTH = ("stage", "rank")
"""What times and the memory limit can be of."""


@dataclass(frozen=True)
class ScheduleRequest:
    """Holds what is asked: a schedule by its name or file, sizes, the work's costs, and memory.

    >>> ScheduleRequest("1f1b", stages=4, microbatches=8).measured().simulation.makespan
    33

    A name that ends in .csv is a file of actions, which says its sizes itself. Times and the
    memory limit are of a stage; with ``is_of_rank`` they are of all that a rank has of the model,
    of which each of its v stages takes 1/v. So schedules of one and of several stages a rank do
    the same work on the same model, and can stand on one time axis.
    """

    name: str
    stages: int | None = None
    """Ranks of the pipeline."""
    microbatches: int | None = None
    chunks: int | None = None
    """Stages on each rank."""
    group: int | None = None
    """Microbatches that run through a chunk before the next chunk does."""
    moe_overlap: bool = False
    costs: Costs = field(default_factory=Costs)
    memory_limit: Number | None = None
    weights: Weights = TO_WEIGHT
    """What F, I and W add to the memory that the limit bounds."""
    is_of_rank: bool = False

    @classmethod
    def of(
        cls, name: str, given: Mapping[str, object], costs: Costs | None = None
    ) -> ScheduleRequest:
        """Reads what is given under the names of the options; None and "" are not given.

        Each is a text, as it is typed, or a number or numbers already. ``costs`` stand in for all
        that says how long things take.

        >>> asked = ScheduleRequest.of("zbv", {"stages": "2", "input_grad": "1/3", "of": "rank"})
        >>> asked.stages, asked.costs.input_grad, asked.is_of_rank
        (2, Fraction(1, 3), True)

        Raises InputError for what is not of its form.
        """
        told = {key: each for key, each in given.items() if each is not None and each != ""}
        memory = _three(told, "memory")
        return cls(
            name.strip() if _is_file(name) else name.strip().lower(),
            **{size: whole_number(str(told[size]), size) for size in SIZES if size in told},
            moe_overlap=_switch(told, "moe_overlap"),
            costs=costs or _costs(told),
            memory_limit=_one(told, "memory_limit"),
            weights=TO_WEIGHT if memory is None else memory,
            is_of_rank=_of(told) == "rank",
        )

    def measured(self) -> MeasuredSchedule:
        """Makes, simulates and measures it; raises InputError for what cannot be."""
        schedule, limit = self.schedule(), self.memory_limit
        if limit is not None and limit < 1 and self.weights == TO_WEIGHT:
            raise InputError(
                "{name}={limit} holds no activation; a schedule needs room for at least 1",
                name="memory-limit",
                limit=limit,
            )
        parts = self.parts(schedule)
        limit = None if limit is None else limit * parts
        simulation = simulate(schedule, _shared(self.costs, parts))
        return MeasuredSchedule(simulation, memory_limit=limit, weights=self.weights)

    def schedule(self) -> Schedule:
        """Generates or reads its lists of actions; raises InputError for sizes it cannot have."""
        if _is_file(self.name):
            return self._agreeing(read_csv(Path(self.name)))
        known(self.name)
        asked = Request(
            _required("stages", self.stages),
            _required("microbatches", self.microbatches),
            self.chunks,
            self.group,
            moe_overlap=self.moe_overlap,
            costs=self.costs,
            memory=Memory(self.memory_limit, *self.weights),
        )
        return generate(self.name, asked)

    def parts(self, schedule: Schedule) -> int:
        """Returns into how many parts its stages cut what the times are of: 1 for a stage.

        Of a schedule that flows both ways a rank holds two stages, but two copies of them.
        """
        placement = schedule.placement
        return max(1, placement.num_stages // placement.num_ranks) if self.is_of_rank else 1

    def options(self) -> list[str]:
        """Returns the options of ``serried schedule`` that ask for the same, after the name.

        >>> ScheduleRequest.of("zbv", {"stages": 4, "microbatches": 8, "forward": "1/2"}).options()
        ['--stages', '4', '--microbatches', '8', '--forward', '1/2']
        """
        costs, links = self.costs, self.costs.links
        plain, told = Costs(), {name: getattr(self, name) for name in SIZES}
        usual: dict[str, object] = dict.fromkeys(SIZES)
        for name in (*OF_A_STAGE, "optimizer"):
            told[name], usual[name] = getattr(costs, name), getattr(plain, name)
        for name in OF_LINKS:
            told[name], usual[name] = getattr(links, name), getattr(plain.links, name)
        for name, extra in (("embedding", costs.embedding), ("loss", costs.loss)):
            told[name], usual[name] = _numbers_of(extra), _numbers_of(plain.loss)
        told |= {"memory_limit": self.memory_limit, "memory": self.weights}
        usual |= {"memory_limit": None, "memory": TO_WEIGHT}
        told["of"], usual["of"] = BOTH[self.is_of_rank], BOTH[0]
        # Only what differs from the command's own defaults is written.
        differ = [name for name in told if told[name] != usual[name]]
        words = [word for name in differ for word in (_option(name), _text(told[name]))]
        flags = {
            "moe_overlap": self.moe_overlap,
            "recompute_early": costs.is_recompute_early,
            "blocking": links.is_blocking,
        }
        return words + [_option(name) for name, is_set in flags.items() if is_set]

    def _agreeing(self, read: Schedule) -> Schedule:
        """Returns a schedule read from a file; raises InputError for sizes that contradict it."""
        found = {
            "stages": (self.stages, read.num_ranks),
            "microbatches": (self.microbatches, read.num_microbatches),
            "chunks": (self.chunks, read.placement.stages_per_rank),
        }
        for option, (asked, has) in found.items():
            if asked is not None and asked != has:
                raise InputError(
                    "{name} has {option}={has}, and --{option} is {asked}; leave that out",
                    name=read.name,
                    option=option,
                    has=has,
                    asked=asked,
                )
        return read


def _is_file(name: str) -> bool:
    return name.strip().lower().endswith(".csv")


def _required(option: str, size: int | None) -> int:
    if size is None:
        raise InputError(
            "the number of {option} is missing; give it, such as --{option} 4", option=option
        )
    return size


# ----------------------------------------------------------------- what is given, as it is typed


def _costs(given: Mapping[str, object]) -> Costs:
    """Returns the costs that are given; what is not takes the default of ``Costs``."""
    times: dict[str, Any] = {name: _duration(given, name) for name in OF_A_STAGE if name in given}
    for name in ("embedding", "loss"):
        extra = _three(given, name)
        times |= {name: Extra(*extra)} if extra is not None else {}
    if "optimizer" in given:
        times["optimizer"] = _one(given, "optimizer")
    links: dict[str, Any] = {
        name: _one(given, name)
        for name in ("latency", "message_bytes", "bandwidth")
        if name in given
    }
    return Costs(
        **times,
        is_recompute_early=_switch(given, "recompute_early"),
        links=Links(**links, is_blocking=_switch(given, "blocking")),
    )


def _duration(given: Mapping[str, object], name: str) -> Any:
    """Returns one number, or one for each stage."""
    value = given[name]
    if not isinstance(value, str):
        return value
    numbers = read_numbers(_option(name), value)
    return numbers[0] if len(numbers) == 1 else numbers


def _one(given: Mapping[str, object], name: str) -> Any:
    if name not in given:
        return None
    numbers = _duration(given, name)
    if isinstance(numbers, Sequence):
        raise InputError(
            "--{option} takes one number; it got {count}",
            option=name.replace("_", "-"),
            count=len(numbers),
        )
    return numbers


def _three(given: Mapping[str, object], name: str) -> tuple[Number, Number, Number] | None:
    """Returns what F, I and W take; None where nobody says."""
    if name not in given:
        return None
    value = given[name]
    numbers = read_numbers(_option(name), value) if isinstance(value, str) else value
    if not isinstance(numbers, Sequence) or len(numbers) != 3:
        raise InputError(
            "--{option} takes three numbers, for F, I and W, such as 1,0,2; it got {count}",
            option=name,
            count=len(numbers) if isinstance(numbers, Sequence) else 1,
        )
    return numbers[0], numbers[1], numbers[2]


def _switch(given: Mapping[str, object], name: str) -> bool:
    text = str(given.get(name, False)).lower()
    if text not in ("true", "false", "1", "0"):
        raise InputError(
            "{key}={value} is not a switch; it is true or false", key=name, value=shortened(text)
        )
    return text in ("true", "1")


def _of(given: Mapping[str, object]) -> str:
    text = str(given.get("of", BOTH[0]))
    if text not in BOTH:
        raise InputError(
            "of={of} is not known; times are of a rank or of a stage", of=shortened(text)
        )
    return text


# ----------------------------------------------------------------- times shared, and as texts


def _shared(costs: Costs, parts: int) -> Costs:
    """Returns the costs of one of ``parts`` stages that share them."""
    if parts == 1:
        return costs
    times: dict[str, Any] = {name: _divided(getattr(costs, name), parts) for name in OF_A_STAGE}
    return replace(costs, **times)


def _divided(time: Duration | None, parts: int) -> Any:
    if isinstance(time, Sequence):
        return tuple(_divided(each, parts) for each in time)
    if time is None:
        return None
    return time / parts if isinstance(time, float) else Fraction(time) / parts


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _numbers_of(extra: Extra) -> tuple[Number, Number, Number]:
    return extra.forward, extra.input_grad, extra.weight_grad


def _text(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
