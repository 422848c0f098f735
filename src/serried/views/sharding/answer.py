"""What is answered of a layout's sharding: as text, JSON or a picture, by whoever it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from serried.errors import InputError
from serried.mesh import Layout
from serried.plan.model_states import ModelStates, model_states, read_parameters
from serried.plan.precision import DEFAULT, Precision, recipe
from serried.plan.sharded_step import ShardedStep, step_of
from serried.views.explain.plain import wrap
from serried.views.sentences import say
from serried.views.sharding.document import sharding_document
from serried.views.sharding.step_document import step_document
from serried.views.sharding.step_text import step_table, step_verdict
from serried.views.sharding.text import detail_lines, states_table, verdict
from serried.views.table import Table

LAYERS = 4
"""Layers that a step is shown with where nothing says how many there are."""


@dataclass(frozen=True)
class ShardingAnswer:
    """Holds what is said of a layout's sharding, in whichever form."""

    layout: Layout
    states: ModelStates | None
    precision: Precision

    @classmethod
    def of(cls, layout: Layout, given: Mapping[str, str | None]) -> ShardingAnswer | None:
        """Returns what a stage and ``given`` texts ask for; None where there is neither.

        ``given`` may have ``parameters``, ``expert_parameters`` and ``precision``.

        Raises InputError for a number or a recipe that is none.
        """
        count, name = given.get("parameters"), given.get("precision") or DEFAULT
        for other in ("expert_parameters", "precision"):
            if given.get(other) and not count:
                raise InputError(
                    "--{option} says something of --parameters; give that too",
                    option=other.replace("_", "-"),
                )
        kept = recipe(name)
        if not count:
            return cls(layout, None, kept) if "zero" in layout.settings else None
        experts = given.get("expert_parameters")
        states = model_states(
            layout,
            read_parameters(count),
            kept,
            expert_parameters=read_parameters(experts) if experts else 0,
        )
        return cls(layout, states, kept)

    def parts(self, columns: int, lang: str) -> list[str | Table]:
        """Returns the verdict, a row per state, and what stands behind it."""
        told: list[str | Table] = [*wrap(say(verdict(self.layout, self.states), lang), columns)]
        sharding = self.layout.sharding
        if sharding is None:
            return told
        details = detail_lines(self.layout, self.states, self.precision, width=columns, lang=lang)
        return [*told, "", states_table(sharding, self.states, lang=lang), "", *details]

    def document(self, lang: str) -> dict[str, Any] | None:
        """Returns the ``sharding`` object of the JSON."""
        return sharding_document(self.layout, self.states, self.precision, lang)

    def picture(self, form: str, lang: str) -> str | bytes:
        """Returns the bars as ``svg`` or ``png``; raises InputError where there are none."""
        if self.layout.sharding is None:
            raise InputError(
                "{framework} lays out ranks alone, and what they share is up to the program; ask "
                "a framework that shards, such as megatron, deepspeed or fsdp",
                framework=self.layout.framework,
            )
        if form == "png":
            from serried.views.sharding.png import sharding_png

            return sharding_png(self.layout, self.states, self.precision)
        from serried.views.sharding.svg import sharding_svg

        return sharding_svg(self.layout, self.states, self.precision, lang=lang)


@dataclass(frozen=True)
class StepAnswer:
    """Holds one step under a layout's sharding, in whichever form."""

    layout: Layout
    step: ShardedStep
    layers: tuple[int, ...]
    precision: Precision
    microbatches: int

    @classmethod
    def of(
        cls,
        layout: Layout,
        given: Mapping[str, str | None],
        *,
        layers: int | None,
        microbatches: int,
    ) -> StepAnswer:
        """Returns a step over ``layers`` of the model, 4 where None says how many.

        Raises InputError without a number of parameters, and as the step does.
        """
        count = given.get("parameters")
        if not count:
            raise InputError(
                "a step is counted in bytes of parameters; give their number too, such as "
                "--parameters 7.5B"
            )
        kept = recipe(given.get("precision") or DEFAULT)
        found, sizes = step_of(
            layout,
            read_parameters(count),
            kept,
            layers=LAYERS if layers is None else layers,
            microbatches=microbatches,
        )
        return cls(layout, found, sizes, kept, microbatches)

    def parts(self, columns: int, lang: str) -> list[str | Table]:
        """Returns the verdict and a row per event."""
        told = wrap(say(step_verdict(self.step, self.microbatches), lang), columns)
        return [*told, "", step_table(self.step, lang=lang)]

    def document(self, lang: str) -> dict[str, Any]:
        """Returns the ``serried.sharded-step/1`` document."""
        return step_document(
            self.layout,
            self.step,
            self.layers,
            self.precision,
            microbatches=self.microbatches,
            lang=lang,
        )
