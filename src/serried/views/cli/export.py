"""``serried export``: a checkpoint's model as one safetensors file."""

from __future__ import annotations

from pathlib import Path

import click

from serried.views.cli.output import show


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("model.safetensors"),
    show_default=True,
    help="File to write; config.json goes beside it.",
)
def export(checkpoint: Path, output: Path) -> None:
    """Writes a checkpoint's model as one safetensors file that transformers loads.

    CHECKPOINT is a step's folder, or a folder of them; then the newest is taken.

    \b
    serried export runs/a -o llama/model.safetensors
    """
    from serried.runtime.checkpoint.checkpoint import require_safetensors
    from serried.runtime.run.launch import require_torch

    require_torch()
    require_safetensors()
    from serried.runtime.checkpoint.export import export as write_model

    folder = write_model(checkpoint, output)
    show(f"{folder} -> {output} and {output.absolute().parent / 'config.json'}")
