"""The ways in which layouts split layers: what follows of each is counted once, then laid on rows.

    rows of equal tp, ep, etp, with cp or without  ─>  one way
    a way  ─>  weights of a layer, of the ends; what a layer keeps; what the ends keep

What a layer keeps of a token is the same for every cp above 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serried.plan.memory.ends import end_use
from serried.plan.memory.implementation import Implementation, implementation_of
from serried.plan.memory.layer import LayerPlan
from serried.plan.memory.linears import layer_linears
from serried.plan.memory.recompute import LayerUse, layer_use
from serried.plan.model.parameters import (
    adapter_parameters,
    layer_parameters,
    padded_vocab,
    stage_parameters,
)
from serried.plan.model.shape import ModelShape
from serried.plan.model.stages import ModelStage
from serried.plan.request import LowRank, PlanRequest, Recompute

Column = NDArray[Any]
EMBEDDED = ModelStage(0, range(0), has_embedding=True)
SCORED = ModelStage(0, range(0), has_output=True, mtp_layers=0)
BOTH = ModelStage(0, range(0), has_embedding=True, has_output=True)


class Split(NamedTuple):
    """Holds one way to split a layer."""

    tp: int
    cp: int
    """2 for all above 1."""
    ep: int
    etp: int


@dataclass(frozen=True, eq=False)
class LayerWeights:
    """Counts the weights of one layer on a rank, by whether it has experts; a row a layout."""

    dense: Mapping[bool, Column]
    """Those that are no expert's."""
    experts: Mapping[bool, Column]
    total: Mapping[bool, Column]
    linears: Mapping[bool, Column]
    """Those of linear layers, which have copies in 8 or 4 bits."""
    shapes: Mapping[bool, Column]
    """Those of one linear layer of each shape that there is."""
    adapters: Mapping[bool, Column]
    """Those of LoRA, beside ``total``."""


@dataclass(frozen=True, eq=False)
class EndWeights:
    """Holds the weights of the ends on a rank: of the embedding, of the output, and of both."""

    total: tuple[Column, Column, Column]
    tables: tuple[Column, Column, Column]
    table: Column
    """Weights of one table of words."""


@dataclass(frozen=True, eq=False)
class KeptColumns:
    """Holds what a layer keeps of a token, by whether it has experts, and what the ends keep.

    All are bytes of one token, a row a layout, as ``LayerUse`` and ``EndUse`` have them of one.
    """

    sp: Column
    """Ranks that share a sequence's activations: no bytes, but what they are divided by."""
    kept: Mapping[bool, Column]
    """From forward to backward."""
    again: Mapping[bool, Column]
    """What backward computes again."""
    between: Mapping[bool, Column]
    """From the input half of a backward to its weight half."""
    worked: Mapping[bool, Column]
    """What backward works with, what it computes again in it."""
    stream: Column
    """A layer's input."""
    first_kept: Column
    """What the embedding keeps."""
    last_kept: Column
    """What the last norm keeps."""
    scores: Column
    """What the loss keeps, from its forward to its backward."""
    scores_worked: Column
    """What the backward of loss and output works with."""
    table: Column
    """Weights of a rank's part of the table of words: a number a rank, not bytes of a token."""


@dataclass(frozen=True, eq=False)
class Splits:
    """Holds the ways that some layouts split layers in, and which each has."""

    ways: tuple[Split, ...]
    at: NDArray[np.intp]

    @classmethod
    def of(cls, tp: Column, cp: Column, ep: Column, etp: Column) -> Splits:
        """Returns the distinct ways among columns of degrees.

        >>> one = np.ones(3, np.int64)
        >>> Splits.of(np.array([2, 1, 2]), 4 * one, one, one).at.tolist()
        [1, 0, 1]
        """
        columns = (tp, np.minimum(cp, 2), ep, etp)
        key = np.zeros(len(tp), np.int64)
        for each in columns:
            key = key * (int(each.max(initial=0)) + 1) + each
        _, chosen, at = np.unique(key, return_index=True, return_inverse=True)
        rows = zip(*(each[chosen].tolist() for each in columns), strict=True)
        return cls(tuple(Split(*row) for row in rows), at.ravel())

    def column(self, number: Callable[[Split], float]) -> Column:
        """Returns a number of each way, laid on the rows that have it."""
        return np.array([number(way) for way in self.ways])[self.at]

    def layers(self, asked: PlanRequest, kinds: Sequence[bool]) -> LayerWeights:
        """Returns the weights of layers of some kinds, with experts (True) or without."""
        model = asked.model
        parts: dict[str, dict[bool, Column]] = {}
        for kind in kinds:
            told = np.array([_layer_weights(model, kind, way, asked.lora) for way in self.ways])
            for place, name in enumerate(LayerWeights.__dataclass_fields__):
                parts.setdefault(name, {})[kind] = told[:, place][self.at]
        return LayerWeights(**parts)

    def ends(self, asked: PlanRequest) -> EndWeights:
        """Returns the weights of embedding and output."""
        model, framework = asked.model, asked.framework

        def of(stage: ModelStage) -> tuple[Column, Column]:
            found = [
                stage_parameters(model, stage, tp=way.tp, framework=framework) for way in self.ways
            ]
            tables = [each.embedding + each.positions + each.output for each in found]
            return np.array([each.total for each in found])[self.at], np.array(tables)[self.at]

        first, last, both = of(EMBEDDED), of(SCORED), of(BOTH)
        return EndWeights(
            (first[0], last[0], both[0]),
            (first[1], last[1], both[1]),
            self.column(lambda way: _table_rows(asked, way.tp) * model.hidden),
        )

    def kept(self, asked: PlanRequest, plan: LayerPlan, kinds: Sequence[bool]) -> KeptColumns:
        """Returns what layers of some kinds keep, and the ends, as a request recomputes."""
        model = asked.model
        built = implementation_of(asked.framework, asked.options)
        plans = [replace(plan, tp=way.tp, cp=way.cp, ep=way.ep, etp=way.etp) for way in self.ways]
        uses = {
            kind: [
                _layer_use(model, kind, each, built, asked.recompute, asked.lora) for each in plans
            ]
            for kind in kinds
        }
        vocabs = [padded_vocab(model.vocab, asked.framework, way.tp) for way in self.ways]
        told = list(zip(plans, vocabs, strict=True))
        first = [end_use(model, EMBEDDED, each, built, vocab) for each, vocab in told]
        last = [end_use(model, SCORED, each, built, vocab) for each, vocab in told]

        def laid(numbers: Sequence[float]) -> Column:
            return np.array(numbers)[self.at]

        return KeptColumns(
            sp=laid([each.sp for each in plans]),
            kept={kind: laid([each.kept for each in found]) for kind, found in uses.items()},
            again={kind: laid([each.again for each in found]) for kind, found in uses.items()},
            between={
                kind: laid([min(each.between, each.kept) for each in found])
                for kind, found in uses.items()
            },
            worked={
                kind: laid([each.worked + each.again for each in found])
                for kind, found in uses.items()
            },
            stream=laid([each.stream for each in next(iter(uses.values()))]),
            first_kept=laid([each.kept for each in first]),
            last_kept=laid([each.kept for each in last]),
            scores=laid([each.scores for each in last]),
            scores_worked=laid([each.scores_worked for each in last]),
            table=self.column(
                lambda way: (
                    model.hidden * padded_vocab(model.vocab, asked.framework, way.tp) // way.tp
                )
            ),
        )


def _table_rows(asked: PlanRequest, tp: int) -> int:
    return padded_vocab(asked.model.vocab, asked.framework, tp) // tp


@lru_cache(maxsize=4096)
def _layer_use(
    model: ModelShape,
    kind: bool,
    plan: LayerPlan,
    built: Implementation,
    recompute: Recompute,
    lora: LowRank | None,
) -> LayerUse:
    return layer_use(model, kind, plan, built, recompute, lora)


@lru_cache(maxsize=4096)
def _layer_weights(
    model: ModelShape, kind: bool, way: Split, lora: LowRank | None
) -> tuple[int, ...]:
    """Returns what ``LayerWeights`` holds, of one layer split one way."""
    split = way.tp, way.ep, way.etp
    count, linears = layer_parameters(model, kind, *split), layer_linears(model, kind, *split)
    distinct = {(each.outputs, each.inputs) for each in linears}
    return (
        count.dense,
        count.experts,
        count.total,
        sum(each.num_weights for each in linears),
        sum(rows * columns for rows, columns in distinct),
        _adapters(model, kind, way, lora),
    )


def _adapters(model: ModelShape, kind: bool, way: Split, lora: LowRank | None) -> int:
    """Returns what one layer of a kind has of LoRA's adapters on a rank."""
    if lora is None:
        return 0
    layer = next(each for each in range(model.layers) if model.is_moe(each) == kind)
    stage = ModelStage(0, range(layer, layer + 1))
    return adapter_parameters(
        model, stage, lora.rank, lora.targets, tp=way.tp, ep=way.ep, etp=way.etp
    )
