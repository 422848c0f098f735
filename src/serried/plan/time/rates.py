"""What each job's hardware reaches: FLOP/s and bytes per second, peaks times constants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from serried.plan.cluster.cluster import Gpu
from serried.plan.time.chips import ULTRA, generation, kind
from serried.plan.time.constants import Constants
from serried.plan.time.jobs import FORMATS, Column, Jobs

_PEAK_OF = {
    "16": ("bf16", "fp16"),
    "8": ("fp8", "bf16", "fp16"),
    "4": ("fp4", "fp8", "bf16", "fp16"),
}
EXPONENTIALS = {
    "volta": 2.0e12,
    "ampere": 2.4e12,
    "ada": 5.7e12,
    "hopper": 3.7e12,
    "blackwell": 4.4e12,
    "cdna3": 10.2e12,
    "cdna4": 19.7e12,
    "cpu": 2.5e9,
}
"""Exponentials per second of a generation's large GPU: 16 a clock of each multiprocessor, twice
that on Blackwell Ultra (CUDA C++ programming guide, throughput of native arithmetic instructions);
16 of each compute unit on CDNA3, 32 on CDNA4 (AMD's white papers).
Of one CPU core nominally 8 in ten clocks."""


@dataclass(frozen=True, eq=False)
class Rates:
    """Holds what is reached, one number a job."""

    linear: Column
    """FLOP/s of large GEMMs in the format of the job's linear layers."""
    wide: Column
    """FLOP/s of large GEMMs in bf16, as the output layer and the router run."""
    attention: Column
    """FLOP/s of flash attention's forward with 128 numbers a head."""
    bf16_peak: Column
    memory: Column
    """Bytes per second of the card's memory."""
    nvlink: Column
    nic: Column
    host: Column
    """Bytes per second to the host's memory or from it."""
    host_memory: Column
    """Bytes per second of a GPU's share of the host's memory, as sold."""
    exponentials: Column
    """Numbers of a head whose products take as long as one exponential does."""
    usual_exponentials: Column
    """The same of its generation's usual type."""
    domain: Column
    """GPUs of the job that one NVLink domain holds."""
    weight_bytes: Column
    """Bytes of one weight or input as a GEMM reads it."""


def peak(gpu: Gpu, bits: str) -> float:
    """Returns a GPU's peak in so many bits, or in the next wider that it has.

    >>> a100 = Gpu("a100", "nvidia", {"bf16": 312e12}, 80e9, 2e12, 300e9)
    >>> peak(a100, "8") == peak(a100, "16")
    True
    """
    for name in _PEAK_OF[bits]:
        if name in gpu.peak_flops:
            return gpu.peak_flops[name]
    return gpu.peak("bf16")


def rates(jobs: Jobs, constants: Constants) -> Rates:
    """Returns what each job's GPU and links reach."""
    gpus = [each.gpu for each in jobs.clusters]
    table = np.array(
        [[peak(gpu, bits) * constants.gemm(gpu, bits) for bits in FORMATS] for gpu in gpus]
    )
    bf16 = np.array([peak(gpu, "16") for gpu in gpus])
    attention = np.array([constants.attention(gpu) for gpu in gpus]) * bf16
    memory = np.array([gpu.memory_bytes_per_s for gpu in gpus]) * constants.value("memory")
    nvlink = np.array([gpu.link_bytes_per_s for gpu in gpus]) * constants.value("nvlink")
    nic = np.array([each.nic_bytes_per_s for each in jobs.clusters]) * constants.value("nic")
    usual = np.array([peak(gpu, "16") / 4.0 / EXPONENTIALS[generation(gpu)] for gpu in gpus])
    faster = np.array([2.0 if kind(gpu) in ULTRA else 1.0 for gpu in gpus])
    at = jobs.cluster
    return Rates(
        exponentials=(usual / faster)[at],
        usual_exponentials=usual[at],
        linear=table[at, jobs.format],
        wide=table[at, 0],
        attention=attention[at],
        bf16_peak=bf16[at],
        memory=memory[at],
        nvlink=nvlink[at],
        nic=nic[at],
        host=np.array([gpu.host_bytes_per_s for gpu in gpus])[at],
        host_memory=np.array([gpu.host_memory_bytes_per_s for gpu in gpus])[at],
        domain=_domain(jobs),
        weight_bytes=np.array([2.0, 1.0, 0.55])[jobs.format],
    )


def _domain(jobs: Jobs) -> Column:
    """Returns how many of a job's GPUs share an NVLink domain.

    Of a rack of 72 a job that needs more takes 64: groups of powers of 2 fill no more.
    """
    whole = np.array([float(each.nvlink_domain) for each in jobs.clusters])[jobs.cluster]
    usable = np.where((whole >= 72) & (jobs.world_size > whole), 64.0, whole)
    return np.asarray(np.minimum(usable, jobs.world_size))
