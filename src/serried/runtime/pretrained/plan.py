"""Where a model of transformers may be cut: its own plan, which its config and class carry.

    base_model_pp_plan    embed_tokens    layers                      norm      lm_head
    stage                 0               by number, even runs        the last  the last
    base_model_tp_plan    layers.*.self_attn.q_proj: colwise, …                 lm_head: …

GPT-2 has no plan of its own; it is cut into stages by the one here, and over tp ranks not at all,
as its queries, keys and values are one matrix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from serried.errors import InputError, listed
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.model import stage_layers
from serried.runtime.stages.pruned import AbsentPart

OWN_PLANS = {"gpt2": ("wte", "wpe", "h", "ln_f")}
"""Parts of base models, in order, whose configs carry no plan of stages."""

SUMMED = "replicated_with_grad_allreduce"
"""The style of weights that are whole on every tp rank, and see a part of the heads on each."""
PACKED = ("packed_colwise", "packed_rowwise")
"""Styles that give a rank a part of each of two matrices in one."""


@dataclass(frozen=True)
class ModelPlan:
    """Holds the names of a model's parts, in the order in which they run, and how tp cuts them."""

    first: tuple[str, ...]
    """What only the first stage holds: embeddings."""
    layers: tuple[str, ...]
    last: tuple[str, ...]
    """What only the last stage holds: the norm and the head."""
    tensor: Mapping[str, str]
    """transformers' styles by module or parameter, ``*`` for any layer."""

    @classmethod
    def of(cls, model: Any, sizes: ConfigModel) -> ModelPlan:
        """Returns the plan of ``model``; raises InputError where it has none, or not for all."""
        kind = model.config.model_type
        prefix = f"{model.base_model_prefix}."
        names = OWN_PLANS.get(kind) or tuple(model.config.base_model_pp_plan or ())
        if not names:
            raise InputError(
                "{architecture} comes without a plan of how to cut it into stages "
                "(base_model_pp_plan), so it is not trained here; models that have one: {known}",
                architecture=sizes.architecture,
                known=listed(["Llama", "Qwen", "Mistral", "Mixtral"]),
            )
        container = next(
            (
                name
                for name in names
                if isinstance(getattr(model.base_model, name, None), nn.ModuleList)
            ),
            names[-1],
        )
        place = names.index(container)
        numbers = range(len(getattr(model.base_model, container)))
        made = cls(
            first=tuple(prefix + name for name in names[:place]),
            layers=tuple(f"{prefix}{container}.{number}" for number in numbers),
            last=(
                *(prefix + name for name in names[place + 1 :]),
                *(name for name, _ in model.named_children() if f"{name}." != prefix),
            ),
            tensor=dict(model._tp_plan or {}),
        )
        made._require_all(model, sizes)
        return made

    def stage_of(self, part: str, num_stages: int) -> int:
        """Returns the stage that holds ``part``.

        >>> plan = ModelPlan(("embed",), ("layers.0", "layers.1", "layers.2"), ("norm",), {})
        >>> [plan.stage_of(part, 2) for part in ("embed", "layers.1", "layers.2", "norm")]
        [0, 0, 1, 1]
        """
        if part in self.first:
            return 0
        if part in self.last:
            return num_stages - 1
        number = self.layers.index(part)
        runs = stage_layers(len(self.layers), num_stages)
        return next(stage for stage, run in enumerate(runs) if number in run)

    def starts(self, num_stages: int) -> tuple[str, ...]:
        """Returns the layers at which all stages but the first begin."""
        return tuple(
            self.layers[run.start] for run in stage_layers(len(self.layers), num_stages)[1:]
        )

    def cuts(self, stage: nn.Module) -> dict[str, str]:
        """Returns how tp ranks cut what ``stage`` holds: style by module and by parameter."""
        modules = [name for name, each in stage.named_modules() if not isinstance(each, AbsentPart)]
        names = [name for name in modules if _generic(name) in self.tensor]
        names += [name for name, _ in stage.named_parameters()]
        return {name: style for name in names if (style := self._style(name))}

    def _style(self, name: str) -> str | None:
        """Returns how a module or parameter is cut: a parameter as its module, by default."""
        generic = _generic(name)
        return self.tensor.get(generic) or self.tensor.get(generic.rpartition(".")[0])

    def parts(self) -> Iterator[str]:
        """Yields the names of all parts in order."""
        yield from (*self.first, *self.layers, *self.last)

    def _require_all(self, model: nn.Module, sizes: ConfigModel) -> None:
        """Raises InputError unless the parts are there and have all weights."""
        parts = tuple(f"{part}." for part in self.parts())
        modules = {name for name, _ in model.named_modules()}
        beside = [part for part in self.parts() if part not in modules]
        beside += [name for name, _ in model.named_parameters() if not name.startswith(parts)]
        if beside:
            raise InputError(
                "the plan of stages of {architecture} does not fit its weights ({names}), so it "
                "cannot be cut; take a model whose stages hand on one tensor",
                architecture=sizes.architecture,
                names=listed(beside, limit=3),
            )


def _generic(name: str) -> str:
    """Returns a name with ``*`` for the numbers of layers.

    >>> _generic("model.layers.3.self_attn.q_proj")
    'model.layers.*.self_attn.q_proj'
    """
    return re.sub(r"\.\d+(?=\.|$)", ".*", name)
