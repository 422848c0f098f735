"""The memory of a planned job: of every place in the pipeline, and which rank is fullest.

request ─┬─> stages, weights ──────────────────> parameters, gradients, optimizer, copies
         ├─> layers, ends ─> kept, worked ─┐
         └─> schedule ─────────────────────┴──> walked: the fullest moment of each rank
                                                + buffers, workspace, fragments, context
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from serried.plan.memory.ends import end_use
from serried.plan.memory.implementation import Implementation, implementation_of
from serried.plan.memory.in_flight import (
    FullestMoment,
    StageHolds,
    fullest_moment,
    schedule_of,
)
from serried.plan.memory.items import Beside, items_of
from serried.plan.memory.layer import LayerPlan
from serried.plan.memory.numbers import activation_bytes
from serried.plan.memory.rank_memory import MemoryItem, PlannedMemory
from serried.plan.memory.recompute import LayerUse, layer_use
from serried.plan.memory.states import rank_weights, sharing_of, weight_bytes
from serried.plan.memory.workspaces import workspace_bytes
from serried.plan.model.parameters import padded_vocab
from serried.plan.model.stages import ModelStage
from serried.plan.request import PlanRequest, Recompute

USABLE = 0.995 * 2**30 / 1e9
"""Bytes that can be used for each that a card is sold with.

A card sold with 80 GB has 80 GiB less what the driver keeps: nvidia-smi says 81,559 MiB of an
H100-80, 143,771 of an H200-141, 183,359 of a B200-180.
"""


@dataclass(frozen=True)
class JobMemory:
    """Holds the memory of every place in the pipeline of a job."""

    of_ranks: tuple[PlannedMemory, ...]

    @property
    def fullest(self) -> PlannedMemory:
        """The place that has most in use, the first of equal ones."""
        return max(self.of_ranks, key=lambda each: each.total)

    @property
    def fits(self) -> bool:
        """Whether every card holds its part."""
        return all(each.fits for each in self.of_ranks)


def job_memory(asked: PlanRequest) -> JobMemory:
    """Returns what each rank of a job holds at most.

    >>> from serried.plan.cluster.cluster import Cluster, Gpu
    >>> from serried.plan.degrees import Degrees
    >>> from serried.plan.model.shape import ModelShape
    >>> h100 = Gpu("h100", "nvidia", {"bf16": 989e12}, 80e9, 3.35e12, 450e9)
    >>> llama = ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256)
    >>> degrees = Degrees(tp=2, pp=2, dp=2)
    >>> asked = PlanRequest(llama, Cluster("c", h100, 8, 8, 50e9), degrees, global_batch=8)
    >>> memory = job_memory(asked).fullest
    >>> memory.fits, memory.pp_rank, [each.name for each in memory.largest]
    (True, 0, ['optimizer', 'activations', 'gradients'])

    Raises InputError for a stage without layers' room, an unknown recipe or schedule.
    """
    return JobMemory(tuple(_JobWalk(asked).of_ranks()))


class _JobWalk:
    """Counts one rank after another; layers of one kind are counted once."""

    def __init__(self, asked: PlanRequest) -> None:
        self.asked = asked
        self.built: Implementation = implementation_of(asked.framework, asked.options)
        self.split = layer_plan(asked)
        self.stages = asked.stages
        self.workspace = workspace_bytes(
            self.built,
            asked.cluster.gpu,
            asked.options,
            has_experts=asked.model.experts is not None,
        )
        degrees = asked.degrees
        group = asked.options.get("microbatch_group_size_per_vp_stage")
        self.schedule = schedule_of(
            asked.schedule,
            degrees.pp,
            asked.num_microbatches,
            degrees.chunks,
            int(group) if group else None,
        )
        self.uses = {
            is_moe: self._use(is_moe, asked.recompute)
            for is_moe in {asked.model.is_moe(layer) for layer in range(asked.model.layers)}
        }

    def _use(self, is_moe: bool, recompute: Recompute) -> LayerUse:
        return layer_use(
            self.asked.model, is_moe, self.split, self.built, recompute, self.asked.lora
        )

    def of_ranks(self) -> Iterator[PlannedMemory]:
        """Yields what each place in the pipeline holds."""
        placement = self.schedule.placement
        for pp_rank in range(self.schedule.num_ranks):
            numbers = tuple(stage for _, stage in placement.stages_of(pp_rank))
            yield self._of_rank(pp_rank, numbers)

    def _of_rank(self, pp_rank: int, numbers: tuple[int, ...]) -> PlannedMemory:
        asked, built = self.asked, self.built
        stages = tuple(self.stages[number] for number in numbers)
        weights = weight_bytes(rank_weights(asked, stages), sharing_of(asked), built)
        holds = {number: self._holds(self.stages[number]) for number in set(numbers)}
        moment = fullest_moment(self.schedule, pp_rank, holds)
        found = items_of(
            weights,
            self._beside(stages, moment),
            built,
            self.workspace,
            asked.offload,
        )
        items = tuple(MemoryItem(name, int(size)) for name, size in found.items() if int(size))
        ended = self._ended(len(numbers))
        return PlannedMemory(
            pp_rank=pp_rank,
            stages=numbers,
            first_rank=pp_rank * asked.degrees.stage_ranks,
            items=items,
            moment=moment.action,
            card_bytes=int(USABLE * asked.cluster.gpu.memory_bytes),
            error=built.error_of(asked.model),
            error_bytes=built.error_bytes,
            ended_bytes=int(ended),
        )

    def _ended(self, chunks: int) -> float:
        """Returns what the allocator still has between two steps: messages, and routed tokens.

        A dispatcher that gathers all tokens of its experts' ranks keeps those of one layer.
        """
        asked, degrees = self.asked, self.asked.degrees
        found = self.built.steady_messages * chunks * self._message() * (degrees.pp > 1)
        if asked.model.experts and asked.options.get("moe_token_dispatcher_type") == "allgather":
            found += degrees.ep * degrees.etp * self._message()
        return found

    def _beside(self, stages: tuple[ModelStage, ...], moment: FullestMoment) -> Beside:
        """Returns what a rank has beside weights at its fullest moment."""
        asked = self.asked
        gathers = self.split.sp > 1 and any(each.has_output for each in stages)
        row = activation_bytes(asked.compute) * asked.model.heads / self.split.tp
        return Beside(
            held=moment.held,
            work=moment.work,
            message=self._message(),
            is_piped=asked.degrees.pp > 1,
            whole_stream=self._message() * self.split.sp if gathers else 0,
            scores=0 if asked.has_flash_attention else row * asked.sequence * asked.tokens,
        )

    def _holds(self, stage: ModelStage) -> StageHolds:
        """Returns what the actions of a stage add and let go, in bytes."""
        asked, tokens = self.asked, self.asked.tokens
        ends = end_use(asked.model, stage, self.split, self.built, self._vocab())
        kinds = [asked.model.is_moe(layer) for layer in stage.layers]
        kinds += [asked.model.is_moe(asked.model.layers)] * stage.mtp_layers
        uses = [self.uses[kind] for kind in kinds]
        kept = ends.kept + ends.scores + self._kept(uses)
        if self.built.keeps_stage_outputs and not stage.has_output:
            kept += activation_bytes(asked.compute) * asked.model.hidden / self.split.sp
        layer_work = max((each.worked + each.again for each in uses), default=0.0)
        # Scores are gone when the last layer's backward begins.
        work = max(ends.scores_worked, layer_work - ends.scores)
        table = asked.model.hidden * self._vocab() // asked.degrees.tp
        return StageHolds(
            kept=kept * tokens,
            between=sum(min(each.between, each.kept) for each in uses) * tokens,
            backward_work=work * tokens,
            end_work=2.0 * table if stage.has_embedding and asked.lora is None else 0.0,
        )

    def _kept(self, uses: list[LayerUse]) -> float:
        """Returns what layers keep of each token, where some are recomputed or offloaded."""
        told = self.asked.recompute
        if self.asked.offload == "activations":
            away = min(self.asked.offloaded_layers, len(uses))
            sent = sorted((each.kept for each in uses[:away]), reverse=True)
            return sum(sent[:2]) + sum(each.kept for each in uses[away:])
        if told.kind != "full" or told.layers is None:
            return sum(each.kept for each in uses)
        again = min(told.layers, len(uses))
        rest = [each.kept + each.again for each in uses[again:]]
        return sum(each.kept for each in uses[:again]) + sum(rest)

    def _message(self) -> float:
        """Returns the bytes that one stage sends the next of a microbatch."""
        hidden = activation_bytes(self.asked.compute) * self.asked.model.hidden
        return hidden * self.asked.tokens / self.split.sp

    def _vocab(self) -> int:
        asked = self.asked
        return padded_vocab(asked.model.vocab, asked.framework, asked.degrees.tp)


# ----------------------------------------------------------------------- what is asked, read


def layer_plan(asked: PlanRequest) -> LayerPlan:
    """Returns how a request splits and computes a layer."""
    degrees, options = asked.degrees, asked.options
    return LayerPlan(
        tp=degrees.tp,
        ep=degrees.ep,
        etp=degrees.etp,
        cp=degrees.cp,
        has_sequence_parallel=asked.has_sequence_parallel,
        sequence=asked.sequence,
        compute=asked.compute,
        has_flash_attention=asked.has_flash_attention,
        has_hidden_dropout=float(options.get("hidden_dropout", 0)) > 0,
        has_attention_dropout=float(options.get("attention_dropout", 0)) > 0,
        cp_exchange=options.get("cp_comm_type", "p2p"),
        imbalance=float(options.get("moe_imbalance", 1)),
        has_narrow_swiglu=options.get("activation_func_fp8_input_store") == "true",
    )
