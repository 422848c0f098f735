"""Writes a trained model of transformers as transformers itself does: names, experts, config."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from serried.errors import InputError
from serried.runtime.pretrained.build import model_of
from serried.whole_file import whole_path

ONE_FILE = 1 << 60
"""More bytes than a model has, so that it is not cut into several files."""


def export_pretrained(config: Mapping[str, Any], tensors: dict[str, Tensor], file: Path) -> None:
    """Writes ``tensors``, by their names in the model of ``config``, and its config.json beside.

    Raises InputError where they cannot be written.
    """
    model = model_of(config, None)
    model.load_state_dict(tensors, strict=False, assign=True)
    model.to(next(iter(tensors.values())).dtype)
    model.tie_weights()
    try:
        with tempfile.TemporaryDirectory(dir=file.absolute().parent) as folder:
            model.save_pretrained(folder, max_shard_size=ONE_FILE)
            with whole_path(file) as part, whole_path(file.parent / "config.json") as beside:
                (Path(folder) / "model.safetensors").replace(part)
                (Path(folder) / "config.json").replace(beside)
    except OSError as error:
        raise InputError(
            "{path} cannot be written: {reason}", path=file, reason=error.strerror or error
        ) from error
