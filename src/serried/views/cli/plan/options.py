"""Options that say a job to be planned beside its layout: the model, the cluster, the training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from serried.plan.asked import FIELDS
from serried.views.cli.output import PATH

if TYPE_CHECKING:
    from serried.plan.time.constants import Constants

Command = TypeVar("Command", bound=Callable[..., object])

_OPTIONS = (
    click.option(
        "--model",
        metavar="NAME|FILE",
        help="Model by its name, such as llama3-8b, a Hugging Face config.json or its folder, or "
        "its sizes: mine:layers=4,hidden=64,heads=4,vocab=99.",
    ),
    click.option(
        "--cluster",
        metavar="NAME|FILE",
        help="Cluster by its name or its GPU's, such as h100 or gb200, or a TOML file with its "
        "figures.",
    ),
    click.option("--sequence", metavar="TOKENS", help="Tokens of one sequence."),
    click.option("--global-batch", metavar="N", help="Sequences of one step of the whole job."),
    click.option("--micro-batch", metavar="N", help="Sequences of one microbatch; by default 1."),
    click.option(
        "--schedule",
        metavar="NAME",
        help="Pipeline schedule, as serried schedule lists them; by default 1f1b, or "
        "interleaved-1f1b with --chunks.",
    ),
    click.option("--layers-first", metavar="N", help="Layers of the first rank of the pipeline."),
    click.option("--layers-last", metavar="N", help="Layers of the last rank of the pipeline."),
    click.option(
        "--layers-picture",
        metavar="LAYOUT",
        help="Stages as Megatron draws them, such as Et*3|(t*4|)*2t*3L.",
    ),
    click.option(
        "--account-for",
        metavar="ENDS",
        help="Count embedding, loss or embedding,loss as a layer each when layers are divided.",
    ),
    click.option(
        "--states",
        metavar="NAME",
        help="Recipe of precision of parameters, gradients and optimizer; by default the "
        "framework's.",
    ),
    click.option(
        "--compute",
        metavar="FORMAT",
        help="What matrices are multiplied in: bf16, as by default, fp16, fp8, mxfp8, nvfp4 …",
    ),
    click.option(
        "--recompute",
        metavar="WHAT",
        help="none, full, full:LAYERS, selective or selective:MODULE,MODULE, such as "
        "selective:core_attn,mlp; by default none.",
    ),
    click.option(
        "--offload",
        metavar="WHAT",
        help="What lies in the host's memory: optimizer, activations or parameters; by default "
        "none.",
    ),
    click.option(
        "--lora", metavar="N", help="Train adapters alone, such as 16 or 16:qkv,o,fc1,fc2."
    ),
    click.option(
        "--sequence-parallel",
        metavar="BOOL",
        help="Whether norms and dropout are split along the sequence over tp; by default true.",
    ),
    click.option(
        "--flash-attention",
        metavar="BOOL",
        help="Whether attention keeps no scores; by default true.",
    ),
    click.option(
        "--constants",
        type=PATH,
        metavar="FILE",
        help="Time the step by constants that were calibrated, instead of those that serried "
        "ships.",
    ),
)


def plan_options(command: Command) -> Command:
    """Adds the options that say model, cluster, batch and training, and the constants of time."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def plan_words(options: Mapping[str, Any]) -> dict[str, str]:
    """Returns the words of a plan among the options of a command, as they were typed."""
    words = {name: options.get(name) for name in FIELDS}
    for name in ("layers", "chunks"):
        if isinstance(words[name], tuple):
            words[name] = ",".join(map(str, words[name] or ()))
    return {name: str(value) for name, value in words.items() if value is not None}


def plan_constants(options: Mapping[str, Any]) -> Constants | None:
    """Returns the constants of the file that is named; None for those that serried ships."""
    if options["constants"] is None:
        return None
    from serried.plan.calibration.document import read_constants

    return read_constants(options["constants"])
