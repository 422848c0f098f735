"""One pipeline stage of a model of transformers: its own code, on the parts that the stage holds.

    stage 0         embed_tokens  layers.0  layers.1
    stage 1                                           layers.2  layers.3  norm  lm_head

Over tp ranks transformers' own styles cut it (``apply_tensor_parallelism``), by the model's own
plan. The one style that is not taken from there sums the gradient of a norm of heads after each
backward: with several microbatches it would sum what it had summed before, so training sums it
once a step (``partly_seen``).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.nn import functional

from serried.runtime.job.config_model import ConfigModel
from serried.runtime.model.held_stage import HeldStage
from serried.runtime.pretrained.build import draw, meta_model, require_set
from serried.runtime.pretrained.plan import PACKED, SUMMED, ModelPlan
from serried.runtime.pretrained.weights import load_weights
from serried.runtime.stages.observed import Observed
from serried.runtime.stages.pruned import pruned


class PretrainedStage(HeldStage):
    """Holds one stage of the model that ``sizes`` describe; it is empty until it draws weights."""

    def __init__(
        self,
        sizes: ConfigModel,
        *,
        stage: int,
        num_stages: int,
        recompute: Literal["none", "selective", "full"] = "none",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Prepares a stage that computes in ``dtype``."""
        super().__init__()
        self.sizes, self.stage, self.is_last = sizes, stage, stage == num_stages - 1
        self.vocabulary = sizes.vocabulary
        model = meta_model(sizes)
        model.config.use_cache = False  # of keys and values, which only generating has a use for
        if recompute == "full":
            model.activation_checkpointing_enable({"use_reentrant": False})
        self.plan = ModelPlan.of(model, sizes)
        names = {module: name for name, module in model.named_modules()}
        self.embedding = names[model.get_input_embeddings()]
        self.output = names[model.get_output_embeddings()]
        parts = {part: self.plan.stage_of(part, num_stages) for part in self.plan.parts()}
        self._parts = tuple(part for part, holder in parts.items() if holder == stage)
        self._whole = (model,)
        """The whole model, without memory; in a tuple, so that it is no part of this one."""
        seen = _observed(parts, sizes, num_stages, dtype)
        self.inside: Any = pruned(model, self.plan.starts(num_stages), stage, seen, _scores)

    def forward(self, x: Tensor) -> Tensor:
        """Takes tokens (batch, sequence) or hidden states; returns hidden states or scores."""
        out: Tensor = self.inside(x)
        return out

    def loss(self, output: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
        """Returns the cross entropy of the next tokens, in nats, in float32 at least."""
        wide = torch.promote_types(output.dtype, torch.float32)
        scores = output.to(wide).flatten(0, 1)
        return functional.cross_entropy(scores, target.flatten(), reduction=reduction)

    def held(self) -> tuple[str, ...]:
        """Returns the names of what the stage holds of the model."""
        return self._parts

    @torch.no_grad()
    def draw_weights(self, seed: int) -> None:
        """Gives the stage memory, and weights: the folder's, or drawn from ``seed``.

        Raises InputError where they cannot be read, or not be drawn.
        """
        (model,) = self._whole
        self.inside.to_empty(device="cpu")
        draw(model, self.inside, seed)
        self._tie()
        embedding, output = self.ends()
        if self.sizes.weights:
            load_weights(self.sizes, model, dict(self.weights()))
        elif self.sizes.tie and embedding is None and output is not None:
            alone = copy.deepcopy(model.get_input_embeddings()).to_empty(device="cpu")
            draw(model, alone, seed, self.embedding)
            output.copy_(alone.weight)
        require_set(self.inside, self.sizes)

    def cut_over(self, mesh: DeviceMesh) -> None:
        """Cuts the weights over the tp ranks of ``mesh``, each of which holds all of them now."""
        from transformers.distributed.tensor_parallel import apply_tensor_parallelism

        apply_tensor_parallelism(self.inside, mesh, self.tensor_cuts())
        self._tie()

    def tensor_cuts(self) -> dict[str, str]:
        """Returns how tp ranks cut modules and parameters, by transformers' styles."""
        cuts = self.plan.cuts(self.inside)
        if self.sizes.tie and f"{self.embedding}.weight" not in self.plan.cuts(self._whole[0]):
            # The output is the embedding, which the plan leaves whole: so both are.
            for name in (self.output, f"{self.output}.weight"):
                cuts.pop(name, None)
        return {name: style for name, style in cuts.items() if style != SUMMED}

    def units(self) -> Iterable[nn.Module]:
        """Returns the layers, which ZeRO gathers one by one."""
        return [self.inside.get_submodule(name) for name in self.plan.layers if name in self._parts]

    def weights(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yields each weight under its name in the whole model: a tied output is the embedding."""
        for name, parameter in self.inside.named_parameters():
            is_copy = self.sizes.tie and name == f"{self.output}.weight"
            yield (f"{self.embedding}.weight" if is_copy else name), parameter

    def ends(self) -> tuple[nn.Parameter | None, nn.Parameter | None]:
        """Returns the embedding's weight and the output's, each where the stage holds it."""
        held = dict(self.inside.named_parameters(remove_duplicate=False))
        return held.get(f"{self.embedding}.weight"), held.get(f"{self.output}.weight")

    def kept_whole(self) -> Mapping[str, int]:
        """Returns the experts' weights of which a tp rank holds several parts: gates and ups."""
        packed = {name for name, style in self.plan.cuts(self.inside).items() if style in PACKED}
        return {name: len(weight) for name, weight in self.weights() if name in packed}

    def partly_seen(self) -> Iterable[nn.Parameter]:
        """Returns the norms of heads, of which each tp rank has a part."""
        cuts = self.plan.cuts(self.inside)
        return [each for name, each in self.inside.named_parameters() if cuts.get(name) == SUMMED]

    def _tie(self) -> None:
        """Makes the output's weight the embedding's, where they are one and both are here."""
        embedding, output = self.ends()
        if self.sizes.tie and embedding is not None and output is not None:
            self.inside.get_submodule(self.output).weight = embedding


def _observed(
    parts: dict[str, int], sizes: ConfigModel, num_stages: int, dtype: torch.dtype
) -> Observed:
    """Returns what a forward of the model would show, by its plan: nothing is run."""
    tokens = torch.empty(1, sizes.seq_len, dtype=torch.int64, device="meta")
    # The type of what an absent embedding gives is that of rotary angles, made after it.
    hidden = torch.empty(1, sizes.seq_len, sizes.hidden, dtype=dtype, device="meta")
    return Observed(
        stages_of={part: {holder} for part, holder in parts.items()},
        gave=dict.fromkeys(parts, hidden),
        streams=[tokens, *[hidden] * (num_stages - 1)],
    )


def _scores(returned: Any) -> Any:
    return returned.logits
