"""What a framework's code keeps besides what the mathematics needs, and the constants measured.

The formulas of this room are one for all; how a framework computes them is told by the flags of
one ``Implementation``: which kernels are fused, what stays a copy, what lies in torch's allocator
from the first step on, and what the device holds outside of it.

    torch's allocator   model states, activations, buffers, workspace
    reserved            x ``reserved_ratio``: what lies between the tensors
    device              + ``outside_bytes``: CUDA's context, NCCL's buffers, libraries
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from serried.errors import InputError, listed
from serried.plan.model.shape import ModelShape

MIB = 1 << 20
CrossEntropy = Literal[
    "in-place", "vocab-parallel", "compiled", "torch", "torch-compiled", "chunked"
]


@dataclass(frozen=True)
class LossBytes:
    """Holds what the loss takes for each score: a token and a word that a rank has."""

    kept: int
    """From the forward of the last stage to its backward."""
    worked: int
    """What stands beside that when most does."""


LOSSES: Mapping[CrossEntropy, LossBytes] = {
    # Transformer Engine's writes the gradient over the scores, which are of 16 bits.
    "in-place": LossBytes(2, 0),
    # Megatron's own keeps the softmax in fp32, and has the scores or their gradient beside it.
    "vocab-parallel": LossBytes(4, 2),
    # The same through torch's compiler is not in place any more.
    "compiled": LossBytes(4, 6),
    # Torch's has scores, log-softmax in fp32, and the gradients of both.
    "torch": LossBytes(6, 8),
    # Compiled, or as flash-attn's, it has the scores and their gradient, both of 16 bits.
    "torch-compiled": LossBytes(2, 2),
    # Liger's never has all scores at once: some 1/16th of them.
    "chunked": LossBytes(0, 0),
}
"""What each way to compute the loss takes.

Sources: Transformer Engine 2.11, common/triton/cross_entropy.py; Megatron-LM d98e8a64,
core/tensor_parallel/cross_entropy.py and core/fusions/fused_cross_entropy.py; torch 2.13,
LossNLL.cpp; liger-kernel, fused_linear_cross_entropy.
"""


@dataclass(frozen=True)
class Implementation:
    """Holds how one framework, of one time, computes a step."""

    name: str
    source: str
    cross_entropy: CrossEntropy = "vocab-parallel"
    norm_root_bytes: int = 0
    """What a norm keeps of each token besides its input: the root of the variance, and the mean."""
    norm_input_bytes: int = 0
    """The bytes of a number that it keeps its input in; 0: those of the stream itself."""
    norm_copy_bytes: int = 0
    """What it keeps of each number besides its input, where it is not one kernel."""
    is_norm_output_whole: bool = False
    """Whether tp ranks keep a norm's output whole where the sequence is split over them."""
    activation_copies: int = 0
    """Copies as wide as the feed-forward that an unfused SwiGLU keeps."""
    attention_output_copies: int = 0
    """Further copies of what attention gives, in another order of axes."""
    mask_bytes: int = 1
    """What a number's place in a mask of dropout takes."""
    keeps_narrow_weights: bool = False
    """Whether copies of weights in 8 or 4 bits stay from microbatch to microbatch."""
    keeps_blank_gradients: bool = False
    """Whether a blank gradient of each shape of weight stays (TE 2.3, ``get_dummy_wgrad``)."""
    keeps_scores_buffer: bool = False
    """Whether unfused attention has a buffer of one layer's scores that stays (Megatron's own)."""
    keeps_stage_outputs: bool = False
    """Whether a stage's output stays until its backward, though it was sent."""
    stage_messages: int = 0
    """Messages between stages that lie in the allocator when most does."""
    steady_messages: int = 0
    """Further ones that each chunk of a rank still has between two steps."""
    keeps_buckets: bool = False
    """Whether whole gradients are copied into buckets to be summed (torch's DDP, ZeRO 0)."""
    keeps_narrow_gradients: bool = False
    """Whether gradients of what is computed with stay beside wider ones they are summed into."""
    step_bytes: int = 0
    """What the optimizer's step makes of each weight that a rank updates: a wide gradient."""
    bucket_bytes: int = 0
    """Buckets in which gradients and parameters travel."""
    dispatch_copies: float = 4.0
    """Copies of all routed tokens that an MoE layer's backward has at once, by measurement."""
    keeps_gemm_workspace: bool = False
    """Whether a library has a workspace for matrices besides torch's (Transformer Engine)."""
    routes_by_engine: bool = False
    """Whether experts' routers multiply by Transformer Engine, whatever else does."""
    reserved_ratio: float = 1.05
    outside_bytes: int = 1300 * MIB
    error: float = 0.1
    """Nine of ten measured peaks of dense models lay within this part of the plan and
    ``error_bytes``, of tests that saw none of its rows too (``python -m benchmarks.accuracy``)."""
    expert_error: float = 0.2
    """The same of models with experts."""
    error_bytes: int = 0

    def error_of(self, model: ModelShape) -> float:
        """Returns the part of the plan that goes for a model."""
        return self.error if model.experts is None else self.expert_error


_MEGATRON = Implementation(
    "megatron",
    "Megatron-LM d98e8a64 with Transformer Engine 2.11",
    keeps_narrow_weights=True,
    keeps_blank_gradients=True,
    keeps_gemm_workspace=True,
    routes_by_engine=True,
    stage_messages=1,
    steady_messages=2,
    error=0.03,
    expert_error=0.07,
    error_bytes=64 * MIB,
)
IMPLEMENTATIONS: Mapping[str, Implementation] = {
    each.name: each
    for each in (
        _MEGATRON,
        replace(
            _MEGATRON,
            name="megatron-local",
            source="Megatron-LM d98e8a64, --transformer-impl local",
            keeps_blank_gradients=False,
            keeps_gemm_workspace=False,
            keeps_scores_buffer=True,
        ),
        Implementation(
            "megatron-deepspeed",
            "bigscience-workshop/Megatron-DeepSpeed of 2022, chronicles of tr11-176B-ml",
            keeps_stage_outputs=True,
            keeps_narrow_gradients=True,
            step_bytes=4,
            bucket_bytes=2 * 500_000_000 * 2,
            reserved_ratio=1.09,
            outside_bytes=4600 * MIB,
            error=0.08,
        ),
        Implementation(
            "deepspeed",
            "deepspeed 0.19.8 over models of transformers",
            cross_entropy="torch",
            norm_root_bytes=4,
            activation_copies=1,
            step_bytes=4,
            bucket_bytes=2 * 500_000_000 * 2,
            reserved_ratio=1.0,
            error=0.11,
        ),
        Implementation(
            "torch",
            "torch 2.13.0, fsdp and pipelining",
            cross_entropy="torch",
            norm_root_bytes=4,
            is_norm_output_whole=True,
            activation_copies=1,
            keeps_buckets=True,
            stage_messages=2,
        ),
        Implementation(
            "llm-foundry",
            "llm-foundry 0.22, models/mpt/modeling_mpt.py: flash-attn's cross entropy by default",
            cross_entropy="torch-compiled",
            norm_root_bytes=4,
        ),
    )
}
"""Each by its name."""

OF_FRAMEWORK: Mapping[str, str] = {
    "megatron": "megatron",
    "megatron-deepspeed": "megatron-deepspeed",
    "nemo": "megatron",
    "deepspeed": "deepspeed",
    "llm-foundry": "llm-foundry",
}
"""The implementation that a framework's jobs are planned by; those of others are torch's."""


def implementation_of(framework: str, options: Mapping[str, str]) -> Implementation:
    """Returns a framework's implementation, as the options of the job change it.

    >>> implementation_of("megatron", {"cross_entropy_fusion_impl": "te"}).cross_entropy
    'in-place'

    Raises InputError for an implementation that is not known.
    """
    name = options.get("implementation") or OF_FRAMEWORK.get(framework, "torch")
    if "deepspeed" in options:
        name = "deepspeed"
    if name == "megatron" and options.get("transformer_impl") == "local":
        name = "megatron-local"
    if name not in IMPLEMENTATIONS:
        raise InputError(
            "implementation '{name}' is not known; there are {known}",
            name=name[:40],
            known=listed(IMPLEMENTATIONS),
        )
    found = IMPLEMENTATIONS[name]
    if options.get("gradient_accumulation_fusion") == "false":
        found = replace(found, keeps_blank_gradients=False)
    if options.get("cross_entropy_fusion_impl") == "te":
        return replace(found, cross_entropy="in-place")
    if options.get("cross_entropy_loss_fusion") == "true":
        return replace(found, cross_entropy="compiled")
    if "liger" in options:
        return replace(found, cross_entropy="chunked", activation_copies=0)
    if "torch.compile" in options:
        return replace(
            found, cross_entropy="torch-compiled", activation_copies=0, is_norm_output_whole=False
        )
    return found
