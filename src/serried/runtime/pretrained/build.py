"""Builds a model of transformers from its config, without memory, and draws weights for a part.

    config.json ──> meta model (shapes alone) ──cut──> stage ──memory──> drawn or loaded

A module's weights are drawn as its own class says (``_init_weights``), from the run's seed and the
module's name in the whole model, so that they are the same however the model is cut.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from serried.errors import InputError, listed
from serried.runtime.job.config_model import ConfigModel, config_of
from serried.runtime.model.model import seed_of
from serried.runtime.stages.pruned import AbsentPart


def meta_model(sizes: ConfigModel) -> Any:
    """Returns the model of ``sizes``, its tensors on the meta device.

    Raises InputError where transformers cannot build it.
    """
    return model_of(json.loads(sizes.config), sizes.source)


def model_of(described: Mapping[str, Any], source: Path | None) -> Any:
    """Returns the model of a config, of which the user is told as ``source``, without memory."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    try:
        config = config_of(described)
        kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
        with torch.device("meta"):
            model = kind._from_config(config, dtype=torch.float32)
    except Exception as error:  # each class refuses sizes in a way of its own
        lines = str(error).strip().splitlines()
        raise InputError(
            "transformers cannot take {path} as a model: {reason}",
            path=source,
            reason=lines[0] if lines else type(error).__name__,
        ) from error
    return model


@torch.no_grad()
def draw(model: Any, held: nn.Module, seed: int, prefix: str = "") -> None:
    """Draws the weights of ``held``, a part of ``model`` that is called ``prefix`` there.

    It has memory on the CPU. Raises InputError where the model's class does not say how a tensor
    is drawn.
    """
    for tensor in (*held.parameters(), *held.buffers()):
        if tensor.is_floating_point():
            tensor.fill_(math.nan)
    for name, module in _children_first(held, prefix):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_of(seed, name))
            model._init_weights(module)


def require_set(held: nn.Module, sizes: ConfigModel) -> None:
    """Raises InputError where a tensor was neither drawn nor loaded."""
    tensors = (*held.named_parameters(), *held.named_buffers())
    left = [name for name, each in tensors if each.is_floating_point() and each.isnan().any()]
    if left:
        raise InputError(
            "{architecture} does not say how {names} begin, so weights cannot be drawn for it; "
            "give a folder with its safetensors",
            architecture=sizes.architecture,
            names=listed(left, limit=3),
        )


def _children_first(model: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yields modules, a parent after its children: it may draw theirs anew, as GPT-2's does."""
    if isinstance(model, AbsentPart):
        return
    for key, child in model.named_children():
        yield from _children_first(child, f"{prefix}.{key}" if prefix else key)
    yield prefix, model
