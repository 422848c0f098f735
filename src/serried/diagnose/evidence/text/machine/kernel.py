"""What the kernel log tells: the OOM killer, Xid and SXid, ECC, lost GPUs, panics, thermal limits.

Signs: ``xid`` (code; fact ``pci``, ``previous``: the Xid that it follows), ``sxid``, ``bus`` (a GPU
fell off the bus), ``gpu_init``, ``gpu_reset``, ``gsp``, ``ecc``, ``nvlink``, ``gpu_lost``,
``thermal``,
``machine_check``, ``panic``, ``oom_kill`` (facts ``killed``, ``pid``), ``segfault``,
``disk_error``.

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = "[ 9.1] NVRM: Xid (PCI:0000:a1:00): 79, pid='<unknown>', GPU has fallen off the bus."
>>> [sign] = kernel_signs(log_line(raw, "dmesg.txt", 1))
>>> sign.kind, sign.code, sign.facts["pci"]
('xid', 79, '0000:a1:00')
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs

_PATTERNS = (
    Pattern(
        "xid",
        r"(?<!S)Xid \((?:PCI:)?(?P<pci>[0-9a-fA-F:.]+)(?:\s+GPU-I:\d+\s+GPU-CI:\d+)?\): "
        r"(?P<code>\d+)"
        r"(?:, pid='?(?P<pid>\d+)'?)?(?:, name=(?P<program>[^,]+))?"
        r"(?:.*?caused by previous Xid (?P<previous>\d+))?",
    ),
    Pattern("xid", r"\b[Xx][Ii][Dd](?: error)?(?: code)?[ :=#]+(?P<code>\d{2,3})\b"),
    Pattern("sxid", r"SXid \(PCI:(?P<pci>[0-9a-fA-F:.]+)\): (?P<code>\d+), (?P<what>.*)"),
    Pattern(
        "bus",
        r"(?:GPU (?P<pci>[0-9a-fA-F:.]+[0-9a-fA-F]).*?)?(?:has )?fallen off the bus",
    ),
    Pattern(
        "gsp",
        r"NVRM: (?:GPU(?P<gpu>\d+) )?.*(?:_kgspIsHeartbeatTimedOut|GSP Timeout|GSP RPC timeout)",
    ),
    Pattern("gpu_init", r"NVRM: GPU (?P<pci>[0-9A-Fa-f:.]+): RmInitAdapter failed"),
    Pattern("gpu_init", r"NVRM: (?:RmInitAdapter|rm_init_adapter) failed"),
    Pattern(
        "gpu_lost", r"Unable to determine the device handle for GPU ?(?P<pci>[0-9A-Fa-f:.]+\w)"
    ),
    Pattern("gpu_lost", r"GPU is lost\.?|GPU_IS_LOST|NVML_ERROR_GPU_IS_LOST"),
    Pattern("gpu_reset", r"NV_ERR_RESET_REQUIRED"),
    Pattern(
        "ecc",
        r"[Uu]ncorrectable (?:\w+ )?ECC(?! errors?(?: count)?[ :=]{1,3}0\b)|"
        r"[Rr]ow [Rr]emap\w* (?:pending|fail)|"
        r"double[- ]bit ECC|DBE.*ECC|ECC\b.*[Uu]ncorrectable"
        r"(?! (?:\w+ )?(?:errors?|count)(?: count)?[ :=]{1,3}0\b)(?! ECC)",
    ),
    Pattern("nvlink", r"NVLink.*(?:fatal|Fatal|error|replay|down)|an NVLink error|NVLINK error"),
    Pattern(
        "gpu_lost",
        r"HW Exception by GPU node-\d+|"
        r"amdgpu.*(?:GPU reset begin|ring \S+ timeout|uncorrectable hardware errors)|"
        r"(?:3D|VGA)[^:]*: NVIDIA.*\(rev ff\)|\|\s*ERR!|"
        r"(?:nvidia-smi|NVML).*No devices were found|^No devices were found",
    ),
    Pattern(
        "pcie",
        r"AER: (?:Uncorrected|Uncorrectable|Fatal)|PCIe Bus Error: severity=Uncorrect\w*",
    ),
    Pattern(
        "pcie", r"[Hh]ealth check failed: +check_(?:gpu|nv|nccl|cuda|dmi|mce|pci|hw_(?!ib|eth))"
    ),
    Pattern("pcie", r"(?:DCGM|dcgm).*(?:health|diag).*(?:[Ff]ail|FAIL)"),
    Pattern("thermal", r"HW (?:Thermal )?Slowdown\s*: Active"),
    Pattern("thermal", r"(?:HW|SW)?\s?[Tt]hermal [Ss]lowdown(?!.*(?:Not Active|not active))"),
    Pattern("thermal", r"[Tt]emperature above threshold|clock throttled"),
    Pattern(  # DCGM
        "thermal",
        r"due to thermal violation|THROTTLE_THERMAL|FR_TEMP_VIOLATION|"
        r"[Tt]hermal violations totaling (?!0(?:\.0+)? )",
    ),
    Pattern("machine_check", r"EDAC \S+: \d+ UE|event severity: fatal"),
    Pattern("machine_check", r"(?:mce: )?\[Hardware Error\]|Machine [Cc]heck"),
    Pattern("panic", r"BUG: unable to handle|\bOops: \d+"),
    Pattern("panic", r"Kernel panic - not syncing(?:: (?P<what>.*))?"),
    Pattern(
        "oom_kill",
        r"(?:[Oo]ut of memory|[Mm]emory cgroup out of memory): Kill(?:ed)? process (?P<pid>\d+) "
        r"\(?(?P<killed>[^),]+)\)?(?:.*?anon-rss:(?P<rss_kb>\d+)kB)?",
    ),
    Pattern(  # before Linux 5 the second of two lines
        "oom_kill", r"Killed process (?P<pid>\d+) \((?P<killed>[^)]+)\),? total-vm:\d+kB"
    ),
    Pattern("oom_kill", r"oom-kill:constraint=\S*?task=(?P<killed>[^,]+),pid=(?P<pid>\d+)"),
    Pattern(
        "oom_kill",
        r"oom_reaper: reaped process (?P<pid>\d+) \((?P<killed>[^)]+)\)|"
        r"\btotal_vm\s+rss\b.*oom_score_adj name",
    ),
    Pattern("oom_kill", r"(?<!\S)(?P<killed>\S+) invoked oom-killer"),
    Pattern(
        "segfault",
        r"(?<!\S)(?P<killed>\S+)\[(?P<pid>\d+)\]: segfault at (?P<address>[0-9a-f]+)",
    ),
    Pattern("disk_error", r"(?:blk_update_request: )?I/O error, dev (?P<device>\w+)"),
    Pattern(
        "disk_error",
        r"nvme\w*: .*(?:timeout|controller is down)|EXT4-fs error|XFS .*(?:shutdown|I/O [Ee]rror)",
    ),
)


def kernel_signs(line: LogLine) -> Iterator[Sign]:
    """Yields what the kernel says in a line."""
    yield from first_signs(_PATTERNS, line)
