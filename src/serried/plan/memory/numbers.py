"""Bytes of the number formats that matrices are multiplied in, with the scales that go with them.

    format          a number    scales                     of a weight, besides it
    fp8, -ds, -cs      1        one a tensor               1 and its transpose, 1 (not Blackwell)
    mxfp8              1        1 byte for each 32         by rows and by columns
    nvfp4             1/2       1 byte for each 16         by rows and by columns

Sources: Transformer Engine 2.11, pytorch/tensor (float8_tensor, mxfp8_tensor, nvfp4_tensor) and
``is_non_tn_fp8_gemm_supported``;
OCP Microscaling Formats 1.0; the weight's copies are made at a step's first microbatch and stay.
"""

from __future__ import annotations

from collections.abc import Mapping

OF_A_NUMBER: Mapping[str, float] = {
    "bf16": 2,
    "fp16": 2,
    "fp32": 4,
    "fp64": 8,
    "fp8": 1,
    "fp8-ds": 1,
    "fp8-cs": 1,
    "mxfp8": 1 + 1 / 32,
    "nvfp4": 1 / 2 + 1 / 16,
}
"""Bytes of one number as a matrix multiplication reads it, its part of a scale included."""


def activation_bytes(compute: str) -> int:
    """Returns the bytes of a number between matrix multiplications.

    >>> activation_bytes("fp8"), activation_bytes("fp32")
    (2, 4)
    """
    return {"fp32": 4, "fp64": 8}.get(compute, 2)


def is_narrow(compute: str) -> bool:
    """Tells whether matrices are multiplied in less than 16 bits."""
    return OF_A_NUMBER[compute] < 2


def saved_input_bytes(compute: str) -> float:
    """Returns the bytes of a number of what a linear layer keeps for its weight's gradient.

    In 8 or 4 bits only the copy by columns is kept, which that multiplication reads.
    """
    return OF_A_NUMBER[compute]


def weight_copy_bytes(compute: str, *, needs_transposes: bool = True) -> float:
    """Returns the bytes that a weight has besides itself: none where it is multiplied as it is.

    Where a GPU multiplies any order of axes in 8 bits (Blackwell), one with a scale a tensor needs
    no transpose; blocks of scales lie along an axis, so that they are made for both.

    >>> weight_copy_bytes("bf16"), weight_copy_bytes("fp8"), weight_copy_bytes("mxfp8")
    (0.0, 2.0, 2.0625)
    >>> weight_copy_bytes("fp8-cs", needs_transposes=False)
    1.0
    """
    if not is_narrow(compute):
        return 0.0
    is_whole = OF_A_NUMBER[compute] == 1 and not needs_transposes
    return (1.0 if is_whole else 2.0) * OF_A_NUMBER[compute]
