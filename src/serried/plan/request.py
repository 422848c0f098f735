"""What a plan is asked for: a model, a cluster, how the model is split, and how it is trained.

    options, launch file, address, Python ──> PlanRequest ──> memory, traffic, time ──> plan

Every way in makes this one value, so that all are answered alike. ``search`` makes one of each
layout that it ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.plan.cluster.cluster import Cluster
from serried.plan.degrees import Degrees
from serried.plan.model.parameters import ParameterCount, adapter_parameters, stage_parameters
from serried.plan.model.shape import ModelShape
from serried.plan.model.stages import ModelStage, stages_of
from serried.plan.rank_order import Inner, inner_axis

Recomputed = Literal["none", "selective", "full"]
Offloaded = Literal["none", "optimizer", "activations", "parameters"]
HIDES_NO_TENSOR = (
    *("deepspeed", "megatron-deepspeed", "maxtext", "paxml"),
    *("fsdp", "torchtitan", "internevo", "llm-foundry"),
)
"""Frameworks whose tp ranks wait for one another between matrices where nobody says otherwise;
Megatron's and those built on it exchange in parts beside them (``--tp-comm-overlap``)."""
COMPUTE_FORMATS = ("bf16", "fp16", "fp32", "fp8", "fp8-ds", "fp8-cs", "mxfp8", "nvfp4")
"""What matrices are multiplied in; fp8 alone is one scale a tensor."""


@dataclass(frozen=True)
class Recompute:
    """Says what of a layer's forward is kept, and what backward computes again.

    >>> Recompute("selective", modules=("core_attn",)).kind
    'selective'
    """

    kind: Recomputed = "none"
    layers: int | None = None
    """Layers of each stage that are recomputed in full; None: all."""
    modules: tuple[str, ...] = ()
    """Modules recomputed selectively, as Megatron lists them; empty: core attention."""


@dataclass(frozen=True)
class LowRank:
    """Holds LoRA's adapters: their rank, and the linear layers that have them."""

    rank: int
    targets: tuple[str, ...] = ("qkv", "o")


@dataclass(frozen=True)
class PlanRequest:
    """Holds one question to the planner.

    Raises InputError for a batch that replicas and microbatches do not divide, heads that tp does
    not divide, a sequence that 2 cp does not divide, and experts that ep does not divide.
    """

    model: ModelShape
    cluster: Cluster
    degrees: Degrees = field(default_factory=Degrees)
    framework: str = "megatron"
    sequence: int = 4096
    """Tokens of one sequence."""
    micro_batch: int = 1
    """Sequences of one microbatch on one replica."""
    global_batch: int = 1
    """Sequences of one step of the whole job."""
    schedule: str = "1f1b"
    """A name of the pipeline's registry."""
    stage_layers: tuple[int, ...] | None = None
    """Layers of each (virtual) stage in order; None: as even as the framework makes them."""
    stage_picture: str | None = None
    """Megatron's layout string, such as Et*4|t*4L; it goes before ``stage_layers``."""
    zero: int = 1
    """ZeRO stage; 1 is Megatron's distributed optimizer, 3 is FSDP."""
    shard_ranks: int | None = None
    """Ranks that share states, where less than all that could (HSDP, InternEvo's zero1)."""
    is_kept_after_forward: bool = False
    """Whether ZeRO-3 keeps gathered weights from forward to backward."""
    states: str = "fp32-grads"
    """A recipe of ``plan.precision``: the bytes of parameters, gradients and optimizer."""
    compute: str = "bf16"
    """What matrices are multiplied in; one of ``COMPUTE_FORMATS``."""
    recompute: Recompute = field(default_factory=Recompute)
    has_sequence_parallel: bool = True
    """Whether norms and dropout are split along the sequence over tp ranks, where tp is above 1."""
    has_flash_attention: bool = True
    offload: Offloaded = "none"
    lora: LowRank | None = None
    """None: every weight is trained."""
    order: str = ""
    """The order of axes that ranks are numbered in, as the framework writes it. "" where nobody
    says: messages between stages and sums of replicas are then timed as the fit took them, both
    near."""
    options: Mapping[str, str] = field(default_factory=dict)
    """What else is known of how it runs, such as tp_comm_overlap=True, as the source names it."""

    @property
    def offloaded_layers(self) -> int:
        """Layers of each stage, its first ones, whose activations go to the host: Megatron's
        ``cpu_offloading_num_layers``; all where nobody says."""
        return int(self.options.get("cpu_offloading_num_layers", self.model.layers))

    def __post_init__(self) -> None:
        if self.compute not in COMPUTE_FORMATS:
            raise InputError(
                "matrices are not multiplied in '{format}'; formats are {known}",
                format=self.compute,
                known=listed(COMPUTE_FORMATS),
            )
        self._require_batch()
        self._require_model()

    @property
    def inner(self) -> Inner:
        """Which of replicas and stages lie nearer to one another; "" where nobody says."""
        return inner_axis(self.order)

    def is_on(self, option: str) -> bool:
        """Returns whether an option says yes; one that is not told says no."""
        return self.options.get(option, "").lower() in ("true", "1", "yes", "on")

    @property
    def hides_tensor(self) -> bool:
        """Whether what tp ranks exchange travels beside matrices: as an option says, else as the
        framework does it by itself."""
        if "tp_comm_overlap" in self.options:
            return self.is_on("tp_comm_overlap")
        return self.options.get("framework", self.framework) not in HIDES_NO_TENSOR

    @property
    def hides_exchange(self) -> bool:
        """Whether experts' tokens travel beside the other half of a batch: where an option says
        so, and in DualPipe, whose overlapped passes are made for it (arXiv 2412.19437, 3.2.1)."""
        return self.schedule in ("dualpipe", "dualpipev") or self.is_on("a2a_overlap")

    @property
    def recomputed_share(self) -> float:
        """The part of the layers that are recomputed in full."""
        told = self.recompute
        if told.kind != "full" or told.layers is None:
            return float(told.kind == "full")
        return min(1.0, told.layers * self.degrees.num_stages / self.model.layers)

    @property
    def num_microbatches(self) -> int:
        """Microbatches that each replica runs in one step."""
        return self.global_batch // (self.micro_batch * self.degrees.dp)

    @property
    def tokens(self) -> int:
        """Tokens of one microbatch that one rank of cp has."""
        return self.micro_batch * self.sequence // self.degrees.cp

    @cached_property
    def stages(self) -> tuple[ModelStage, ...]:
        """The stages of the pipeline, virtual ones each, in the order of the model.

        Raises InputError where the framework cannot divide the layers so.
        """
        return stages_of(
            self.model,
            self.degrees.pp,
            self.degrees.chunks,
            framework=self.framework,
            counts=self.stage_layers,
            picture=self.stage_picture,
        )

    def parameters(self, stage: ModelStage) -> ParameterCount:
        """Returns what one rank has of a stage's weights, ZeRO aside."""
        degrees = self.degrees
        return stage_parameters(
            self.model,
            stage,
            tp=degrees.tp,
            ep=degrees.ep,
            etp=degrees.etp,
            framework=self.framework,
        )

    def trained(self, stage: ModelStage) -> int:
        """Returns how many of a rank's parameters of a stage are trained: all, or the adapters."""
        if self.lora is None:
            return self.parameters(stage).total
        degrees = self.degrees
        return adapter_parameters(
            self.model,
            stage,
            self.lora.rank,
            self.lora.targets,
            tp=degrees.tp,
            ep=degrees.ep,
            etp=degrees.etp,
        )

    def _require_batch(self) -> None:
        replicas = self.degrees.dp * self.micro_batch
        if self.global_batch < 1 or self.micro_batch < 1 or self.global_batch % replicas:
            raise InputError(
                "dp={dp} x microbatch={micro} does not divide the global batch of {batch}; batches "
                "that would do: {known}",
                dp=self.degrees.dp,
                micro=self.micro_batch,
                batch=self.global_batch,
                known=listed(replicas * times for times in _near(self.global_batch, replicas)),
            )

    def _require_model(self) -> None:
        degrees, model = self.degrees, self.model
        _divide(said("heads"), model.heads, "tp", degrees.tp)
        if degrees.cp > 1:
            _require_sequence(self.sequence, degrees.cp)
        if degrees.ep > 1 and model.experts is None:
            raise InputError(
                "ep={ep} splits experts, and {model} has none; leave ep at 1",
                ep=degrees.ep,
                model=model.name,
            )
        if model.experts is not None:
            _divide(said("experts"), model.experts.count, "ep", degrees.ep)
        stages = degrees.num_stages
        told = self.stage_layers or self.stage_picture
        if not told and stages > model.layers + model.mtp_layers + 2:
            raise InputError(
                "{stages} stages have too few layers; {model} has {layers}",
                stages=stages,
                model=model.name,
                layers=model.layers,
            )
        if self.stage_layers is not None and len(self.stage_layers) != stages:
            raise InputError(
                "layers are given for {told} stages; pp={pp} x chunks={chunks} makes {stages}",
                told=len(self.stage_layers),
                pp=degrees.pp,
                chunks=degrees.chunks,
                stages=stages,
            )


def _near(batch: int, replicas: int) -> list[int]:
    """Returns multiples of the replicas' batch around the one that was asked for."""
    times = max(1, batch // replicas)
    return sorted({max(1, times - 1), times, times + 1})


def _require_sequence(tokens: int, cp: int) -> None:
    """Raises InputError where context ranks cannot take two parts of a sequence each."""
    parts = 2 * cp
    if tokens % parts:
        below = tokens // parts * parts
        fitting = [each for each in range(1, min(tokens, 256) + 1) if not tokens % (2 * each)]
        raise InputError(
            "cp={cp} takes a sequence in {parts} equal parts, which {tokens} tokens do not divide "
            "into; sequences that do: {lengths}; cp that does: {known}",
            cp=cp,
            parts=parts,
            tokens=tokens,
            lengths=listed([below, below + parts] if below else [parts]),
            known=listed([1, *(each for each in fitting if each > 1)]),
        )


def _divide(what: Sentence, count: int, axis: str, size: int) -> None:
    """Raises InputError where a size does not divide."""
    if count % size:
        fitting = [each for each in range(1, min(count, 256) + 1) if count % each == 0]
        raise InputError(
            "{axis}={size} does not divide {what}, {count}; sizes that do: {known}",
            axis=axis,
            size=size,
            what=what,
            count=count,
            known=listed(fitting),
        )
