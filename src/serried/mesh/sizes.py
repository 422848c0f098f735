"""The sizes of a job, each in one row of a table from which every way in is made, and ``Sizes``.

    name      option           default   in Sizes   what it is
    tp        --tp             1         yes        ranks that every layer is split over
    zero1     --zero1-size               yes        ranks that share one optimizer state
    layers    --layers                              layers of the model

A size has one name everywhere: in Python, JSON, addresses, forms and what a launch file says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from serried.errors import InputError
from serried.number import MOST, whole_number

Given = int | str | tuple[int, ...]
"""A size as it was given: a number, an order of axes, or one number for each node or stage."""

MOST_RANKS = 1 << 24
"""The largest world that is laid out: its groups of every kind fit a workstation's memory."""
MOST_GPUS = 1_000_000
"""More than any node or NVLink domain has; numbers below it stay within 32 bits."""


class SizeField(NamedTuple):
    """Describes one size of a job: what it is called and means, and what it takes.

    >>> SIZES["tp"].read("8"), PLACES["gpus_per_node"].read("4,1")
    (8, (4, 1))
    """

    name: str
    option: str
    """What the command line calls it."""
    help: Mapping[str, str]
    """What it is, in each language."""
    label: Mapping[str, str]
    """What a form calls it, in each language."""
    form: Literal["number", "numbers", "word"] = "number"
    default: int | None = None
    """None where the launch file, the other sizes or the framework's own rule decide."""
    least: int | None = 1
    """None where the framework says."""
    most: int = MOST

    def read(self, value: object) -> Given:
        """Returns what a text or a value says; raises InputError for what is no such size."""
        text = self.write(value).strip()
        if self.form == "word":
            return text
        if self.form == "number":
            return whole_number(text, self.name, self.most)
        parts = text.rstrip(",").split(",")
        return tuple(whole_number(part, self.name, self.most) for part in parts)

    def write(self, value: object) -> str:
        """Returns a value as ``read`` takes it.

        >>> PLACES["gpus_per_node"].write((4, 1))
        '4,1'
        """
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def read_settings(texts: Iterable[str]) -> dict[str, str]:
    """Returns ``KEY=VALUE`` texts as a mapping; raises InputError for one that is none.

    >>> read_settings(["num_experts=4"])
    {'num_experts': '4'}
    """
    settings: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key.strip() and equals):
            raise InputError(
                "'{text}' is not a setting; one reads KEY=VALUE, such as num_experts=4", text=text
            )
        settings[key.strip()] = value.strip()
    return settings


def _table(*rows: SizeField) -> Mapping[str, SizeField]:
    return {row.name: row for row in rows}


def _alike(text: str) -> Mapping[str, str]:
    return {"en": text, "zh": text}


SIZES = _table(
    SizeField(
        "world_size",
        "--world-size",
        {
            "en": "Ranks in the job; several, such as 96,128,160, are laid out one after the "
            "other.",
            "zh": "作业的 rank 总数；可以写几个，如 96,128,160，逐一给出布局。",
        },
        _alike("World size"),
        most=MOST_RANKS,
    ),
    SizeField(
        "tp",
        "--tp",
        {
            "en": "Ranks that every layer is split over (tensor parallelism).",
            "zh": "每一层切给多少个 rank（张量并行）。",
        },
        _alike("TP"),
        default=1,
    ),
    SizeField(
        "pp",
        "--pp",
        {
            "en": "Stages that the layers are cut into (pipeline parallelism).",
            "zh": "各层切成多少个 stage（流水线并行）。",
        },
        _alike("PP"),
        default=1,
    ),
    SizeField(
        "cp",
        "--cp",
        {
            "en": "Ranks that each sequence is split over (context parallelism).",
            "zh": "每条序列切给多少个 rank（上下文并行）。",
        },
        _alike("CP"),
        default=1,
    ),
    SizeField(
        "dp",
        "--dp",
        {
            "en": "Replicas that read different samples (data parallelism); by default the world "
            "size over all other sizes.",
            "zh": "读不同样本的副本数（数据并行）；默认由 rank 总数除以其他并行度得到。",
        },
        _alike("DP"),
    ),
    SizeField(
        "ep",
        "--ep",
        {
            "en": "Ranks that the experts of each MoE layer are spread over (expert parallelism).",
            "zh": "每个 MoE 层的专家分给多少个 rank（专家并行）。",
        },
        _alike("EP"),
        default=1,
    ),
    SizeField(
        "etp",
        "--etp",
        {
            "en": "Ranks that each expert is split over; by default what the framework takes.",
            "zh": "每个专家切给多少个 rank；默认按框架的规则。",
        },
        _alike("ETP"),
    ),
    SizeField(
        "zero",
        "--zero",
        {
            "en": "ZeRO stage: 0 shards nothing over data-parallel ranks, 1 the optimizer state, "
            "2 also the gradients, 3 also the weights.",
            "zh": "ZeRO stage：0 不分片，1 在数据并行 rank 间分片优化器状态，2 再加梯度，"
            "3 再加权重。",
        },
        _alike("ZeRO"),
        least=0,
        most=3,
    ),
    SizeField(
        "zero1",
        "--zero1-size",
        {
            "en": "Ranks that share one optimizer state (zero1 of InternLM and InternEvo); by "
            "default all data-parallel ranks.",
            "zh": "共用一份优化器状态的 rank 数（InternLM、InternEvo 的 zero1）；"
            "默认为全部数据并行 rank。",
        },
        _alike("ZeRO-1"),
        least=None,
    ),
    SizeField(
        "nettest",
        "--nettest-size",
        {
            "en": "Ranks among which InternLM and InternEvo test the network at a time; by "
            "default 32.",
            "zh": "InternLM、InternEvo 每次在多少个 rank 之间测网络；默认 32。",
        },
        _alike("Nettest"),
        least=None,
    ),
    SizeField(
        "order",
        "--order",
        {
            "en": "Order of the axes as the framework writes it, such as tp-cp-ep-dp-pp for "
            "megatron.",
            "zh": "轴的顺序，按框架的写法，例如 megatron 的 tp-cp-ep-dp-pp。",
        },
        {"en": "Order", "zh": "顺序"},
        form="word",
        least=None,
    ),
)
"""What a framework is asked for: the fields of ``Sizes``."""

PLACES = _table(
    SizeField(
        "gpus_per_node",
        "--gpus-per-node",
        {
            "en": "GPUs of a node, or of each node where they differ, such as 4,1; by default what "
            "FILE says, else 8.",
            "zh": "每个节点的 GPU 数；各节点不同时逐个列出，如 4,1；"
            "默认取文件里写的，文件没写则为 8。",
        },
        {"en": "GPUs/node", "zh": "GPU/节点"},
        form="numbers",
        default=8,
        most=MOST_GPUS,
    ),
    SizeField(
        "gpus_per_rank",
        "--gpus-per-rank",
        {
            "en": "GPUs that one rank owns; by default 1.",
            "zh": "每个 rank 使用的 GPU 数；默认 1。",
        },
        {"en": "GPUs/rank", "zh": "GPU/rank"},
        default=1,
        most=MOST_GPUS,
    ),
)
"""What says where ranks sit: no group depends on it."""

LAYERS = _table(
    SizeField(
        "layers",
        "--layers",
        {
            "en": "Layers of the model, to show which stage holds which; or a list, one number "
            "for each stage.",
            "zh": "模型的层数，用来显示哪个 stage 有哪些层；也可以是一串数，每个 stage 一个。",
        },
        {"en": "Layers", "zh": "层数"},
        form="numbers",
    ),
    SizeField(
        "chunks",
        "--chunks",
        {
            "en": "Model chunks on each rank (virtual pipeline stages); by default 1.",
            "zh": "每个 rank 上的模型块数（虚拟流水线 stage）；默认 1。",
        },
        {"en": "Model chunks", "zh": "模型块数"},
    ),
    SizeField(
        "nvlink_domain",
        "--nvlink-domain",
        {
            "en": "GPUs that reach one another over NVLink; by default those of a node.",
            "zh": "能用 NVLink 互相直达的 GPU 数；默认为一个节点的 GPU。",
        },
        {"en": "NVLink domain", "zh": "NVLink 域"},
        most=MOST_GPUS,
    ),
)
"""What says more of a job than its groups: its layers, and how far fast links reach."""

TABLE: Mapping[str, SizeField] = {**SIZES, **PLACES, **LAYERS}
"""Every size by its name."""

BESIDE_WORLD = tuple(name for name in SIZES if name != "world_size")
COUNTS = tuple(name for name in BESIDE_WORLD if SIZES[name].form == "number")


@dataclass(frozen=True)
class Sizes:
    """Holds what the user asked for, in the neutral short names; None means not given.

    ``zero`` is the ZeRO stage, 0 to 3; ``zero1`` the ranks that share one optimizer state.
    ``options`` are settings under the framework's own names (``--set KEY=VALUE``).
    """

    world_size: int
    tp: int = 1
    pp: int = 1
    cp: int = 1
    dp: int | None = None
    ep: int = 1
    etp: int | None = None
    zero: int | None = None
    zero1: int | None = None
    nettest: int | None = None
    order: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any], options: Mapping[str, str]) -> Sizes:
        """Returns the sizes that are given, by name; what is not takes the table's default.

        >>> Sizes.of({"world_size": 16, "tp": 2, "pp": None}, {}) == Sizes(16, tp=2)
        True
        """
        values: dict[str, Any] = {
            name: size.default if given.get(name) is None else given[name]
            for name, size in SIZES.items()
        }
        return cls(**values, options=options)

    def __post_init__(self) -> None:
        bounds = SIZES["world_size"]
        if self.world_size < 1:
            raise InputError(
                "world size {world} cannot be; it is at least 1 rank", world=self.world_size
            )
        if self.world_size > bounds.most:
            raise InputError(
                "world size {world} is more than serried lays out; at most {most} ranks",
                world=self.world_size,
                most=bounds.most,
            )
        for name in COUNTS:
            size, least = getattr(self, name), SIZES[name].least
            # zero is a stage, not a size: it may be 0, and has a sentence of its own below.
            if name != "zero" and None not in (size, least) and size < least:
                raise InputError("{axis}={size}; a size is at least 1", axis=name, size=size)
        stages = SIZES["zero"]
        if self.zero is not None and not (stages.least or 0) <= self.zero <= stages.most:
            raise InputError("ZeRO stage {stage} is not known; stages are 0 to 3", stage=self.zero)
