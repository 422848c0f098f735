"""What libraries of matrices keep in torch's allocator from the first product on.

    cuBLAS through torch       one for each handle on each stream: the thread that runs forward has
                               a handle, and autograd's own thread, which runs backward
      experts beside messages  as many for a second stream
    Transformer Engine         one of its own
      experts in one product   one more for each of four streams
      messages of tp overlapped  one more for each of three streams

Sources: torch 2.13, aten/src/ATen/cuda/CublasHandlePool.cpp; Transformer Engine 2.11,
module/base.py and cpp_extensions/gemm.py. Megatron-LM's own tests hold them to the MiB: beside the
model's states 68 MiB on A100 with ``CUBLAS_WORKSPACE_CONFIG=:4096:8``, 20 without it, 96 on H100.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from serried.plan.cluster.cluster import Gpu
from serried.plan.memory.implementation import MIB, Implementation
from serried.plan.time.chips import generation

HANDLES = 2
"""Threads that multiply through torch: forward's and autograd's."""
OF_A_HANDLE = 2 * 4 * MIB + 8 * 16 * 1024
"""``:4096:2:16:8``, which torch takes where ``CUBLAS_WORKSPACE_CONFIG`` is not set."""
OF_A_HANDLE_ON_HOPPER = 32 * MIB
ENGINES = {False: 4 * MIB, True: 32 * MIB}
"""Transformer Engine's own: before Hopper, and since."""
ON = ("True", "true", "1")
GROUPED_STREAMS = 4
OVERLAP_STREAMS = 3


def handle_bytes(gpu: Gpu, config: str = "") -> int:
    """Returns the workspace of one cuBLAS handle, in bytes.

    ``config`` is the environment's ``CUBLAS_WORKSPACE_CONFIG``: sizes in KiB and counts in turn.

    >>> a100 = Gpu("a100", "nvidia", {"bf16": 312e12}, 80e9, 2.039e12, 300e9)
    >>> handle_bytes(a100) / MIB, handle_bytes(a100, ":4096:8") / MIB
    (8.125, 32.0)
    """
    pairs = re.findall(r":(\d{1,9}):(\d{1,9})", config)
    if pairs:
        return sum(int(size) * int(count) * 1024 for size, count in pairs)
    return OF_A_HANDLE_ON_HOPPER if generation(gpu) == "hopper" else OF_A_HANDLE


def workspace_bytes(
    built: Implementation, gpu: Gpu, options: Mapping[str, str], *, has_experts: bool = False
) -> int:
    """Returns what all of them take on one rank, in bytes.

    >>> from serried.plan.memory.implementation import IMPLEMENTATIONS
    >>> h100 = Gpu("h100", "nvidia", {"bf16": 989e12, "fp8": 1979e12}, 80e9, 3.35e12, 450e9)
    >>> workspace_bytes(IMPLEMENTATIONS["megatron"], h100, {}) // MIB
    96
    """
    config = options.get("cublas_workspace_config", "")
    handles = HANDLES * (2 if options.get("a2a_overlap") in ON else 1)
    streams = 0
    if built.keeps_gemm_workspace or (built.routes_by_engine and has_experts):
        streams = 1
    if built.keeps_gemm_workspace and has_experts and options.get("moe_grouped_gemm") != "false":
        streams += GROUPED_STREAMS
    if built.keeps_gemm_workspace and options.get("tp_comm_overlap") in ON:
        streams += OVERLAP_STREAMS
    return handles * handle_bytes(gpu, config) + streams * ENGINES["fp8" in gpu.peak_flops]
