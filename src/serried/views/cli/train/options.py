"""The options of ``serried train`` by section, and what they make: one TrainSettings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serried.errors import InputError
from serried.mesh.sizes import read_settings
from serried.views.cli.emit_job import EMIT, GPUS_PER_NODE, IMAGE, NODES
from serried.views.cli.language import lang_option
from serried.views.cli.options import COUNT

if TYPE_CHECKING:
    from serried.runtime.job.report import Place
    from serried.runtime.job.settings import Emulated, TrainSettings

Option = Callable[[Callable[..., object]], Callable[..., object]]
PATH = click.Path(path_type=Path)


def _size(name: str, help_text: str, default: int = 1) -> Option:
    return click.option(name, type=COUNT, default=default, show_default=True, help=help_text)


def _rate(name: str, help_text: str, default: float) -> Option:
    return click.option(name, type=float, default=default, show_default=True, help=help_text)


def _choice(name: str, choices: tuple[str, ...], help_text: str) -> Option:
    """Returns an option whose default is its first choice."""
    return click.option(
        name, type=click.Choice(choices), default=choices[0], show_default=True, help=help_text
    )


SECTIONS: Mapping[str, tuple[Option, ...]] = {
    "Ranks": (
        click.option(
            "--nproc",
            type=COUNT,
            help="Ranks to start on this machine; by default the fewest that the sizes need.",
        ),
        click.option(
            "--framework",
            default="megatron",
            show_default=True,
            help="Whose rules decide which rank is in which group.",
        ),
        click.option(
            "--order",
            help="Order of the axes as the framework writes it, such as tp-cp-ep-dp-pp for "
            "megatron.",
        ),
        click.option(
            "--set",
            "options",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of that framework under its own name; may be repeated.",
        ),
        _choice(
            "--device",
            ("auto", "cpu", "cuda"),
            "What ranks compute on; auto takes GPUs where there are some.",
        ),
        _rate(
            "--timeout", "Seconds that any communication may take before the run is ended.", 300.0
        ),
    ),
    "Cluster": (EMIT, NODES, GPUS_PER_NODE, IMAGE),
    "Tensor and sequence parallelism": (
        _size("--tp", "Ranks that every layer is split over (tensor parallelism)."),
        click.option(
            "--sequence-parallel",
            is_flag=True,
            help="Split the activations around norms along the sequence, over the tensor-parallel "
            "ranks.",
        ),
        click.option(
            "--loss-parallel",
            is_flag=True,
            help="Compute the loss on logits that stay split over the vocabulary.",
        ),
        click.option(
            *("--make-vocab-size-divisible-by", "vocab_divisible_by"),
            type=COUNT,
            default=128,
            show_default=True,
            help="Pad the vocabulary of 256 to a multiple of this times tp, as Megatron does.",
        ),
    ),
    "Pipeline parallelism": (
        _size("--pp", "Stages that the layers are cut into (pipeline parallelism)."),
        click.option(
            "--schedule",
            default="1f1b",
            metavar="NAME|FILE.csv",
            help="Name of the pipeline schedule, or a CSV file of its actions.",
        ),
        click.option(
            "--chunks",
            type=COUNT,
            help="Stages on each rank; by default 2 where the schedule can have several, else 1.",
        ),
        click.option(
            "--group",
            type=COUNT,
            help="Microbatches that run through one model chunk before the next chunk, where the "
            "schedule has such groups.",
        ),
    ),
    "Context and expert parallelism": (
        _size("--cp", "Ranks that each sequence is split over (context parallelism)."),
        _choice(
            "--cp-form",
            ("ring", "ring-two-pass", "ulysses", "all-gather"),
            "How context-parallel ranks get the other ranks' keys and values.",
        ),
        _size("--ep", "Ranks that the experts are spread over; they are taken from tp x cp x dp."),
    ),
    "Data parallelism (dp is the world size over all other sizes)": (
        _choice(
            "--dp-style",
            ("replicate", "buffer"),
            "How gradients of whole copies are summed: one by one as they come, or in one "
            "buffer as Megatron does.",
        ),
        _size(
            "--zero",
            "ZeRO stage: 1 shards the optimizer state over data-parallel ranks, 2 also the "
            "gradients, 3 also the weights.",
            0,
        ),
        click.option(
            "--zero-shard",
            type=COUNT,
            help="Ranks that share one sharded replica (HSDP); by default all data-parallel ranks.",
        ),
    ),
    "Model": (
        _size("--layers", "Layers of the model; each stage has at least one.", 4),
        _size("--hidden", "Width of the model (hidden size).", 64),
        _size("--heads", "Attention heads.", 8),
        click.option(
            "--kv-heads",
            type=COUNT,
            help="Heads of keys and values (grouped-query attention); by default all heads.",
        ),
        _size("--seq-len", "Bytes in a sequence; a byte is a token here.", 64),
        _size("--experts", "Experts in each layer; 0 for a plain feed-forward layer.", 0),
        _size("--top-k", "Experts that each token is sent to.", 2),
        _rate(
            "--balance",
            "Weight of the loss that balances the experts' load; it is taken over a microbatch.",
            0.0,
        ),
        click.option(
            "--tie", is_flag=True, help="Let the embedding and the output layer share one weight."
        ),
        _rate("--dropout", "Share of each block's outputs that dropout leaves out.", 0.0),
    ),
    "Training": (
        _size("--steps", "Steps to train.", 20),
        _size("--global-batch-size", "Sequences in a step, over all ranks.", 32),
        _size("--microbatches", "Microbatches that each rank cuts its part of the batch into.", 4),
        click.option(
            "--data",
            type=PATH,
            help="Text file or folder to train on; by default the sources of Python's own library.",
        ),
        _size("--seed", "Seed of weights, order of data, and dropout.", 0),
        _choice(
            "--dtype", ("float32", "float64", "bfloat16", "float16"), "Number format to compute in."
        ),
        _choice(
            "--recompute",
            ("none", "selective", "full"),
            "What is computed again in backward to save memory.",
        ),
    ),
    "Learning": (
        _rate("--lr", "Highest learning rate of AdamW.", 3e-3),
        _choice(
            "--lr-schedule",
            ("cosine", "constant"),
            "How the learning rate changes after the warm-up.",
        ),
        _size("--warmup", "Updates over which the learning rate rises from 0.", 0),
        _rate("--min-lr", "Learning rate at which cosine ends.", 0.0),
        _rate("--weight-decay", "Weight decay of AdamW.", 0.01),
        _rate("--clip", "Norm that gradients are clipped to; 0 clips nothing.", 1.0),
        _rate("--loss-scale", "Loss scale that float16 begins with.", 65536.0),
        _size(
            "--loss-scale-window",
            "Updates without overflow after which the loss scale doubles.",
            2000,
        ),
    ),
    "Validation": (
        _size(
            "--validate-every",
            "Steps between two measurements of the loss on held-out text; 0 for none.",
            0,
        ),
        _size("--validate-sequences", "Sequences at the end of the text that are held out.", 64),
    ),
    "Checkpoints": (
        click.option(
            "--save-dir",
            type=PATH,
            help="Folder to keep checkpoints in, each in a folder of its own.",
        ),
        _size("--save-every", "Steps between two checkpoints; 0 saves the last step only.", 0),
        click.option(
            "--keep", type=COUNT, help="Checkpoints to keep, the newest ones; by default all."
        ),
        click.option(
            "--resume",
            is_flag=True,
            help="Go on from the newest checkpoint in --save-dir, if there is one.",
        ),
        click.option(
            "--load", type=PATH, help="Begin from this checkpoint, which may lie in another folder."
        ),
        _choice(
            "--on-save-error",
            ("stop", "continue"),
            "What to do when a checkpoint cannot be written.",
        ),
        click.option(
            "--export", type=PATH, help="Write the trained model into this file, as safetensors."
        ),
    ),
    "Output": (
        click.option(
            "--log-file", type=PATH, help="Write a line of JSON for each step into this file."
        ),
        click.option(
            "--tensorboard", type=PATH, help="Write TensorBoard event files into this folder."
        ),
        click.option(
            "--trace-dir",
            type=PATH,
            help="Record what every rank does when into this folder, for serried trace and serve.",
        ),
        click.option(
            "--trace-steps",
            metavar="FIRST:END",
            help="Record only these steps, END left out; 3:6 is 3, 4 and 5.",
        ),
        click.option(
            "--explain",
            is_flag=True,
            help="Print what each rank holds, its groups and gradient buffers, and the memory "
            "planned.",
        ),
        lang_option,
    ),
    "Emulated compute": (
        _choice(
            "--compute",
            ("real", "emulated"),
            "Compute for real, or let every stage only wait for fixed times.",
        ),
        click.option(
            "--forward-ms",
            type=float,
            help="With --compute emulated: milliseconds of a microbatch's forward on a stage; "
            "by default 12.",
        ),
        click.option(
            "--backward-ms",
            type=float,
            help="With --compute emulated: milliseconds of its backward; by default 24.",
        ),
    ),
}
"""Every option of the command, under the heading that its help shows it."""


class SectionedCommand(click.Command):
    """Shows its options under the headings of SECTIONS."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options, section by section."""
        left = iter(self.get_params(ctx))
        for title, options in [*SECTIONS.items(), ("Help", (click.help_option(),))]:
            records = list(_records(left, len(options), ctx))
            with formatter.section(title):
                formatter.write_dl(records)


def _records(
    params: Iterator[click.Parameter], count: int, ctx: click.Context
) -> Iterator[tuple[str, str]]:
    for _ in range(count):
        record = next(params).get_help_record(ctx)
        if record:
            yield record


def with_options(command: Callable[..., object]) -> Callable[..., object]:
    """Adds every option of SECTIONS, in their order."""
    for option in reversed([option for options in SECTIONS.values() for option in options]):
        command = option(command)
    return command


FLAT = (
    *("tp", "pp", "cp", "ep", "cp_form", "sequence_parallel", "loss_parallel", "dp_style"),
    "vocab_divisible_by",
    *("zero", "zero_shard", "framework", "order", "schedule", "chunks", "group", "recompute"),
    *("steps", "global_batch_size", "microbatches", "seed", "data", "trace_dir", "log_file"),
    "tensorboard",
    *("device", "dtype"),
)
"""Options that TrainSettings has under the same name."""

MODEL = (
    *("layers", "hidden", "heads", "kv_heads", "seq_len", "experts", "top_k", "balance"),
    *("tie", "dropout"),
)
LEARNING = (
    *("lr", "lr_schedule", "warmup", "min_lr", "weight_decay", "clip"),
    *("loss_scale", "loss_scale_window"),
)

KEEPING = {
    "folder": "save_dir",
    "every": "save_every",
    "last": "keep",
    "resume": "resume",
    "begin_from": "load",
    "on_error": "on_save_error",
    "export": "export",
}
"""What CheckpointSettings calls each option."""


def train_settings(place: Place | None, options: Mapping[str, Any]) -> TrainSettings:
    """Returns what the options ask for; raises InputError where they cannot be."""
    from serried.runtime.job.settings import (
        CheckpointSettings,
        ModelSizes,
        OptimizerSettings,
        TrainSettings,
        Validation,
    )

    return TrainSettings(
        world_size=_world_size(place, options),
        options=read_settings(options["options"]),
        model=ModelSizes(**{name: options[name] for name in MODEL}),
        optimizer=OptimizerSettings(**{name: options[name] for name in LEARNING}),
        emulated=_emulated(options["compute"], options["forward_ms"], options["backward_ms"]),
        trace_steps=_window(options["trace_steps"]),
        checkpoints=CheckpointSettings(
            **{name: options[option] for name, option in KEEPING.items()}
        ),
        validation=Validation(options["validate_every"], options["validate_sequences"]),
        timeout_s=options["timeout"],
        **{name: options[name] for name in FLAT},
    )


def _world_size(place: Place | None, options: Mapping[str, Any]) -> int:
    """Returns torchrun's ranks, those asked for, or the fewest that the sizes need."""
    nproc = options["nproc"]
    if place is None:
        needed = math.lcm(options["tp"] * options["cp"], options["ep"]) * options["pp"]
        return max(1, needed) if nproc is None else int(nproc)
    if nproc not in (None, place.world_size):
        raise InputError(
            "--nproc {nproc} differs from the {world} ranks that torchrun started; "
            "leave out --nproc",
            nproc=nproc,
            world=place.world_size,
        )
    return place.world_size


def _emulated(compute: str, forward_ms: float | None, backward_ms: float | None) -> Emulated | None:
    from serried.runtime.job.settings import Emulated

    given = {"forward_ms": forward_ms, "backward_ms": backward_ms}
    times = {name: value for name, value in given.items() if value is not None}
    if compute == "emulated":
        return Emulated(**times)
    if times:
        raise InputError(
            "--forward-ms and --backward-ms are times of emulated compute; "
            "add --compute emulated or leave them out"
        )
    return None


def _window(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    first, colon, end = text.partition(":")
    if not (colon and first.isdecimal() and end.isdecimal()):
        raise InputError(
            "--trace-steps takes FIRST:END, such as 3:6 for steps 3, 4 and 5; it got '{text}'",
            text=text,
        )
    return int(first), int(end)
