"""The options of ``serried train``, made from the fields of a run's settings and read into them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import click

from serried.errors import InputError
from serried.mesh.sizes import read_settings
from serried.runtime.job.option import RunOption, options_of
from serried.runtime.job.report import Place
from serried.runtime.job.settings import (
    CheckpointSettings,
    Emulated,
    ModelSizes,
    OptimizerSettings,
    TrainSettings,
    Validation,
)
from serried.views.cli.count import COUNT
from serried.views.cli.emit_job import EMIT, GPUS_PER_NODE, IMAGE, NODES
from serried.views.cli.help import SpokenOption
from serried.views.cli.language import lang_option

Option = Callable[[Callable[..., object]], Callable[..., object]]
Settings = TypeVar("Settings")

NPROC = click.option(
    "--nproc",
    type=COUNT,
    help="Ranks to start on this machine; by default the fewest that the sizes need.",
)
EXPLAIN = click.option(
    "--explain",
    is_flag=True,
    help="Print what each rank holds, its groups and gradient buffers, and the memory planned.",
)
MODEL = click.option(
    "--model",
    type=click.Path(path_type=Path),
    cls=SpokenOption,
    spoken={
        "en": (
            "Local Hugging Face model: a config.json (weights from the seed) or a folder with it "
            "and safetensors; by default serried's own small GPT over bytes."
        ),
        "zh": (
            "本地的 Hugging Face 模型：config.json（权重由种子抽取），或者含有它和 safetensors 的"
            "文件夹；默认用 serried 自己的字节级小 GPT。"
        ),
    },
)
COMPUTE = click.option(
    "--compute",
    type=click.Choice(["real", "emulated"]),
    default="real",
    show_default=True,
    help="Compute for real, or let every stage only wait for fixed times.",
)


class StepsType(click.ParamType[tuple[int, int]]):
    """Reads the steps that are recorded: the first, and the one after the last."""

    name = "steps"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Returns both numbers; raises InputError for what is no such pair."""
        # click converts a default as well, which is a pair already.
        if isinstance(value, tuple):
            return value
        first, colon, end = str(value).partition(":")
        if not (colon and first.isdecimal() and end.isdecimal()):
            raise InputError(
                "--trace-steps takes FIRST:END, such as 3:6 for steps 3, 4 and 5; it got '{text}'",
                text=value,
            )
        return int(first), int(end)


TYPES: Mapping[Any, click.ParamType[Any]] = {
    int: COUNT,
    float: click.FLOAT,
    str: click.STRING,
    Path: click.Path(path_type=Path),
    tuple[int, int]: StepsType(),
}
"""How a word of the command line becomes a setting of each type."""


def _options(settings: type, section: str = "") -> tuple[Option, ...]:
    """Returns an option for each field of settings that stands under a heading."""
    hints = get_type_hints(settings)
    told = (each for each in options_of(settings) if each.section == section)
    return tuple(_option(each, hints[each.field], settings) for each in told)


def _option(told: RunOption, hint: Any, settings: type) -> Option:
    """Returns the option of one field, by the field's type."""
    # `int | None` counts as int: that an option may be missing is told by its default.
    (kind,) = set(get_args(hint)) - {NoneType} if NoneType in get_args(hint) else {hint}
    how: dict[str, Any] = {"cls": SpokenOption, "spoken": told.help, "metavar": told.metavar}
    if kind is bool:
        how |= {"is_flag": True}
    elif get_origin(kind) is Mapping:
        how |= {"multiple": True}
    elif get_origin(kind) is Literal:
        how |= {"type": click.Choice(get_args(kind))}
    else:
        how |= {"type": TYPES[kind]}
    # Times of emulated compute have no default here: one that was typed must be seen, as without
    # --compute emulated it is refused.
    if how.keys() & {"type"} and settings is not Emulated:
        how |= {"default": told.default, "show_default": told.default is not None}
    return click.option(told.flag, told.word, **how)


SECTIONS: Mapping[str, tuple[Option, ...]] = {
    "Ranks": (NPROC, *_options(TrainSettings, "Ranks")),
    "Cluster": (EMIT, NODES, GPUS_PER_NODE, IMAGE),
    **{
        title: _options(TrainSettings, title)
        for title in dict.fromkeys(each.section for each in options_of(TrainSettings))
        if title not in ("Ranks", "Training", "Output")
    },
    "Model": (MODEL, *_options(ModelSizes)),
    "Training": _options(TrainSettings, "Training"),
    "Learning": _options(OptimizerSettings),
    "Validation": _options(Validation),
    "Checkpoints": _options(CheckpointSettings),
    "Output": (*_options(TrainSettings, "Output"), EXPLAIN, lang_option),
    "Emulated compute": (COMPUTE, *_options(Emulated)),
}
"""Every option of the command, under the heading that its help shows it."""


class SectionedCommand(click.Command):
    """Shows its options under the headings of SECTIONS, then those of ``own_sections``."""

    own_sections: Mapping[str, int] = {}
    """How many options of its own the command has under each further heading."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the options, section by section."""
        left = iter(self.get_params(ctx))
        counts = {title: len(options) for title, options in SECTIONS.items()}
        for title, count in {**counts, **self.own_sections, "Help": 1}.items():
            records = list(_records(left, count, ctx))
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


def train_settings(place: Place | None, options: Mapping[str, Any]) -> TrainSettings:
    """Returns what the options ask for; raises InputError where they cannot be."""
    own = _values(TrainSettings, options)
    return TrainSettings(
        world_size=_world_size(place, options),
        **own | {"options": read_settings(own["options"])},
        model=_model(options),
        optimizer=OptimizerSettings(**_values(OptimizerSettings, options)),
        checkpoints=CheckpointSettings(**_values(CheckpointSettings, options)),
        validation=Validation(**_values(Validation, options)),
        emulated=_emulated(options),
    )


def _model(options: Mapping[str, Any]) -> ModelSizes:
    """Returns the model of the config named, or serried's own of the sizes asked for."""
    path = options["model"]
    if path is None:
        return ModelSizes(**_values(ModelSizes, options))
    from serried.runtime.job.config_model import read_model

    for each in options_of(ModelSizes):
        if each.field not in ("seq_len", "dropout") and _is_typed(each.word):
            raise InputError(
                "{flag} is a size of serried's own model, and {path} says what its model is; leave "
                "out {flag}, or write a config.json with another",
                flag=each.flag,
                path=path,
            )
    return read_model(path, seq_len=options["seq_len"], dropout=options["dropout"])


def _is_typed(word: str) -> bool:
    """Tells whether the user gave an option, rather than leaving it at its default."""
    context = click.get_current_context(silent=True)
    source = context and context.get_parameter_source(word)
    return source is not None and source is not click.core.ParameterSource.DEFAULT


def _values(settings: type, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the options say of one class of settings, by its fields."""
    return {each.field: options[each.word] for each in options_of(settings)}


def _world_size(place: Place | None, options: Mapping[str, Any]) -> int:
    """Returns torchrun's ranks, those asked for, or the fewest that the sizes need."""
    nproc = options["nproc"]
    if place is None:
        # A stage needs a multiple of tp x cp ranks and, as experts spread over them, of ep ranks.
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


def _emulated(options: Mapping[str, Any]) -> Emulated | None:
    times = {k: each for k, each in _values(Emulated, options).items() if each is not None}
    if options["compute"] == "emulated":
        return Emulated(**times)
    if times:
        raise InputError(
            "--forward-ms and --backward-ms are times of emulated compute; "
            "add --compute emulated or leave them out"
        )
    return None
