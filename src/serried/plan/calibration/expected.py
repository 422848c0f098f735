"""What the constants are expected to be before a step is measured, and how firmly.

Widths are of logarithms: 0.25 is "within a quarter, two times in three". A GPU type is held within
6 % of its generation, so that one measured configuration cannot make it an outlier. No step of an
MI300X is among the tables: what it reaches is as AMD measured, 708 of 1,307 TFLOP/s in bf16 and
1,273 of 2,615 in fp8 (rocm.blogs.amd.com, Measuring Max-Achievable FLOPs, part 2, as TraceLens
quotes it), and an MI355X 3,130 of 5,000 in fp8 (its CDNA4 GEMM kernels, quoted too).
"""

from __future__ import annotations

from collections.abc import Mapping

from serried.plan.calibration.fit import Expectation
from serried.plan.time.jobs import FORMATS

_GEMM = {
    "ampere.16": 0.82,
    "ada.8": 0.60,
    "hopper.16": 0.75,
    "hopper.8": 0.65,
    "blackwell.16": 0.62,
    "blackwell.8": 0.65,
    "blackwell.4": 0.50,
    "cdna3.16": 0.54,
    "cdna3.8": 0.49,
    "cdna4.16": 0.60,
    "cdna4.8": 0.62,
}
_ATTENTION = {
    "ampere": 0.60,
    "hopper": 0.50,
    "blackwell": 0.50,
    "cdna3": 0.35,
    "cdna4": 0.40,
    "ada": 0.40,
}
_SHARED = {
    "gemm_bytes": (1.0, 0.4),
    "memory": (0.75, 0.15),
    "grouped": (0.92, 0.06),
    "attention_backward": (3.25, 0.2),
    "attention_exponentials": (0.5, 0.5),
    "attention_begin": (512.0, 0.7),
    "attention_portable": (0.65, 0.3),
    "attention_ultra": (1.2, 0.2),
    "eager_gemm": (0.5, 0.3),
    "eager_passes": (4.0, 0.5),
    "eager_misaligned": (3.0, 0.5),
    "elementwise": (1.0, 0.4),
    "elementwise_plain": (1.5, 0.5),
    "cast_delayed": (1.0, 0.7),
    "cast_current": (1.3, 0.5),
    "cast_mxfp8": (2.0, 0.5),
    "cast_nvfp4": (3.0, 0.5),
    "loss_passes": (6.0, 0.5),
    "gradient_sum": (1.0, 0.2),
    "gradient_sum_deepspeed": (2.0, 0.7),
    "routing": (1.0, 0.2),
    "expert_bias": (60.0, 0.6),
    "expert_bias_fused": (0.5, 0.5),
    "moe_wait": (2e-3, 0.6),
    "moe_expert": (6e-5, 0.6),
    "moe_kernels": (3.0, 0.6),
    "launch": (8e-6, 0.3),
    "launch_deepspeed": (2.0, 0.7),
    "kernel_gap": (2e-6, 0.7),
    "latency": (5e-6, 0.5),
    "nvlink": (0.72, 0.08),
    "nic": (0.85, 0.08),
    "tp_exposed": (1.0, 0.3),
    "tp_overlapped": (0.35, 0.5),
    "cp_exposed": (0.3, 0.7),
    "ep_exposed": (0.5, 0.25),
    "ep_overlapped": (0.15, 0.35),
    "pp_exposed": (0.6, 0.7),
    "dp_exposed": (0.7, 0.25),
    "fsdp_exposed": (0.3, 0.6),
    "optimizer_bytes": (30.0, 0.4),
    "fixed": (0.03, 0.7),
    "straggling": (0.004, 0.7),
    "stack_deepspeed": (1.05, 0.1),
    "stack_torch": (1.0, 0.06),
    "stack_jax": (1.0, 0.15),
    "lora": (1.1, 0.15),
}
_DEVICES = {
    "a100": ("16",),
    "l40s": ("8",),
    "h100": ("16", "8"),
    "h200": ("16", "8"),
    "b200": FORMATS,
    "gb200": FORMATS,
    "gb300": FORMATS,
    "mi355x": ("8",),
}


def expectations() -> Mapping[str, Expectation]:
    """Returns the expectation of every constant by its name.

    >>> expectations()["gemm.hopper.16"].value
    0.75
    """
    found = {f"gemm.{name}": Expectation(each, 0.15) for name, each in _GEMM.items()}
    found["gemm.blackwell.16"] = Expectation(_GEMM["blackwell.16"], 0.04)
    found |= {f"attention.{name}": Expectation(each, 0.3) for name, each in _ATTENTION.items()}
    for kind, widths in _DEVICES.items():
        found |= {f"device.{kind}.{bits}": Expectation(1.0, 0.06) for bits in widths}
    return found | {name: Expectation(*each) for name, each in _SHARED.items()}
