"""What ranks share, as the ``sharding`` object of ``serried.groups/1``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from serried.mesh import Layout
from serried.mesh.sharding import STATES, Cut, StateCuts
from serried.plan.model_states import ModelStates, WeightStates
from serried.plan.precision import Precision
from serried.views.sentences import say
from serried.views.sharding.text import verdict


def sharding_document(
    layout: Layout, states: ModelStates | None, precision: Precision, lang: str
) -> dict[str, Any] | None:
    """Returns the object; None where a program of the user's decides what is shared.

    ``bytes`` and ``parameters`` are None without a number of parameters.
    """
    sharding = layout.sharding
    if sharding is None:
        return None
    return {
        "verdict": say(verdict(layout, states), lang),
        "stage": sharding.stage,
        "spelled": sharding.spelled,
        "source": sharding.source,
        "weights": [
            _weights(cuts, states.each[number] if states else None)
            for number, cuts in enumerate(sharding.each)
        ],
        "levels": list(sharding.levels),
        "padding": say(sharding.padding, lang) if sharding.padding else None,
        "notes": [say(note, lang) for note in sharding.notes],
        "precision": asdict(precision),
        "parameters": states.num_parameters if states else None,
        "bytes": {"held": _bytes(states), "whole": states.whole.total} if states else None,
    }


def _weights(cuts: StateCuts, states: WeightStates | None) -> dict[str, Any]:
    return {
        "weights": cuts.weights,
        "data": _cut(cuts.data, cuts),
        **{state: _cut(cuts.cut(state), cuts) for state in STATES},
        "across": cuts.across or None,
        "near": None if cuts.near.is_whole else _cut(cuts.near, cuts),
        "kept": cuts.is_kept,
        "parameters_of_rank": states.num_parameters if states else None,
        "bytes": {"held": asdict(states.held), "whole": asdict(states.whole)} if states else None,
    }


def _cut(cut: Cut, cuts: StateCuts) -> dict[str, Any]:
    """Returns the kinds that cut it, the ranks that share a copy, and how many copies there are."""
    over = list(cut.over) if cut.ranks > 1 else []
    return {"over": over, "ranks": cut.ranks, "copies": cuts.data.ranks // cut.ranks}


def _bytes(states: ModelStates) -> dict[str, int]:
    return asdict(states.held) | {"total": states.held.total}
