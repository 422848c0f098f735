"""The kind of a GPU's operation, by its name.

    ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)      communication
    Memcpy HtoD (Pageable -> Device)                memory
    void at::native::vectorized_elementwise_…       computation

Source: the rules of HolisticTraceAnalysis 0.5.0, hta/utils/utils.py (``get_kernel_type``), with
RCCL's and MSCCL++'s names as well. Two of its rules are left out, for they take what is no
kernel for one: ranges drawn over a stream (``gpu_user_annotation``) are computation there, and
waits of a stream (``Stream Wait Event``) too.
"""

from __future__ import annotations

import re

from serried.trace.gpu.activity import OperationKind

_COMMUNICATION = re.compile(r"(nccl|rccl|msccl).*kernel", re.IGNORECASE)
_MEMORY = re.compile(r"Memcpy|Memset|dma|\[CUDA mem", re.IGNORECASE)
_COPIED = re.compile(r"Mem(cpy [A-Za-z0-9]{4}|set)")


def kind_of(name: str) -> OperationKind:
    """Returns the kind that an operation's name says.

    >>> kind_of("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)").name
    'COMMUNICATION'
    >>> kind_of("Memset (Device)").name, kind_of("triton_poi_fused_add_0").name
    ('MEMORY', 'COMPUTATION')
    """
    if _COMMUNICATION.match(name):
        return OperationKind.COMMUNICATION
    return OperationKind.MEMORY if _MEMORY.match(name) else OperationKind.COMPUTATION


def copy_of(name: str) -> str:
    """Returns the way a copy goes, or that it is a fill.

    >>> copy_of("Memcpy HtoD (Pageable -> Device)"), copy_of("Memset (Device)"), copy_of("dma 3")
    ('Memcpy HtoD', 'Memset', 'Memcpy Unknown')
    """
    match = _COPIED.match(name)
    return match[0] if match else "Memcpy Unknown"


def short_name(name: str) -> str:
    """Returns a kernel's name without its return type, template and function arguments.

    A name cut off inside its arguments ends where they begin.

    >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::Array<char*, 1> >(int)")
    'at::native::vectorized_elementwise_kernel'
    >>> short_name("Memcpy HtoD (Pageable -> Device)")
    'Memcpy HtoD (Pageable -> Device)'
    """
    if _MEMORY.match(name) or not set(name) & set("<("):
        return name
    kept: list[str] = []
    depth = 0
    bare = name.replace("->", "").replace("(anonymous namespace)::", "")
    for letter in bare:
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth = max(0, depth - 1)
        elif not depth:
            kept.append(letter)
    return "".join(kept).strip().split(" ")[-1] or name
