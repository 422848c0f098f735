"""What ``serried groups --zero`` adds: what ranks share, and the bytes that a rank holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from serried.errors import InputError
from serried.mesh import Layout
from serried.plan.model_states import ModelStates, model_states, read_parameters
from serried.plan.precision import DEFAULT, Precision, recipe
from serried.views.explain.plain import wrap
from serried.views.sentences import say
from serried.views.sharding.document import sharding_document
from serried.views.sharding.text import detail_lines, states_table, verdict
from serried.views.table import Table


@dataclass(frozen=True)
class ShardingAnswer:
    """Holds what is said of a layout's sharding, in whichever form."""

    layout: Layout
    states: ModelStates | None
    precision: Precision

    @classmethod
    def of(cls, layout: Layout, options: Mapping[str, Any]) -> ShardingAnswer | None:
        """Returns what ``--zero`` and ``--parameters`` ask for; None where neither is given.

        Raises InputError for a number or a recipe that is none.
        """
        given = options.get("parameters")
        for name in ("expert_parameters", "precision"):
            if options.get(name) and not given:
                raise InputError(
                    "--{option} says something of --parameters; give that too",
                    option=name.replace("_", "-"),
                )
        if not given:
            asked = "zero" in layout.settings
            return cls(layout, None, recipe(DEFAULT)) if asked else None
        kept = recipe(options.get("precision") or DEFAULT)
        experts = options.get("expert_parameters")
        states = model_states(
            layout,
            read_parameters(given),
            kept,
            expert_parameters=read_parameters(experts) if experts else 0,
        )
        return cls(layout, states, kept)

    def parts(self, width: int, lang: str) -> list[str | Table]:
        """Returns the verdict, a row per state, and what stands behind it."""
        told: list[str | Table] = [*wrap(say(verdict(self.layout, self.states), lang), width)]
        sharding = self.layout.sharding
        if sharding is None:
            return told
        details = detail_lines(self.layout, self.states, self.precision, width=width, lang=lang)
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
