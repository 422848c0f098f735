"""The launch config as read: format, framework, each size with its place, and what is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from serried import frameworks
from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.launch.facts.found import FIELDS, Facts, Found, Missing, Value, apart, chained
from serried.mesh import Placement
from serried.mesh.sizes import BESIDE_WORLD, SIZES, Sizes

EXAMPLES = {
    "world_size": "--world-size 64",
    "order": "--order tp-cp-ep-dp-pp",
}
Derive = Callable[[Sizes], Sizes]


@dataclass
class Reading:
    """Holds what a reader of one format makes of a file, before it is settled.

    ``product`` maps the sizes whose product the framework demands to be the world to what
    each is when not given; None there means that the product is then open.
    """

    format: str
    facts: Facts
    framework: str | None = None
    version: str | None = None
    product: Mapping[str, int | None] = field(default_factory=dict)
    derive: Derive | None = None
    """Completes the sizes as the framework's own trainer does, once the world is known."""
    names: str = ""
    """The DeepSpeed JSON that it names, which may stand beside it and hold the stage."""


@dataclass(frozen=True)
class LaunchConfig:
    """Holds what a launch file says: every value with the place it came from.

    ``fields`` are sizes under neutral names, ``options`` settings under the framework's own
    names (as ``--set`` takes them), ``missing`` what the file leaves open, and ``notes``
    sentences that its owner should read.
    """

    file: str
    format: str
    framework: str | None
    version: str | None
    fields: Mapping[str, Found]
    options: Mapping[str, Found]
    missing: tuple[Missing, ...] = ()
    notes: tuple[Sentence, ...] = ()
    product: Mapping[str, int | None] = field(default_factory=dict, repr=False)
    derive: Derive | None = field(default=None, repr=False, compare=False)
    is_world_contested: bool = field(default=False, repr=False)
    """Whether the file means to give the world size, but does not settle it."""
    training: Mapping[str, Found] = field(default_factory=dict, repr=False)
    """What it says of the model and its training, by the names of ``facts.training``."""
    encodings: Mapping[str, str] = field(default_factory=dict)
    """The encodings of files that values come from, where they are not UTF-8, by name."""

    @classmethod
    def of(cls, reading: Reading) -> LaunchConfig:
        """Settles what a reader found."""
        facts = reading.facts
        settled = facts.settled()
        config = cls(
            file=facts.file,
            format=reading.format,
            framework=reading.framework,
            version=reading.version,
            fields={name: settled[name] for name in FIELDS if name in settled},
            options={name: each for name, each in settled.items() if name not in FIELDS},
            # The framework is left out here: '_with_missing' puts it in front of the others.
            missing=tuple(each for each in facts.unsettled() if each.name != "framework"),
            notes=tuple(facts.notes),
            product=reading.product,
            derive=reading.derive,
            is_world_contested=any(each.name == "world_size" for each in facts.unsettled()),
            training=facts.training,
        )
        return config._with_missing(facts)

    def _with_missing(self, facts: Facts) -> LaunchConfig:
        """Adds the framework and the world size to what is missing, where they are."""
        missing = list(self.missing)
        if self.framework is None:
            reasons = facts.lacks.get("framework") or [
                said("nothing in {file} tells a framework", file=self.file)
            ]
            example = facts.examples.get("framework", "")
            missing.insert(0, Missing("framework", reasons[0], example))
        if self.world_size is None and all(each.name != "world_size" for each in missing):
            missing.append(Missing("world_size", self._why_no_world()))
        return LaunchConfig(**{**vars(self), "missing": tuple(missing)})

    # ------------------------------------------------------------------- the world

    @property
    def world_size(self) -> Found | None:
        """The number of ranks with its place: given, or nodes times ranks per node, or
        the product of degrees where the framework demands that.
        """
        return self._world({})

    def _world(self, given: Mapping[str, Value]) -> Found | None:
        if "world_size" in given:
            return Found(given["world_size"])
        # In the order of their weight: what was asked for, what the file says, and what follows
        # from nodes or degrees. A file that means to say it but contradicts itself is not
        # overruled by what follows.
        open_names = {each.name for each in self.missing} - set(given)
        if self.is_world_contested:
            return None
        if "world_size" in self.fields:
            return self.fields["world_size"]
        if {"nodes", "gpus_per_node"} <= set(self.fields):
            return self._multiplied([self.fields["nodes"], self.fields["gpus_per_node"]])
        if not self.product or open_names & set(self.product):
            return None
        said_here = {**self.options, **self.fields}
        said_here |= {name: Found(value) for name, value in given.items()}
        parts = [
            said_here.get(name) or (Found(default, key=name) if default else None)
            for name, default in self.product.items()
        ]
        return self._multiplied(parts)

    def _multiplied(self, parts: Sequence[Found | None]) -> Found | None:
        known = [part for part in parts if part is not None and isinstance(part.value, int)]
        numbers = [part.value for part in known if isinstance(part.value, int)]
        # A factor below one, such as -1, stands for what the others leave.
        if len(known) < len(parts) or min(numbers) < 1:
            return None
        told = tuple(part for part in known if part.file or part.default_of)
        return Found(prod(numbers), file=self.file, parts=told)

    def _why_no_world(self) -> Sentence:
        because = [each for each in self.missing if each.name in ("nodes", "gpus_per_node")]
        if because:
            reasons = [said("{name}: {why}", name=each.name, why=each.because) for each in because]
            return chained(apart, reasons)
        return said("{file} does not say on how many ranks it runs", file=self.file)

    # ------------------------------------------------------------------- settling

    @property
    def framework_at(self) -> str:
        """The framework as ``--framework`` takes it; raises InputError when it is not known."""
        if self.framework is None:
            raise self._ask("framework")
        return f"{self.framework}@{self.version}" if self.version else self.framework

    def sizes(
        self, given: Mapping[str, Value | None] | None = None, options: Mapping[str, str] = {}
    ) -> Sizes:
        """Returns the sizes that the file says, those ``given`` going before them.

        ``given`` uses the names of ``Sizes``; None there means not given. Raises InputError
        for the first size that neither settles, saying why and which option would.
        """
        taken = {name: value for name, value in (given or {}).items() if value is not None}
        for each in self.unanswered(taken, options):
            raise self._ask(each.name)
        world = self._world(taken)
        assert world is not None, "it is among what is unanswered"
        values = {name: self.fields[name].value for name in SIZES if name in self.fields}
        values |= {name: value for name, value in taken.items() if name in SIZES}
        settings = {name: str(found.value) for name, found in self.options.items()}
        sizes = Sizes.of({**values, "world_size": world.value}, {**settings, **options})
        # What a trainer derives comes last, for it divides the world, which is known only now.
        return self.derive(sizes) if self.derive else sizes

    def unanswered(
        self, given: Mapping[str, Value | None] | None = None, options: Mapping[str, str] = {}
    ) -> tuple[Missing, ...]:
        """Returns what must still be given before there are sizes, the world size last."""
        taken = {name: value for name, value in (given or {}).items() if value is not None}
        asked = [
            each
            for each in self.missing
            if (each.name in BESIDE_WORLD or each.name not in (*FIELDS, "framework"))
            and each.name not in taken
            and each.name not in options
        ]
        # Where a factor of the world is asked for already, its answer gives the world as well.
        if self._world(taken) is None and not self.product.keys() & {each.name for each in asked}:
            told = (each for each in self.missing if each.name == "world_size")
            asked.append(next(told, Missing("world_size", self._why_no_world())))
        return tuple(asked)

    def placement(
        self,
        world_size: int,
        *,
        gpus_per_node: int | Sequence[int] | None = None,
        gpus_per_rank: int | None = None,
    ) -> Placement:
        """Returns where ranks sit: as given, else as the file says, else 8 GPUs a node.

        Nodes that differ are those of the file's own world, not of another that was asked for.
        """
        told = nodes_told(self.fields)
        # '4,1' are nodes of a world of 5; under '--world-size 8' they say nothing.
        if not isinstance(told, int | None) and sum(told) != world_size:
            told = None
        asked = told if gpus_per_node is None else gpus_per_node
        return Placement.on(
            world_size,
            Placement.gpus_per_node if asked is None else asked,
            Placement.gpus_per_rank if gpus_per_rank is None else gpus_per_rank,
        )

    def _ask(self, name: str) -> InputError:
        """Returns the error that asks for ``name``."""
        missing = next((each for each in self.missing if each.name == name), None)
        because = missing.because if missing else self._why_no_world()
        option = missing.example if missing else ""
        if name == "framework" and not option:
            return InputError(
                "{file} does not settle framework: {because}; give --framework and one of {known}",
                file=self.file,
                because=because,
                known=listed(frameworks.NAMES, limit=20),
            )
        # The few answers that the file itself leaves go before an example that fits any file.
        option = option or EXAMPLES.get(name) or (missing.option if missing else "")
        if name in BESIDE_WORLD and name != "order":
            option = f"{option} 2"
        return InputError(
            "{file} does not settle {name}: {because}; give it, such as {option}",
            file=self.file,
            name=name,
            because=because,
            option=option,
        )


def nodes_told(fields: Mapping[str, Found]) -> int | tuple[int, ...] | None:
    """Returns the GPUs of a node, or of each where they differ; None where nothing tells."""
    if "node_gpus" in fields:
        return tuple(map(int, str(fields["node_gpus"].value).split(",")))
    return int(fields["gpus_per_node"].value) if "gpus_per_node" in fields else None
