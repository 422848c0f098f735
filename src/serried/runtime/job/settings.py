"""TrainSettings: everything one training run is asked for, checked on creation, free of torch.

model        ModelSizes: layers, heads, experts …
optimizer    OptimizerSettings: learning rate, clipping, loss scaling
checkpoints  CheckpointSettings; Validation
parallel     what the axes ask of the model and of each other
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from serried.frameworks import Sizes, layout
from serried.mesh import Layout
from serried.pipeline import Request, Schedule
from serried.runtime.job import without_effect
from serried.runtime.job.checkpoints import CheckpointSettings, Validation
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.data_file import cache_folder, has_documents
from serried.runtime.job.emulated import Emulated
from serried.runtime.job.model import VOCABULARY, ModelSizes, padded_vocabulary, stage_layers
from serried.runtime.job.optimizer import OptimizerSettings
from serried.runtime.job.option import (
    check_bounds,
    require_above_zero,
    require_positive,
    setting,
    size_setting,
)
from serried.runtime.job.parallel import AXES, check_parallel
from serried.runtime.job.pipeline import is_file, schedule_of
from serried.trace.model.record import TracedJob

__all__ = [
    "AXES",
    "VOCABULARY",
    "CheckpointSettings",
    "Emulated",
    "ModelSizes",
    "OptimizerSettings",
    "TrainSettings",
    "Validation",
    "stage_layers",
]

RANKS = "Ranks"
TENSOR = "Tensor and sequence parallelism"
PIPELINE = "Pipeline parallelism"
CONTEXT = "Context and expert parallelism"
DATA = "Data parallelism (dp is the world size over all other sizes)"
TRAINING = "Training"
OUTPUT = "Output"
"""Headings that the options of a run stand under."""


@dataclass(frozen=True)
class TrainSettings:
    """Describes one run: its layout, model, data, steps, and what it writes.

    >>> settings = TrainSettings(world_size=8, tp=2, pp=2)
    >>> settings.dp, settings.microbatch_size, settings.compute
    (2, 4, 'real')

    Raises InputError for sizes that cannot be, with sizes that can.
    """

    world_size: int
    framework: str = setting(
        "megatron",
        en="Whose rules decide which rank is in which group.",
        zh="哪个 rank 在哪个组，按哪个框架的规则。",
        section=RANKS,
    )
    order: str | None = size_setting("order", RANKS)
    options: Mapping[str, str] = setting(
        dict,
        en="A setting of that framework under its own name; may be repeated.",
        zh="那个框架的一项设置，用它自己的名字；可以写多次。",
        word="set",
        section=RANKS,
        metavar="KEY=VALUE",
    )
    device: Literal["auto", "cpu", "cuda"] = setting(
        "auto",
        en="What ranks compute on; auto takes GPUs where there are some.",
        zh="rank 在什么上计算；auto 有 GPU 就用 GPU。",
        section=RANKS,
    )
    timeout_s: float = setting(
        300.0,
        en="Seconds that any communication may take before the run is ended.",
        zh="一次通信最多等多少秒，超过就结束运行。",
        word="timeout",
        section=RANKS,
        bound=require_above_zero,
    )
    """How long any collective or message may take before the run gives up."""
    tp: int = size_setting("tp", TENSOR)
    sequence_parallel: bool = setting(
        False,
        en=(
            "Split the activations around norms along the sequence, over the tensor-parallel ranks."
        ),
        zh="把 norm 前后的激活值沿序列切给张量并行的 rank。",
        section=TENSOR,
    )
    """Whether tensor parallel ranks split what lies between their matrices along the sequence."""
    loss_parallel: bool = setting(
        False,
        en="Compute the loss on logits that stay split over the vocabulary.",
        zh="loss 直接在沿词表切开的 logits 上计算。",
        section=TENSOR,
    )
    """Whether the loss is taken from scores that stay split along the vocabulary."""
    vocab_divisible_by: int = setting(
        128,
        en="Pad the vocabulary of 256 to a multiple of this times tp, as Megatron does.",
        zh="把 256 的词表补到它乘以 tp 的倍数，与 Megatron 相同。",
        word="make_vocab_size_divisible_by",
        section=TENSOR,
        bound=require_positive,
    )
    """Rows of the vocabulary on each tp rank are a multiple of it, as in Megatron."""
    pp: int = size_setting("pp", PIPELINE)
    schedule: str = setting(
        "1f1b",
        en="Name of the pipeline schedule, or a CSV file of its actions.",
        zh="流水线调度的名字，或者一个动作的 CSV 文件。",
        section=PIPELINE,
        metavar="NAME|FILE.csv",
    )
    """The pipeline's schedule: a name of the registry, or a CSV file that torch could run too."""
    chunks: int | None = setting(
        None,
        en="Stages on each rank; by default 2 where the schedule can have several, else 1.",
        zh="每个 rank 上的 stage 数；调度允许多个时默认 2，否则为 1。",
        section=PIPELINE,
    )
    """Stages on each rank; None takes the schedule's own number."""
    group: int | None = setting(
        None,
        en=(
            "Microbatches that run through one model chunk before the next chunk, where "
            "the schedule has such groups."
        ),
        zh="连续通过同一个模型块、再换下一块的微批次数（仅限带这种分组的调度）。",
        section=PIPELINE,
    )
    """Microbatches that run through a chunk before the next does, for schedules with groups."""
    cp: int = size_setting("cp", CONTEXT)
    cp_form: Literal["ring", "ring-two-pass", "ulysses", "all-gather"] = setting(
        "ring",
        en="How context-parallel ranks get the other ranks' keys and values.",
        zh="上下文并行的 rank 怎样取得其他 rank 的 K 和 V。",
        section=CONTEXT,
    )
    ep: int = setting(
        1,
        en="Ranks that the experts are spread over; they are taken from tp x cp x dp.",
        zh="专家分给多少个 rank；它们从 tp x cp x dp 里取。",
        section=CONTEXT,
    )
    """Ranks that share out the experts, among those of tp, cp and dp; experts are not cut by tp."""
    dp_style: Literal["replicate", "buffer"] = setting(
        "replicate",
        en=(
            "How gradients of whole copies are summed: one by one as they come, or in "
            "one buffer as Megatron does."
        ),
        zh="完整副本的梯度怎样求和：算出来就逐个求和，或者像 Megatron 那样放进一块缓冲区。",
        section=DATA,
    )
    """How zero=0 sums gradients: by torch, or in one buffer per dtype, as Megatron's DDP does."""
    zero: int = setting(
        0,
        en=(
            "ZeRO stage: 1 shards the optimizer state over data-parallel ranks, 2 also "
            "the gradients, 3 also the weights."
        ),
        zh="ZeRO stage：1 在数据并行 rank 间分片优化器状态，2 再加梯度，3 再加权重。",
        section=DATA,
    )
    """1 shards optimizer state, 2 gradients too, 3 parameters too, over dp x cp."""
    zero_shard: int | None = setting(
        None,
        en=("Ranks that share one sharded replica (HSDP); by default all data-parallel ranks."),
        zh="几个 rank 合起来持有一份副本（HSDP）；默认为全部数据并行 rank。",
        section=DATA,
    )
    """Ranks that share one copy, the others replicate it (HSDP); None takes all of dp x cp."""
    steps: int = setting(
        20, en="Steps to train.", zh="训练多少个 step。", section=TRAINING, bound=require_positive
    )
    global_batch_size: int = setting(
        32,
        en="Sequences in a step, over all ranks.",
        zh="一个 step 的序列数，全部 rank 合计。",
        section=TRAINING,
        bound=require_positive,
    )
    """Sequences in a step, over all data parallel ranks and microbatches."""
    microbatches: int = setting(
        4,
        en="Microbatches that each rank cuts its part of the batch into.",
        zh="每个 rank 把自己那份 batch 切成多少个微批次。",
        section=TRAINING,
        bound=require_positive,
    )
    """Parts of a rank's batch that run one by one, their gradients accumulated."""
    data: Path | None = setting(
        None,
        en=(
            "Text, CSV or JSONL file, or a folder of text, to train on; by default the sources of "
            "Python's own library."
        ),
        zh="训练用的文本、CSV 或 JSONL 文件，或装文本的文件夹；默认用 Python 标准库的源码。",
        section=TRAINING,
    )
    """A file or folder of text; None takes the Python standard library's own source files."""
    text_key: str = setting(
        "text",
        en="Column of a CSV file, or key of a JSONL file, that holds the text.",
        zh="文本在 CSV 文件的哪一列，或 JSONL 文件的哪个键。",
        section=TRAINING,
        metavar="NAME",
    )
    tokenizer: Path | None = setting(
        None,
        en=(
            "Local tokenizer: a tokenizer.json, or a folder with one; by default each byte is "
            "a token. Documents are packed end to end, so nothing is padded."
        ),
        zh=(
            "本地分词器：tokenizer.json，或者含有它的文件夹；默认一个字节就是一个 token。"
            "文档首尾相接地打包，不需要填充。"
        ),
        section=TRAINING,
    )
    """A tokenizer.json or its folder; None takes bytes."""
    seed: int = setting(
        0,
        en="Seed of weights, order of data, and dropout.",
        zh="权重、数据顺序和 dropout 的随机种子。",
        section=TRAINING,
    )
    dtype: Literal["float32", "float64", "bfloat16", "float16"] = setting(
        "float32", en="Number format to compute in.", zh="计算用的数值格式。", section=TRAINING
    )
    """The type that is computed in; with 16 bits the optimizer keeps its own weights in float32."""
    recompute: Literal["none", "selective", "full"] = setting(
        "none",
        en="What is computed again in backward to save memory.",
        zh="为了省显存，反向时重算哪些内容。",
        section=TRAINING,
    )
    """What backward computes again instead of keeping: nothing, attention, or whole layers."""
    log_file: Path | None = setting(
        None,
        en="Write a line of JSON for each step into this file.",
        zh="每个 step 往这个文件写一行 JSON。",
        section=OUTPUT,
    )
    tensorboard: Path | None = setting(
        None,
        en="Write TensorBoard event files into this folder.",
        zh="把 TensorBoard 事件文件写进这个文件夹。",
        section=OUTPUT,
    )
    """A folder for TensorBoard's event files."""
    trace_dir: Path | None = setting(
        None,
        en=("Record what every rank does when into this folder, for serried trace and serve."),
        zh="把每个 rank 什么时候做什么录进这个文件夹，供 serried trace 和 serve 使用。",
        section=OUTPUT,
    )
    trace_steps: tuple[int, int] | None = setting(
        None,
        en="Record only these steps, END left out; 3:6 is 3, 4 and 5.",
        zh="只录这些 step，不含止点；3:6 就是 3、4、5。",
        section=OUTPUT,
        metavar="FIRST:END",
    )
    """First step recorded and the one after the last; None records all."""
    model: ModelSizes = field(default_factory=ModelSizes)
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    validation: Validation = field(default_factory=Validation)
    emulated: Emulated | None = None
    """None computes for real."""
    token_cache: Path | None = None
    """The folder that keeps tokens; None takes the user's cache folder."""

    def __post_init__(self) -> None:
        check_bounds(self)
        without_effect.require_placing(self.options)
        without_effect.require_tokens_read(self.tokenizer, self.model)
        check_parallel(self)
        without_effect.require_recorded(self.trace_steps, self.steps)

    @cached_property
    def layout(self) -> Layout:
        """Every group of the run, by the framework's own arithmetic."""
        axes = {"tp": self.tp, "pp": self.pp, "cp": self.cp, "ep": self.ep}
        # A rank holds its experts whole: training does not cut them over tp.
        etp = 1 if self.model.experts else None
        sizes = Sizes(self.world_size, **axes, etp=etp, order=self.order, options=self.options)
        return layout(self.framework, sizes)

    @cached_property
    def pipeline(self) -> Schedule:
        """What each rank of a pipeline runs in which order, and where each stage is."""
        request = Request(self.pp, self.microbatches, self.chunks, self.group)
        return schedule_of(self.schedule, request)

    @property
    def num_stages(self) -> int:
        """How many stages the model is cut into."""
        return self.pipeline.placement.num_stages

    @property
    def dp(self) -> int:
        """The data parallel size: what tp, pp and cp leave of the world."""
        return self.layout.sizes["dp"]

    @property
    def edp(self) -> int:
        """Ranks of a stage that hold the same experts."""
        return self.world_size // (self.pp * self.ep)

    @property
    def vocabulary(self) -> int:
        """Rows of the embedding: bytes, and what makes them a multiple of tp.

        >>> [TrainSettings(tp, tp=tp, model=ModelSizes(heads=tp)).vocabulary for tp in (1, 2, 4)]
        [256, 256, 512]
        """
        if isinstance(self.model, ConfigModel):
            return self.model.vocabulary  # as its config says; tp ranks take uneven parts
        return padded_vocabulary(self.vocab_divisible_by, self.tp)

    @property
    def has_tokens(self) -> bool:
        """Whether data is turned into tokens and packed, rather than read as bytes of text."""
        return self.tokenizer is not None or has_documents(self.data)

    @property
    def microbatch_size(self) -> int:
        """Sequences in one microbatch on one data parallel rank."""
        return self.global_batch_size // (self.dp * self.microbatches)

    @property
    def compute(self) -> Literal["real", "emulated"]:
        """How stages compute, as traces and logs call it."""
        return "emulated" if self.emulated else "real"

    def resolved(self) -> TrainSettings:
        """Returns the same settings with absolute paths, for processes that start elsewhere."""
        paths = ("data", "tokenizer", "trace_dir", "log_file", "tensorboard")
        named = {name: getattr(self, name) for name in paths}
        schedule = self.schedule
        # A schedule is a name such as 1f1b or a file, and only a file has a path.
        return replace(
            self,
            schedule=str(Path(schedule).absolute()) if is_file(schedule) else schedule,
            checkpoints=self.checkpoints.resolved(),
            model=self.model.resolved(),
            token_cache=(self.token_cache or cache_folder()) if self.has_tokens else None,
            **{name: path and path.absolute() for name, path in named.items()},
        )

    def records(self, step: int) -> bool:
        """Tells whether ``step`` falls into the recorded window."""
        first, end = self.trace_steps or (0, self.steps)
        return first <= step < end

    def job(self, backend: str) -> TracedJob:
        """Returns what a trace's header says of this run."""
        return TracedJob(
            framework=self.framework,
            world_size=self.world_size,
            sizes=dict(self.layout.sizes),
            order=self.layout.order,
            schedule=self.pipeline.name,
            num_microbatches=self.microbatches,
            compute=self.compute,
            backend=backend,
            options=dict(self.options),
            work={
                "layers": self.model.layers,
                "sequences": self.microbatch_size,
                "tokens": self.model.seq_len,
            },
            model=self.model.told(self.vocabulary),
            training={"zero": str(self.zero), "dtype": self.dtype},
        )
