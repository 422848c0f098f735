"""What the page asks of a layout's sharding: who shares what, and a step event by event."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from serried.plan.precision import RECIPES
from serried.views.colours import STATES
from serried.views.sentences import say
from serried.views.sharding.answer import ShardingAnswer, StepAnswer
from serried.views.sharding.bars import bars_rows
from serried.views.sharding.text import verdict
from serried.views.web.plan.sharded_step import planned_sizes
from serried.views.web.wire.query import Query, Words, read_count, read_word

GIVEN = ("parameters", "expert_parameters", "precision")
"""Words that say of a model how large it is; they are those of the command line."""


def sharding_answer(query: Query, words: Words, lang: str) -> dict[str, Any]:
    """Returns the ``serried.sharding/1`` document: the sharding, its bars, and a step of it.

    The step is there where ``parameters`` and ``microbatches`` are given, ``layers`` as the
    command line takes it; all three are those of the job's plan where ``priced`` is plan. Raises
    InputError as the command line does.
    """
    layout = query.layout
    planned = planned_sizes(query, words)
    given = planned.words if planned else {name: read_word(words, name) for name in GIVEN}
    found = ShardingAnswer.of(layout, given) or ShardingAnswer(layout, None, RECIPES["fp16-adam"])
    microbatches = planned.microbatches if planned else read_count(words, "microbatches")
    step = None
    if microbatches is not None:
        layers = query.request.numbers("layers")
        count = planned.layers if planned else sum(layers) if layers else None
        step = StepAnswer.of(layout, given, layers=count, microbatches=microbatches)
    bars = bars_rows(layout, found.precision, found.states) if layout.sharding else []
    return {
        "schema": "serried.sharding/1",
        "framework": layout.framework,
        "world_size": layout.world_size,
        "verdict": say(verdict(layout, found.states), lang),
        "sharding": found.document(lang),
        "bars": [asdict(row) for row in bars],
        "colours": STATES,
        "precisions": [asdict(each) for each in RECIPES.values()],
        "step": step.document(lang) if step else None,
        "planned": planned.document(step.step) if planned and step else None,
    }
