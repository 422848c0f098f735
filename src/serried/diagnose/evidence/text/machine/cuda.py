"""What CUDA, cuBLAS, cuDNN and a GPU's memory say where a call fails.

Signs: ``gpu_oom`` (facts ``wanted``, ``gpu``, ``total``, ``free`` as printed), ``size_nonsense``
(memory of a size that no GPU has: that size was received damaged), ``assertion`` (a kernel's own
check failed: facts ``file``, ``condition``), ``cuda`` (fact ``what``), ``cuda_hardware`` (CUDA
reports ECC or NVLink).

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = ("[rank11]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.35 GiB. GPU 3"
...        " has a total capacity of 63.42 GiB of which 1.70 GiB is free.")
>>> [sign] = cuda_signs(log_line(raw, "job.log", 1))
>>> sign.facts["wanted"], sign.speaker.gpu, sign.facts["free"]
('4.35 GiB', 3, '1.70 GiB')
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs

_SIZE = r"[\d.]+ ?[KMGT]i?B"
_DEVICE = r"(?:CUDA|HIP|XPU|NPU|MUSA)"
_PATTERNS = (
    Pattern("size_nonsense", r"Tried to allocate more than 1EB"),  # a size that came damaged
    Pattern(
        "gpu_oom",
        rf"{_DEVICE} out of memory(?:\. Tried to allocate (?P<wanted>{_SIZE}))?"
        rf"(?:.{{0,8}}?GPU (?P<gpu>\d+))?"
        rf"(?:[^.]*?total capacity(?: of)? (?P<total>{_SIZE})(?: of which (?P<free>{_SIZE}))?)?",
    ),
    Pattern("gpu_oom", r"[Cc]uda failure (?:\S+ )?'out of memory'|cudaErrorMemoryAllocation"),
    Pattern(
        "gpu_oom",
        r"CUDA [Ee]rror: (?:out of memory|2\b(?!\.))|NPU out of memory|CUDNN_STATUS_ALLOC_FAILED",
    ),
    Pattern("gpu_oom", rf"OutOfMemoryError: Tried to allocate (?P<wanted>{_SIZE})"),
    Pattern("gpu_oom", r"OUT_OF_DEVICE_MEMORY|hipErrorOutOfMemory|NPU out of memory"),
    Pattern("gpu_oom", r"CUBLAS_STATUS_ALLOC_FAILED|cudaMalloc failed: out of memory"),
    Pattern(
        "gpu_oom",
        r"(?:RESOURCE_EXHAUSTED|ResourceExhausted(?:Error)?)\W.*(?:[Oo]ut of memory|OOM when|"
        r"[Aa]llocat|exceeded.*memory)",
    ),
    Pattern("gpu_oom", r"Out of memory error on GPU (?P<gpu>\d+)|cuda runtime error \(2\)"),
    Pattern(
        "gpu_oom",
        r"ran out of memory trying to allocate(?!.*not a failure)|hip out of memory|"
        r"out_of_memory: CUDA",
    ),
    Pattern("gpu_oom", r"No available memory for the cache blocks"),
    Pattern(
        "gpu_oom",
        r"^\s*torch\.(?:cuda\.)?OutOfMemoryError(?::|\s*$)|"
        r"MPS backend out of memory|Free memory on device .* is less than desired GPU memory",
    ),
    Pattern(
        "gpu_oom",
        r"^(?!.*\b(?:[iI]f|[wW]hen|avoid|prevent|may|might|could|would)\b)"
        r".*(?:\b(?:GPU|CUDA|VRAM) OOM\b|\bOOM (?:on|at|in) (?:rank|GPU|gpu|device) ?\d|"
        r"(?:[rR]ank|GPU|gpu|[dD]evice)[ :=#]{0,2}\d+\b.{0,24} out of memory|"
        r"(?:ran|is|are|went) out of (?:GPU|CUDA|device|VRAM) memory)",
    ),
    Pattern(
        "assertion",
        r"(?<![\w.])(?P<file>[\w.]+\.cuh?):\d+:.*Assertion `?(?P<condition>.*?)`? failed",
    ),
    Pattern("assertion", r"device-side assert(?: triggered)?(?!ions?\b)"),
    Pattern(
        "cuda_hardware",
        r"(?P<what>uncorrectable (?:ECC|NVLink) error(?: encountered)?)"
        r"(?!s?(?: count)?[ :=]{1,3}0\b)",
    ),
    Pattern("cuda_hardware", r"(?P<what>CUDA_ERROR_(?:ECC_UNCORRECTABLE|CONTAINED))"),
    Pattern("cuda_hardware", r"(?P<what>(?:hip|cuda)ErrorECC\w+)"),
    Pattern("cuda_hardware", r"CUDA error: (?P<what>an NVLINK error|hardware stack error)"),
    Pattern(
        "cuda_hardware",
        r"CUDA error: (?P<what>(?:the device|GPU) (?:is|was) (?:lost|removed|not ready).*)",
    ),
    Pattern("cuda_capture", r"(?P<what>operation not permitted (?:when|on).{0,40}captur\w*)"),
    Pattern("cuda", r"(?P<what>an illegal memory access was encountered)"),
    Pattern("cuda", r"(?P<what>an illegal instruction was encountered)"),
    Pattern("cuda", r"(?P<what>unspecified launch failure|misaligned address)"),
    Pattern(
        "cuda",
        r"CUDA [Ee]rror: (?P<what>(?!unknown error)[^\n]{3,80}?)(?=$|\.(?!\w)|\n| CUDA kernel|"
        r" Search)",
    ),
    Pattern("cuda", r"(?P<what>CU(?:BLAS|DNN|SPARSE|SOLVER|FFT)_STATUS_\w+)"),
    Pattern("cuda", r"CUDA error: (?P<what>unknown error)"),
    Pattern("cuda", r"(?:[Cc]uda|CUDA) failure (?:\d+ |[\w.]+:\d+ )?'(?P<what>[^']+)'"),
    Pattern("cuda", r"CUDA driver error: (?P<what>[^\n]{3,60})"),
    Pattern("cuda", r"HIP error: (?P<what>[^\n(]{3,60})|(?P<fault>Memory access fault by GPU)"),
    Pattern("cuda", r"(?P<what>no CUDA-capable device is detected)"),
    Pattern("cuda", r"CUDA IPC handle : (?:\d+ )?(?P<what>.+)"),
    Pattern("cuda", r"(?P<what>CUDA_ERROR_(?!OUT_OF_MEMORY)[A-Z_]{4,60})"),
    Pattern("cuda", r"Unexpected error from cuda\w+\(\)(?:\.|,)? ?(?P<what>.{0,80})"),
    Pattern("cuda", r"(?P<what>No CUDA GPUs are available|Found no NVIDIA driver)"),
    Pattern(
        "cuda", r"(?P<what>CUDA driver version is insufficient|Driver/library version mismatch)"
    ),
    Pattern("cuda", r"(?P<what>HSA_STATUS_ERROR_\w+|cudaError(?!MemoryAlloc)[A-Z]\w+)"),
    Pattern("cuda", r"(?P<what>cublas runtime error|vector core exception|aclrt\w+ failed)"),
    Pattern("cuda_weak", r"frame #\d+: c10::cuda::c10_cuda_check_implementation"),
    Pattern("cuda_weak", r"instance of 'c10::(?:CUDA|Accelerator|HIP)Error'"),
    Pattern("cuda_weak", r"ACL stream synchronize failed|[Aa][Ii] ?[Cc]ore (?:error|exception)"),
    Pattern("cuda_unnamed", r"unhandled cuda error|ncclUnhandledCudaError|Call to CUDA function"),
    Pattern("cuda_unnamed", r"cuda runtime error \(\d+\)"),
)


def cuda_signs(line: LogLine) -> Iterator[Sign]:
    """Yields what CUDA says in a line."""
    yield from first_signs(_PATTERNS, line)
