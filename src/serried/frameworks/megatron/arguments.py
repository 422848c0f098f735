"""What Megatron-LM's own command line refuses beyond megatron-core, and the settings it looks at.

Read from megatron/training/arguments.py (validate_args) of Megatron-LM core_v0.16.1. No group
depends on these settings, so they count only where they are given.
"""

from __future__ import annotations

from serried.errors import InputError, listed
from serried.frameworks.framework import divisors, number, switch
from serried.mesh.sizes import Sizes

ARGUMENTS = {
    "num_experts": "experts of the model; --ep must divide them (default not looked at)",
    "seq_length": "tokens of a sequence; 2 x cp must divide them (default not looked at)",
    "use_torch_fsdp2": "true shards by torch, which needs pp=1 and ep=1 (default false)",
    "validate_args": "true refuses hybrid context parallelism with pipelines too (default false)",
}


def check_arguments(sizes: Sizes) -> None:
    """Raises InputError where Megatron-LM's command line refuses what megatron-core would take."""
    experts = number(sizes, "num_experts", sizes.ep)
    if experts % sizes.ep:
        raise InputError(
            "ep={ep} does not divide num_experts={experts}; sizes that do: {fits}",
            ep=sizes.ep,
            experts=experts,
            fits=listed(divisors(experts), limit=24),
        )
    tokens = number(sizes, "seq_length", 2 * sizes.cp)
    if sizes.cp > 1 and tokens % (2 * sizes.cp):
        raise InputError(
            "seq_length={tokens} does not divide into 2 x cp = {parts} parts; "
            "lengths that do: {below} and {above}",
            tokens=tokens,
            parts=2 * sizes.cp,
            below=tokens // (2 * sizes.cp) * 2 * sizes.cp,
            above=(tokens // (2 * sizes.cp) + 1) * 2 * sizes.cp,
        )
    if switch(sizes, "use_torch_fsdp2") and (sizes.pp > 1 or sizes.ep > 1):
        raise InputError(
            "use_torch_fsdp2=true needs pp=1 and ep=1; here pp={pp} and ep={ep}",
            pp=sizes.pp,
            ep=sizes.ep,
        )
    hybrid = switch(sizes, "hybrid_context_parallel")
    if switch(sizes, "validate_args") and hybrid and sizes.pp > 1:
        raise InputError(
            "hybrid_context_parallel=true does not go with pp={pp} in Megatron-LM; set pp=1",
            pp=sizes.pp,
        )
