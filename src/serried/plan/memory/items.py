"""The items of a rank's memory, named and counted once for a plan and for a search.

item                 of
parameters           weights as they lie between steps, less what is offloaded
gradients            as they are summed
optimizer            wide copies and moments, less what is offloaded
copies of weights    in 8 or 4 bits
blank gradients      Transformer Engine's, of each shape one
gathered weights     ZeRO 3's units
fresh gradients      before they are cut, summed or widened
activations          what forwards left behind
work of backward     what stands beside that when most does
messages             between stages
buffers              of gathered sequences, of scores, of buckets
workspace            libraries' own
fragments            what lies between tensors
context              outside the allocator
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from serried.plan.memory.implementation import Implementation
from serried.plan.memory.states import WeightBytes
from serried.plan.request import Offloaded

OFFLOADED_LEFT = 0.05
"""The part of an offloaded state that is on the device at a time, in the buckets it moves by."""


@dataclass(frozen=True)
class Beside:
    """Holds what a rank has beside weights; numbers or arrays of them."""

    held: Any
    """Activations when most is held."""
    work: Any
    message: Any
    """What one stage sends the next, of a microbatch."""
    is_piped: Any
    """Whether there is a stage to send to."""
    whole_stream: Any = 0
    """The stream gathered over the ranks that split the sequence, where the rank has the output."""
    scores: Any = 0
    """One layer's scores, where attention is not fused."""


def items_of(
    weights: WeightBytes,
    beside: Beside,
    built: Implementation,
    workspace: int,
    offload: Offloaded = "none",
) -> Mapping[str, Any]:
    """Returns bytes by the name of the item; they sum to what the device has in use.

    ``workspace`` is what libraries keep for products of matrices.
    """
    scores = beside.scores if built.keeps_scores_buffer else 0
    items = {
        "parameters": weights.parameters * (OFFLOADED_LEFT if offload == "parameters" else 1),
        "gradients": weights.gradients,
        "optimizer": weights.optimizer * (OFFLOADED_LEFT if offload == "optimizer" else 1),
        "copies of weights": weights.copies,
        "blank gradients": weights.blank,
        "gathered weights": weights.gathered,
        "fresh gradients": weights.fresh,
        "activations": beside.held,
        "work of backward": beside.work,
        "messages": built.stage_messages * beside.message * beside.is_piped,
        "buffers": np.maximum(beside.whole_stream, scores) + built.bucket_bytes,
        "workspace": workspace,
    }
    allocated = sum(items.values())
    return {
        **items,
        "fragments": allocated * (built.reserved_ratio - 1),
        "context": built.outside_bytes,
    }
