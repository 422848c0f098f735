"""A plan as it is asked for in words: by options, a launch file, an address or Python alike.

    model=llama3-8b cluster=h100 global_batch=128 sequence=8192     ──┐
    framework and sizes ──> LayoutRequest ──> Layout ─────────────────┴─> PlanRequest

The framework's own rules settle the degrees and what is sharded; what is asked for in words goes
before what a launch file says of the training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.launch.facts.config import LaunchConfig, nodes_told
from serried.launch.request import LayoutRequest
from serried.limits import ADAPTER_RANK, BATCH, SEQUENCE
from serried.mesh import Layout
from serried.number import whole_number
from serried.pipeline.registry import ENTRIES
from serried.pipeline.registry import known as require_schedule
from serried.plan.catalog import cluster_named, model_asked
from serried.plan.cluster.cluster import Cluster
from serried.plan.degrees import Degrees
from serried.plan.launched import lacking, model_of, options_of, words_of
from serried.plan.model.parameters import LORA_TARGETS
from serried.plan.model.shape import ModelShape
from serried.plan.model.stages import layers_accounted, layers_with_ends
from serried.plan.precision import recipe
from serried.plan.request import LowRank, Offloaded, PlanRequest, Recompute
from serried.plan.training_settings import taken

FIELDS = (
    *("model", "cluster", "sequence", "micro_batch", "global_batch", "schedule", "chunks"),
    *("layers", "layers_first", "layers_last", "layers_picture", "account_for", "states"),
    *("compute", "recompute", "offload", "lora", "sequence_parallel", "flash_attention"),
)
"""Words that a plan is asked for with, beside the sizes of its layout."""

STATES: Mapping[str, str] = {
    "megatron": "fp32-grads",
    "fsdp": "fsdp2-mixed",
    "torchtitan": "fsdp2-mixed",
    "accelerate": "fsdp2-mixed",
    "devicemesh": "fsdp2-mixed",
}
"""The recipe of precision that a framework trains with where nobody says; others as ZeRO's paper.

Source: Megatron-LM arguments.py, bf16 sums gradients in fp32; torch FSDP2's mixed precision.
"""
SHARDS_BY_CHOICE = ("megatron", "deepspeed", "nanotron", "colossalai")
"""Frameworks that shard nothing unless told to; a plan from options alone takes stage 1.

Paddle shards over an axis of its own, whose size nobody can guess.
"""
BOTH_WAYS = ("dualpipe", "chimera")
"""Schedules whose ranks hold a stage for each direction; the model has pp stages all the same."""
SWITCHES = {
    **{"true": True, "yes": True, "on": True, "1": True},
    **{"false": False, "no": False, "off": False, "0": False},
}


def plan_request(layout: LayoutRequest, words: Mapping[str, str]) -> PlanRequest:
    """Returns the request that sizes and words make.

    >>> sizes = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4, "zero": 1})
    >>> told = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}
    >>> asked = plan_request(sizes, told)
    >>> asked.degrees.dp, asked.num_microbatches, asked.schedule
    (2, 32, '1f1b')

    Raises InputError for what is missing, naming its option, and for what cannot be.
    """
    return _Asked(words).request(layout)


def of_groups(asked: LayoutRequest) -> LayoutRequest:
    """Returns a request without the settings of training that a plan alone takes."""
    return replace(asked, settings=taken(asked.settings)[0])


class _Asked:
    """Reads the words of one request."""

    def __init__(self, words: Mapping[str, str]) -> None:
        unknown = [name for name in words if name not in FIELDS]
        if unknown:
            raise InputError(
                "a plan has no '{name}'; it has {known}",
                name=unknown[0][:40],
                known=listed(FIELDS, limit=len(FIELDS)),
            )
        self.words = {name: text.strip() for name, text in words.items() if text}

    def request(self, asked: LayoutRequest) -> PlanRequest:
        _, training = taken(asked.settings)
        asked = of_groups(asked)
        layout = self._layout(asked) if asked.config else None
        if asked.config and layout:
            # What is asked for goes before what the file says.
            degrees = Degrees.of(layout)
            self.words = words_of(asked.config, degrees.dp, degrees.pp) | self.words
        model = self._model(asked.config)
        cluster = _as_placed(cluster_asked(self._needed("cluster", "h100")), asked)
        layout = layout or self._layout(asked)
        degrees = Degrees.of(layout, self._chunks())
        sharding = layout.sharding
        # A stage whose states are cut over one rank shards nothing, as Paddle's without its axis.
        zero = sharding.stage if sharding and sharding.dense.cut_states else 0
        counts, picture = self._stages(model, degrees)
        framework = layout.framework.split("@")[0].split(" ")[0]
        return PlanRequest(
            model,
            cluster,
            degrees,
            framework=framework,
            sequence=self._number("sequence", "4096"),
            micro_batch=self._count("micro_batch", 1),
            global_batch=self._number("global_batch", str(8 * degrees.dp)),
            schedule=self._schedule(degrees),
            stage_layers=counts,
            stage_picture=picture,
            zero=zero,
            shard_ranks=sharding.dense.optimizer.ranks if sharding and zero else None,
            is_kept_after_forward=bool(sharding and sharding.dense.is_kept),
            states=recipe(self._states(framework)).name,
            compute=self.words.get("compute") or _usual_format(cluster),
            recompute=read_recompute(self.words.get("recompute", "none")),
            has_sequence_parallel=self._switch("sequence_parallel", default=True),
            has_flash_attention=self._switch("flash_attention", default=True),
            offload=self._offload(),
            lora=read_lora(self.words["lora"]) if "lora" in self.words else None,
            order=_order(asked),
            options={
                **(options_of(asked.config) if asked.config else {}),
                **layout.settings,
                **training,
            },
        )

    def _layout(self, asked: LayoutRequest) -> Layout:
        framework = (asked.framework or "megatron").partition("@")[0]
        if asked.config is None and "zero" not in asked.given and framework in SHARDS_BY_CHOICE:
            asked = LayoutRequest(
                asked.framework, {**asked.given, "zero": 1}, asked.settings, None, asked.hosts
            )
        return asked.layout()

    def _model(self, config: LaunchConfig | None) -> ModelShape:
        if config is None or "model" in self.words:
            return model_asked(self._needed("model", "llama3-8b"))
        found = model_of(config)
        if found is None:
            raise lacking(config)
        return found

    def _states(self, framework: str) -> str:
        return self.words.get("states") or STATES.get(framework, "fp16-adam")

    def _stages(
        self, model: ModelShape, degrees: Degrees
    ) -> tuple[tuple[int, ...] | None, str | None]:
        """Returns the layers of each stage where words say them, or the picture that draws them."""
        words, pp, chunks = self.words, degrees.pp, degrees.chunks
        if "layers_picture" in words:
            return None, words["layers_picture"]
        if "layers" in words:
            return tuple(whole_number(each, "layers") for each in words["layers"].split(",")), None
        if "layers_first" in words or "layers_last" in words:
            first, last = (self._count(name, 0) or None for name in ("layers_first", "layers_last"))
            return tuple(layers_with_ends(model, pp, chunks, first, last)), None
        if "account_for" in words:
            ends = [each.strip() for each in words["account_for"].replace("+", ",").split(",")]
            if unknown := [each for each in ends if each not in ("embedding", "loss")]:
                raise InputError(
                    "'{name}' is no end of a model; ends are embedding and loss",
                    name=unknown[0][:40],
                )
            counted = {each: each in ends for each in ("embedding", "loss")}
            return tuple(layers_accounted(model, pp, chunks, **counted)), None
        return None, None

    def _schedule(self, degrees: Degrees) -> str:
        name = self.words.get("schedule") or ("interleaved-1f1b" if degrees.chunks > 1 else "1f1b")
        require_schedule(name)
        return name

    def _chunks(self) -> int:
        name = self.words.get("schedule", "")
        fixed = ENTRIES[name].chunks if name in ENTRIES else None
        if name in BOTH_WAYS:  # a rank's two stages are two of the same model's, each held twice
            if "chunks" in self.words and self._count("chunks", 1) != 1:
                raise InputError(
                    "{name} has one stage on each rank for either direction, and {chunks} chunks "
                    "were asked for; leave out --chunks, or take a schedule of chunks such as "
                    "interleaved-1f1b",
                    name=name,
                    chunks=self.words["chunks"],
                )
            return 1
        return self._count("chunks", fixed or (2 if name and fixed is None else 1))

    def _offload(self) -> Offloaded:
        told = self.words.get("offload", "none")
        known: Sequence[Offloaded] = ("none", "optimizer", "activations", "parameters")
        for each in known:
            if told == each:
                return each
        raise InputError(
            "'{name}' is not offloaded; what can be: {known}",
            name=told[:40],
            known=listed(known),
        )

    # ------------------------------------------------------------------- words

    def _needed(self, name: str, example: str) -> str:
        if name not in self.words:
            raise InputError(
                "the {what} is missing; give it, such as {option} {example}",
                what=WHAT[name],
                option=option_of(name),
                example=example,
            )
        return self.words[name]

    def _number(self, name: str, example: str) -> int:
        return self._positive(name, self._needed(name, example))

    def _count(self, name: str, default: int) -> int:
        return self._positive(name, self.words[name]) if name in self.words else default

    def _positive(self, name: str, text: str) -> int:
        number = whole_number(text, name)
        if number < 1:
            raise InputError("{name}={value}; it is at least 1", name=name, value=number)
        return _within_limits(name, number)

    def _switch(self, name: str, *, default: bool) -> bool:
        told = self.words.get(name, "").lower()
        if told and told not in SWITCHES:
            raise InputError(
                "{key}={value} is not a switch; it is true or false", key=name, value=told[:40]
            )
        return SWITCHES[told] if told else default


MOST: Mapping[str, int] = {
    "sequence": SEQUENCE.most,
    "micro_batch": BATCH.most,
    "global_batch": BATCH.most,
    "lora": ADAPTER_RANK.most,
}
"""The most that a word's number may be, beyond which no plan means anything."""


def _within_limits(name: str, number: int) -> int:
    """Returns the number; raises InputError where it is beyond its row of ``MOST``."""
    if number > MOST.get(name, number):
        raise InputError(
            "{name}={value} is too large; it is at most {most}",
            name=name,
            value=number,
            most=MOST[name],
        )
    return number


WHAT: Mapping[str, Sentence] = {
    "model": said("model"),
    "cluster": said("cluster"),
    "sequence": said("sequence length"),
    "global_batch": said("global batch"),
}
"""What must be said, as a sentence calls it."""


def option_of(name: str) -> str:
    """Returns the option of the command line that says a word."""
    return f"--{name.replace('_', '-')}"


def read_recompute(text: str) -> Recompute:
    """Returns what a text says is recomputed.

    >>> read_recompute("full:4").layers, read_recompute("selective:core_attn,mlp").modules
    (4, ('core_attn', 'mlp'))
    """
    kind, _, rest = text.partition(":")
    if kind == "full" and not rest:
        return Recompute("full")
    if kind == "full":
        layers = whole_number(rest, "recompute")
        if layers < 1:
            raise InputError("{name}={value}; it is at least 1", name="recompute", value=layers)
        return Recompute("full", layers=layers)
    if kind == "selective":
        return Recompute("selective", modules=tuple(each for each in rest.split(",") if each))
    if kind == "none" and not rest:
        return Recompute()
    raise InputError(
        "'{text}' is not recomputed; it reads none, full, full:LAYERS, selective or "
        "selective:MODULE,MODULE, such as selective:core_attn,mlp",
        text=text[:40],
    )


def read_lora(text: str) -> LowRank:
    """Returns the adapters that a text says: a rank, and what has them.

    >>> read_lora("16"), read_lora("8:qkv,o,fc1,fc2").rank
    (LowRank(rank=16, targets=('qkv', 'o')), 8)
    """
    rank, _, targets = text.partition(":")
    number = whole_number(rank, "lora")
    names = tuple(targets.split(",")) if targets else ("qkv", "o")
    unknown = [each for each in names if each not in LORA_TARGETS]
    if unknown or number < 1:
        raise InputError(
            "lora={text} cannot be; it reads a rank and linear layers, such as 16:qkv,o; linear "
            "layers are {known}",
            text=text[:40],
            known=listed(LORA_TARGETS),
        )
    return LowRank(_within_limits("lora", number), names)


def _usual_format(cluster: Cluster) -> str:
    """Returns what matrices are multiplied in where nobody says: fp16 before GPUs had bf16."""
    return "bf16" if "bf16" in cluster.gpu.peak_flops else "fp16"


def _order(asked: LayoutRequest) -> str:
    """Returns the order of axes that words or a launch file say, "" where neither does."""
    told = asked.sizes().order if asked.config else asked.given.get("order")
    return str(told or "")


def _as_placed(cluster: Cluster, asked: LayoutRequest) -> Cluster:
    """Returns the cluster with the GPUs of a node and of an NVLink domain that are asked for.

    A launch file's nodes are taken where they are alike. Raises InputError for nodes of different
    numbers of GPUs that are asked for, and for ranks of several.
    """
    per_node, domain = asked.numbers("gpus_per_node"), asked.number("nvlink_domain")
    if isinstance(per_node, tuple) and len(set(per_node)) > 1:
        raise InputError(
            "a plan takes nodes of one number of GPUs; it got {given}", given=listed(per_node)
        )
    if (asked.number("gpus_per_rank") or 1) > 1:
        raise InputError("a plan takes one GPU a rank; leave out --gpus-per-rank")
    each = per_node[0] if isinstance(per_node, tuple) else per_node
    if each is None and asked.config is not None:
        told = nodes_told(asked.config.fields)
        each = told if isinstance(told, int) else None
    if each is None and domain is None:
        return cluster
    if domain is not None and domain < 1:
        raise InputError("{name}={value}; it is at least 1", name="nvlink_domain", value=domain)
    kept = each or cluster.gpus_per_node
    # Fast links end where a node does, but for racks such as NVL72.
    is_of_node = cluster.nvlink_domain == cluster.gpus_per_node
    wired = domain or (kept if is_of_node else cluster.nvlink_domain)
    return replace(cluster, gpus_per_node=kept, nvlink_domain=wired)


def cluster_asked(text: str) -> Cluster:
    """Returns the cluster that a text asks for: a name, or a TOML file with its figures.

    Raises InputError for a name that is not known and a file that holds no cluster.
    """
    if text.endswith(".toml"):
        from serried.plan.own_cluster import cluster_of_file

        return cluster_of_file(Path(text).expanduser())
    return cluster_named(text)
