"""The options of ``serried train`` by section, and what they make: one TrainSettings."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serried.errors import InputError
from serried.views.cli.emit_job import EMIT, GPUS_PER_NODE, IMAGE, NODES
from serried.views.cli.language import lang_option
from serried.views.cli.options import COUNT, settings_of

if TYPE_CHECKING:
    from serried.runtime.report import Place
    from serried.runtime.settings import Emulated, TrainSettings

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
        click.option("--nproc", type=COUNT, help="Local ranks; what the sizes need if left out."),
        click.option("--framework", default="megatron", show_default=True, help="Whose placement."),
        click.option("--order", help="Axis order, as the framework writes it."),
        click.option("--set", "options", multiple=True, metavar="KEY=VALUE", help="Its setting."),
        _choice("--device", ("auto", "cpu", "cuda"), "What ranks compute on."),
        _rate("--timeout", "Seconds that any message may take.", 300.0),
    ),
    "Cluster": (EMIT, NODES, GPUS_PER_NODE, IMAGE),
    "Tensor and sequence parallelism": (
        _size("--tp", "Tensor parallel size."),
        click.option("--sequence-parallel", is_flag=True, help="Split norms along the sequence."),
        click.option("--loss-parallel", is_flag=True, help="Keep scores split for the loss."),
    ),
    "Pipeline parallelism": (
        _size("--pp", "Pipeline parallel size."),
        click.option("--schedule", default="1f1b", metavar="NAME|FILE.csv", help="What it runs."),
        click.option("--chunks", type=COUNT, help="Stages on a rank; 2 where it may be several."),
        click.option("--group", type=COUNT, help="Microbatches a group, where it has groups."),
    ),
    "Context and expert parallelism": (
        _size("--cp", "Context parallel size."),
        _choice("--cp-form", ("ring", "ring-two-pass", "ulysses", "all-gather"), "How it attends."),
        _size("--ep", "Expert parallel size, within tp x cp x dp."),
    ),
    "Data parallelism (dp is what the other sizes leave)": (
        _choice("--dp-style", ("replicate", "buffer"), "How gradients of whole copies are summed."),
        _size("--zero", "1 shards optimizer state, 2 gradients, 3 parameters too.", 0),
        click.option("--zero-shard", type=COUNT, help="Ranks that share one copy (HSDP); all."),
    ),
    "Model": (
        _size("--layers", "Layers, at least one a stage.", 4),
        _size("--hidden", "Width of the stream.", 64),
        _size("--heads", "Attention heads.", 8),
        click.option("--kv-heads", type=COUNT, help="Heads of keys and values (GQA); all."),
        _size("--seq-len", "Bytes in a sequence.", 64),
        _size("--experts", "Experts a layer; 0 for plain feed-forward.", 0),
        _size("--top-k", "Experts that each byte is sent to.", 2),
        _rate("--balance", "Weight of the experts' load-balancing loss, over a microbatch.", 0.0),
        click.option("--tie", is_flag=True, help="One weight for embedding and output."),
        _rate("--dropout", "Share of each block's outputs left out.", 0.0),
    ),
    "Training": (
        _size("--steps", "Steps of the run.", 20),
        _size("--global-batch-size", "Sequences in a step, over all ranks.", 32),
        _size("--microbatches", "Parts of it that a rank runs one by one.", 4),
        click.option("--data", type=PATH, help="Text; Python's own sources if none."),
        _size("--seed", "Of weights, data and dropout.", 0),
        _choice("--dtype", ("float32", "float64", "bfloat16", "float16"), "Of computation."),
        _choice("--recompute", ("none", "selective", "full"), "What backward computes again."),
    ),
    "Learning": (
        _rate("--lr", "Highest learning rate of AdamW.", 3e-3),
        _choice("--lr-schedule", ("cosine", "constant"), "How it goes after warm-up."),
        _size("--warmup", "Updates over which it rises.", 0),
        _rate("--min-lr", "Where cosine ends.", 0.0),
        _rate("--weight-decay", "Of AdamW.", 0.01),
        _rate("--clip", "Norm that gradients are clipped to; 0 for none.", 1.0),
        _rate("--loss-scale", "First loss scale of float16.", 65536.0),
        _size("--loss-scale-window", "Good updates before it doubles.", 2000),
    ),
    "Validation": (
        _size("--validate-every", "Steps between two measurements on held out text.", 0),
        _size("--validate-sequences", "Sequences held out, at the end of the text.", 64),
    ),
    "Checkpoints": (
        click.option("--save-dir", type=PATH, help="Keep checkpoints here, a folder each."),
        _size("--save-every", "Steps between two; the last step's is always kept.", 0),
        click.option("--keep", type=COUNT, help="Only so many of the newest; all."),
        click.option("--resume", is_flag=True, help="Go on from the newest, if there is one."),
        click.option("--load", type=PATH, help="Begin from this checkpoint of another folder."),
        _choice("--on-save-error", ("stop", "continue"), "When one cannot be written."),
        click.option("--export", type=PATH, help="Write the model here, as safetensors."),
    ),
    "Output": (
        click.option("--log-file", type=PATH, help="One JSON line a step."),
        click.option("--tensorboard", type=PATH, help="Event files in this folder."),
        click.option("--trace-dir", type=PATH, help="Record spans in this folder."),
        click.option("--trace-steps", metavar="FIRST:END", help="Only these; END is not in."),
        click.option("--explain", is_flag=True, help="Print what ranks hold, groups, buffers."),
        lang_option,
    ),
    "Emulated compute": (
        _choice("--compute", ("real", "emulated"), "Whether stages compute or take fixed times."),
        click.option("--forward-ms", type=float, help="A microbatch's forward, 12 if not given."),
        click.option("--backward-ms", type=float, help="Its backward, 24 if not given."),
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
"""What Keeping calls each option."""


def train_settings(place: Place | None, options: Mapping[str, Any]) -> TrainSettings:
    """Returns what the options ask for; raises InputError where they cannot be."""
    from serried.runtime.settings import (
        Keeping,
        ModelSizes,
        Optimise,
        TrainSettings,
        Validation,
    )

    return TrainSettings(
        world_size=_world_size(place, options),
        options=settings_of(options["options"]),
        model=ModelSizes(**{name: options[name] for name in MODEL}),
        optimise=Optimise(**{name: options[name] for name in LEARNING}),
        emulated=_emulated(options["compute"], options["forward_ms"], options["backward_ms"]),
        trace_steps=_window(options["trace_steps"]),
        keeping=Keeping(**{name: options[option] for name, option in KEEPING.items()}),
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
    from serried.runtime.settings import Emulated

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
