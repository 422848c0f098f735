"""The fullest rank of many layouts of one job at once, by closed forms: what a search asks.

    columns of tp, cp, pp, dp, ep, etp, chunks, microbatch …       one layout a row
      ─> rows of equal tp, ep, etp, with cp or without: what layers keep, once
      ─> ranks 0, 1 and p - 1 of each: weights, what is in flight, items
      ─> the most of the three

The first rank has the embedding and most in flight, the last one the loss, and those between no
more than the second. Layers lie as even as can be, the first stages having what is left over. What
a chunk keeps is taken as even over the chunks of its rank; with one chunk a rank it is exact, and
equals ``job_memory``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serried.plan.memory.ends import EndUse, end_use
from serried.plan.memory.implementation import Implementation, implementation_of
from serried.plan.memory.in_flight import chunks_in_flight
from serried.plan.memory.items import Beside, items_of
from serried.plan.memory.job_memory import layer_plan
from serried.plan.memory.layer import LayerPlan
from serried.plan.memory.linears import layer_linears
from serried.plan.memory.numbers import activation_bytes
from serried.plan.memory.recompute import layer_use
from serried.plan.memory.states import RankWeights, Sharing, cut_ranks, sharing_of, weight_bytes
from serried.plan.memory.workspaces import workspace_bytes
from serried.plan.model.parameters import (
    adapter_parameters,
    layer_parameters,
    padded_vocab,
    stage_parameters,
)
from serried.plan.model.stages import ModelStage
from serried.plan.request import PlanRequest

Column = NDArray[np.int64]
ZIGZAG = ("zbv", "v-half", "v-min", "1f1b-v", "dualpipev", "hanayo")
"""Schedules whose first rank has the last stage too."""
BOTH_WAYS = ("dualpipe", "chimera")
"""Schedules whose ranks have a stage of either direction."""


@dataclass(frozen=True, eq=False)
class Layouts:
    """Holds layouts as columns, one a row; degrees as in ``Degrees``."""

    tp: Column
    cp: Column
    pp: Column
    dp: Column
    ep: Column
    etp: Column
    chunks: Column
    micro_batch: Column
    microbatches: Column

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> Layouts:
        """Returns layouts of columns by name, or of single numbers for all; the rest is 1.

        >>> Layouts.of({"tp": [1, 2, 4], "dp": 8}).dp.tolist()
        [8, 8, 8]
        """
        names = [each.name for each in fields(cls)]
        told = [np.asarray(columns.get(name, 1), dtype=np.int64) for name in names]
        return cls(*np.broadcast_arrays(*(np.atleast_1d(each) for each in told)))

    def __len__(self) -> int:
        return len(self.tp)

    def rows(self, chosen: NDArray[np.intp]) -> Layouts:
        """Returns some of the rows."""
        return Layouts(*(getattr(self, each.name)[chosen] for each in fields(self)))


def fullest_bytes(asked: PlanRequest, layouts: Layouts) -> NDArray[np.float64]:
    """Returns what the fullest rank of each layout has in use, all else as a request asks.

    The request's own degrees and batch are not looked at. Raises InputError for a schedule that
    has no closed form.
    """
    found = np.zeros(len(layouts))
    # What a layer keeps of a token is the same for every cp above 1.
    split = np.stack([layouts.tp, np.minimum(layouts.cp, 2), layouts.ep, layouts.etp])
    kinds, inverse = np.unique(split, axis=1, return_inverse=True)
    for number, (tp, cp, ep, etp) in enumerate(kinds.T.tolist()):
        chosen = np.flatnonzero(inverse.ravel() == number)
        of_split = _SplitSweep(asked, layouts.rows(chosen), (tp, cp, ep, etp))
        found[chosen] = of_split.fullest()
    return found


class _SplitSweep:
    """Counts layouts that split layers alike."""

    def __init__(
        self, asked: PlanRequest, layouts: Layouts, split: tuple[int, int, int, int]
    ) -> None:
        self.asked, self.layouts = asked, layouts
        self.tp, some_cp, self.ep, self.etp = split
        self.built: Implementation = implementation_of(asked.framework, asked.options)
        self.plan: LayerPlan = replace(
            layer_plan(asked), tp=self.tp, cp=some_cp, ep=self.ep, etp=self.etp
        )
        model = asked.model
        self.workspace = workspace_bytes(
            self.built, asked.cluster.gpu, asked.options, has_experts=model.experts is not None
        )
        self.is_moe = np.array([model.is_moe(layer) for layer in range(model.layers)])
        self.moe_before = np.concatenate([[0], np.cumsum(self.is_moe)])
        self.uses = {
            kind: layer_use(model, kind, self.plan, self.built, asked.recompute, asked.lora)
            for kind in (False, True)
            if kind in self.is_moe
        }
        self.tokens = layouts.micro_batch * asked.sequence // layouts.cp

    def fullest(self) -> NDArray[np.float64]:
        """Returns the most of the first rank, the second and the last."""
        last = self.layouts.pp - 1
        places = (0 * last, np.minimum(1, last), last)
        most: NDArray[np.float64] = np.maximum.reduce([self._in_use(place) for place in places])
        return most

    def _in_use(self, place: Column) -> NDArray[np.float64]:
        """Returns what the ranks at a place of each pipeline have in use at most."""
        counts = self._layers(place)
        first, last = self._has_ends(place)
        weights = weight_bytes(self._weights(counts, first, last), self._sharing(), self.built)
        held, work = self._activations(place, counts, first, last)
        message = activation_bytes(self.asked.compute) * self.asked.model.hidden * self.tokens
        row = activation_bytes(self.asked.compute) * self.asked.model.heads / self.tp
        beside = Beside(
            held=held,
            work=work,
            message=message / self.plan.sp,
            is_piped=self.layouts.pp > 1,
            whole_stream=message * last if self.plan.sp > 1 else 0,
            scores=0 if self.plan.has_flash_attention else row * self.asked.sequence * self.tokens,
        )
        items = items_of(weights, beside, self.built, self.workspace, self.asked.offload)
        found: NDArray[np.float64] = np.broadcast_to(
            np.asarray(sum(items.values()), dtype=np.float64), place.shape
        )
        return found

    def _layers(self, place: Column) -> dict[bool, Column]:
        """Returns how many layers of each kind the ranks at a place have."""
        layouts, model = self.layouts, self.asked.model
        stages = layouts.pp * layouts.chunks
        even, rest = np.divmod(model.layers, stages)
        moe, every = 0 * place, 0 * place
        for chunk in range(int(layouts.chunks.max()) if len(layouts) else 0):
            stage = self._stage(place, chunk)
            begin = np.minimum(stage * even + np.minimum(stage, rest), model.layers)
            end = np.minimum(begin + even + (stage < rest), model.layers)
            is_there = chunk < layouts.chunks
            moe = moe + is_there * (self.moe_before[end] - self.moe_before[begin])
            every = every + is_there * (end - begin)
        return {True: moe, False: every - moe}

    def _stage(self, place: Column, chunk: int) -> Column:
        turns = self.asked.schedule in ZIGZAG and chunk % 2
        return chunk * self.layouts.pp + (self.layouts.pp - 1 - place if turns else place)

    def _has_ends(self, place: Column) -> tuple[Any, Any]:
        """Returns which ranks have the embedding, and which the output."""
        first, last = place == 0, place == self.layouts.pp - 1
        if self.asked.schedule in ZIGZAG:
            return first, first
        if self.asked.schedule in BOTH_WAYS:
            return first | last, first | last
        return first, last

    def _weights(self, counts: dict[bool, Column], first: Any, last: Any) -> RankWeights:
        model, times = self.asked.model, 2 if self.asked.schedule in BOTH_WAYS else 1
        split, framework = (self.tp, self.ep, self.etp), self.asked.framework
        ends = [
            stage_parameters(model, stage, tp=self.tp, framework=framework)
            for stage in (
                ModelStage(0, range(0), has_embedding=True),
                ModelStage(0, range(0), has_output=True, mtp_layers=0),
                ModelStage(0, range(0), has_embedding=True, has_output=True),
            )
        ]
        both, alone = first & last, first ^ last
        dense: Any = 0
        experts: Any = 0
        linears: Any = 0
        shapes: Any = 0
        largest: Any = 0
        for kind in self.uses:
            count = layer_parameters(model, kind, *split)
            each = layer_linears(model, kind, *split)
            dense = dense + counts[kind] * count.dense * times
            experts = experts + counts[kind] * count.experts * times
            linears = linears + counts[kind] * sum(one.num_weights for one in each) * times
            distinct = {(one.outputs, one.inputs) for one in each}
            shapes = shapes + (counts[kind] > 0) * sum(rows * width for rows, width in distinct)
            largest = np.maximum(largest, (counts[kind] > 0) * count.total)
        of_ends = [each.total for each in ends]
        dense = dense + (first & alone) * of_ends[0] + (last & alone) * of_ends[1]
        dense = dense + both * of_ends[2]
        table = padded_vocab(model.vocab, framework, self.tp) // self.tp * model.hidden
        tables = [each.embedding + each.positions + each.output for each in ends]
        of_tables = (first & alone) * tables[0] + (last & alone) * tables[1] + both * tables[2]
        adapters = sum(counts[kind] * self._adapters(kind) for kind in self.uses)
        shapes = shapes + last * table
        return RankWeights(dense, experts, of_tables, linears, largest, shapes, adapters)

    def _adapters(self, kind: bool) -> int:
        """Returns what one layer of a kind has of LoRA's adapters on a rank."""
        lora = self.asked.lora
        if lora is None:
            return 0
        layer = int(np.argmax(self.is_moe == kind))
        stage = ModelStage(0, range(layer, layer + 1))
        split = {"tp": self.tp, "ep": self.ep, "etp": self.etp}
        return adapter_parameters(self.asked.model, stage, lora.rank, lora.targets, **split)

    def _sharing(self) -> Sharing:
        layouts = self.layouts
        most = self.asked.shard_ranks
        dense = layouts.cp * layouts.dp
        ranks = self.tp * dense
        experts = np.maximum(1, ranks // (self.ep * self.etp))
        if most is not None:
            dense, experts = cut_ranks(most, dense, experts)
        return replace(sharing_of(self.asked), dense_ranks=dense, expert_ranks=experts)

    def _activations(
        self, place: Column, counts: dict[bool, Column], first: Any, last: Any
    ) -> tuple[Any, Any]:
        """Returns what is held before the fullest backward, and what that works with."""
        asked, layouts = self.asked, self.layouts
        of_first, of_last = self._ends()
        each = layouts.chunks
        kept = self._kept(counts)
        if self.built.keeps_stage_outputs:
            kept = kept + (place < layouts.pp - 1) * next(iter(self.uses.values())).stream
        between = sum(counts[kind] * min(use.between, use.kept) for kind, use in self.uses.items())
        whole, halves = self._in_flight(place)
        held = (whole * kept + halves * between) / each
        held = held + whole / each * first * of_first.kept
        # The last stage's backward follows its forward, but where all forwards come first.
        is_behind = asked.schedule in ("gpipe", "looped-bfs")
        at_last = whole / each if is_behind else 1
        held = held + at_last * last * (of_last.kept + of_last.scores)
        layer = 0.0 * place
        for kind, use in self.uses.items():
            layer = np.maximum(layer, (counts[kind] > 0) * (use.worked + use.again))
        work = np.where(last, np.maximum(of_last.scores_worked, layer - of_last.scores), layer)
        return held * self.tokens, self._with_table(work * self.tokens, first, kept * self.tokens)

    def _in_flight(self, place: Column) -> tuple[Any, Any]:
        """Returns chunks in flight; a rank that is all of a pipeline has one at a time."""
        layouts = self.layouts
        whole, halves = chunks_in_flight(
            self.asked.schedule, layouts.pp, layouts.microbatches, layouts.chunks, place
        )
        is_alone = layouts.pp * layouts.chunks == 1
        return np.where(is_alone, 1, whole), np.where(is_alone, 0, halves)

    def _with_table(self, work: Any, first: Any, kept: Any) -> Any:
        """Returns the work of backward, or of its end, where the embedding's gradient is made."""
        if self.asked.lora is not None:
            return work
        vocab = padded_vocab(self.asked.model.vocab, self.asked.framework, self.tp)
        table = 2.0 * (self.asked.model.hidden * vocab // self.tp)
        return np.maximum(work, first * (table - kept / self.layouts.chunks))

    def _kept(self, counts: dict[bool, Column]) -> Any:
        """Returns what all layers of a rank keep of each token of one microbatch."""
        told = self.asked.recompute
        if self.asked.offload == "activations":
            most, every = max(use.kept for use in self.uses.values()), counts[True] + counts[False]
            away = np.minimum(self.asked.offloaded_layers * self.layouts.chunks, every)
            mean = sum(counts[kind] * use.kept for kind, use in self.uses.items()) / every
            return np.minimum(2 * self.layouts.chunks, away) * most + (every - away) * mean
        kept = sum(counts[kind] * use.kept for kind, use in self.uses.items())
        if told.kind == "full" and told.layers is not None:
            again = max(use.again for use in self.uses.values())
            layers = counts[True] + counts[False] - told.layers * self.layouts.chunks
            kept = kept + np.maximum(0, layers) * again
        return kept

    def _ends(self) -> tuple[EndUse, EndUse]:
        model = self.asked.model
        vocab = padded_vocab(model.vocab, self.asked.framework, self.tp)
        stages = (
            ModelStage(0, range(0), has_embedding=True),
            ModelStage(0, range(0), has_output=True),
        )
        first, last = (end_use(model, each, self.plan, self.built, vocab) for each in stages)
        return first, last
