"""The fullest rank of many layouts of one job at once, by closed forms: what a search asks.

    columns of tp, cp, pp, dp, ep, etp, chunks, microbatch …       one layout a row
      ─> ways to split a layer: its weights, and what it keeps, once for each     splits
      ─> ranks 0, 1 and p - 1 of every row: weights, what is in flight, items     three columns
      ─> the most of the three

A ``Sweep`` places the layers of one schedule; requests that recompute or offload otherwise, or cut
states by another ZeRO stage, are all answered by it.

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

from serried.plan.memory.implementation import Implementation, implementation_of
from serried.plan.memory.in_flight import chunks_in_flight
from serried.plan.memory.items import Beside, items_of
from serried.plan.memory.job_memory import layer_plan
from serried.plan.memory.numbers import activation_bytes
from serried.plan.memory.splits import KeptColumns, Splits
from serried.plan.memory.states import RankWeights, Sharing, cut_ranks, sharing_of, weight_bytes
from serried.plan.memory.workspaces import workspace_bytes
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


class Sweep:
    """Holds where layouts have the layers of a schedule, and the weights of their ranks.

    Columns have a row a layout, and where they differ along the pipeline three: of the first rank,
    the second and the last.
    """

    def __init__(self, asked: PlanRequest, layouts: Layouts) -> None:
        self.model, self.schedule, self.layouts = asked.model, asked.schedule, layouts
        end = layouts.pp - 1
        self.place = np.stack([0 * end, np.minimum(1, end), end])
        self.splits = Splits.of(layouts.tp, layouts.cp, layouts.ep, layouts.etp)
        self.counts = self._layers()
        self.first, self.last = self._has_ends()
        self.weights = self._weights(asked)

    def fullest(self, asked: PlanRequest) -> NDArray[np.float64]:
        """Returns the most that a rank of each layout has in use, for a request like the first."""
        manner = _Manner(self, asked)
        items = items_of(
            weight_bytes(self.weights, manner.sharing(), manner.built),
            manner.beside(),
            manner.built,
            workspace_bytes(
                manner.built,
                asked.cluster.gpu,
                asked.options,
                has_experts=self.model.experts is not None,
            ),
            asked.offload,
        )
        whole = np.asarray(sum(items.values()), dtype=np.float64)
        most: NDArray[np.float64] = np.broadcast_to(whole, self.place.shape).max(axis=0)
        return most

    def _layers(self) -> dict[bool, Column]:
        """Returns how many layers of each kind the ranks have."""
        layouts, model = self.layouts, self.model
        is_moe = np.array([model.is_moe(layer) for layer in range(model.layers)])
        before = np.concatenate([[0], np.cumsum(is_moe)])
        even, rest = np.divmod(model.layers, layouts.pp * layouts.chunks)
        moe, every = 0 * self.place, 0 * self.place
        for chunk in range(int(layouts.chunks.max()) if len(layouts) else 0):
            there = np.flatnonzero(layouts.chunks > chunk)
            pp, place, each = layouts.pp[there], self.place[:, there], even[there]
            turns = self.schedule in ZIGZAG and chunk % 2
            stage = chunk * pp + (pp - 1 - place if turns else place)
            begin = np.minimum(stage * each + np.minimum(stage, rest[there]), model.layers)
            end = np.minimum(begin + each + (stage < rest[there]), model.layers)
            moe[:, there] += before[end] - before[begin]
            every[:, there] += end - begin
        kinds = {True: moe, False: every - moe}
        return {kind: count for kind, count in kinds.items() if kind in is_moe}

    def _has_ends(self) -> tuple[Any, Any]:
        """Returns which ranks have the embedding, and which the output."""
        first, last = self.place == 0, self.place == self.layouts.pp - 1
        if self.schedule in ZIGZAG:
            return first, first
        if self.schedule in BOTH_WAYS:
            return first | last, first | last
        return first, last

    def _weights(self, asked: PlanRequest) -> RankWeights:
        """Returns the weights of each rank; what a layer has of them follows from its split."""
        times = 2 if self.schedule in BOTH_WAYS else 1
        layers, ends = self.splits.layers(asked, list(self.counts)), self.splits.ends(asked)
        both, only_first = self.first & self.last, self.first & ~self.last
        only_last = self.last & ~self.first

        def over(columns: Mapping[bool, Any]) -> Any:
            return sum(count * columns[kind] for kind, count in self.counts.items())

        def of_ends(columns: tuple[Any, Any, Any]) -> Any:
            return only_first * columns[0] + only_last * columns[1] + both * columns[2]

        there = {kind: count > 0 for kind, count in self.counts.items()}
        largest = [is_there * layers.total[kind] for kind, is_there in there.items()]
        return RankWeights(
            dense=over(layers.dense) * times + of_ends(ends.total),
            experts=over(layers.experts) * times,
            ends=of_ends(ends.tables),
            linears=over(layers.linears) * times,
            largest_layer=np.maximum.reduce(largest),
            shapes=sum(is_there * layers.shapes[kind] for kind, is_there in there.items())
            + self.last * ends.table,
            adapters=over(layers.adapters) if asked.lora else 0,
        )


class _Manner:
    """Counts what a request keeps beside the weights of a sweep's ranks."""

    def __init__(self, sweep: Sweep, asked: PlanRequest) -> None:
        self.sweep, self.asked, self.layouts = sweep, asked, sweep.layouts
        self.built: Implementation = implementation_of(asked.framework, asked.options)
        self.plan = layer_plan(asked)
        self.kept: KeptColumns = sweep.splits.kept(asked, self.plan, list(sweep.counts))
        self.tokens = self.layouts.micro_batch * asked.sequence // self.layouts.cp

    def sharing(self) -> Sharing:
        """Returns over how many ranks states are cut."""
        layouts, most = self.layouts, self.asked.shard_ranks
        dense = layouts.cp * layouts.dp
        experts = np.maximum(1, layouts.tp * dense // (layouts.ep * layouts.etp))
        if most is not None:
            dense, experts = cut_ranks(most, dense, experts)
        return replace(sharing_of(self.asked), dense_ranks=dense, expert_ranks=experts)

    def beside(self) -> Beside:
        """Returns what ranks have beside weights at their fullest moments."""
        number, model = activation_bytes(self.asked.compute), self.sweep.model
        message = number * model.hidden * self.tokens
        scores: Any = 0
        if not self.plan.has_flash_attention:
            scores = number * model.heads / self.layouts.tp * self.asked.sequence * self.tokens
        held, work = self._activations()
        return Beside(
            held=held,
            work=work,
            message=message / self.kept.sp,
            is_piped=self.layouts.pp > 1,
            whole_stream=np.where(self.kept.sp > 1, message * self.sweep.last, 0),
            scores=scores,
        )

    def _activations(self) -> tuple[Any, Any]:
        """Returns what is held before the fullest backward, and what that works with."""
        sweep, uses, counts = self.sweep, self.kept, self.sweep.counts
        each = self.layouts.chunks
        kept = self._kept()
        if self.built.keeps_stage_outputs:
            kept = kept + (sweep.place < self.layouts.pp - 1) * uses.stream
        between = sum(counts[kind] * uses.between[kind] for kind in counts)
        whole, halves = self._in_flight()
        held = (whole * kept + halves * between) / each
        held = held + whole / each * sweep.first * uses.first_kept
        # The last stage's backward follows its forward, but where all forwards come first.
        is_behind = self.asked.schedule in ("gpipe", "looped-bfs")
        at_last = whole / each if is_behind else 1
        held = held + at_last * sweep.last * (uses.last_kept + uses.scores)
        layer = np.maximum.reduce([(counts[kind] > 0) * uses.worked[kind] for kind in counts])
        work = np.where(
            sweep.last, np.maximum(uses.scores_worked, layer - uses.scores), layer + 0.0
        )
        return held * self.tokens, self._with_table(work * self.tokens, kept * self.tokens)

    def _in_flight(self) -> tuple[Any, Any]:
        """Returns chunks in flight; a rank that is all of a pipeline has one at a time."""
        layouts = self.layouts
        whole, halves = chunks_in_flight(
            self.asked.schedule,
            layouts.pp,
            layouts.microbatches,
            layouts.chunks,
            self.sweep.place,
        )
        is_alone = layouts.pp * layouts.chunks == 1
        return np.where(is_alone, 1, whole), np.where(is_alone, 0, halves)

    def _with_table(self, work: Any, kept: Any) -> Any:
        """Returns the work of backward, or of its end, where the embedding's gradient is made."""
        if self.asked.lora is not None:
            return work
        table = 2.0 * self.kept.table
        return np.maximum(work, self.sweep.first * (table - kept / self.layouts.chunks))

    def _kept(self) -> Any:
        """Returns what all layers of a rank keep of each token of one microbatch."""
        told, counts, uses = self.asked.recompute, self.sweep.counts, self.kept
        every, chunks = sum(counts.values()), self.layouts.chunks
        kept = sum(counts[kind] * uses.kept[kind] for kind in counts)
        if self.asked.offload == "activations":
            most = np.maximum.reduce(list(uses.kept.values()))
            away = np.minimum(self.asked.offloaded_layers * chunks, every)
            mean = kept / np.maximum(every, 1)
            return np.minimum(2 * chunks, away) * most + (every - away) * mean
        if told.kind == "full" and told.layers is not None:
            again = np.maximum.reduce(list(uses.again.values()))
            kept = kept + np.maximum(0, every - told.layers * chunks) * again
        return kept
