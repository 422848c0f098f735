"""What is said of disks, file systems, object stores and checkpoints.

Signs: ``disk_full`` (facts ``path``, ``size``), ``shm_full`` (``/dev/shm``), ``quota``,
``write_failed``, ``io_error``, ``stale``, ``read_only``, ``remote_store``, ``torn_checkpoint``,
``loader_shm``, ``storage_wait`` (fact ``call``: the kernel's function that a process waits in).

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = ("NCCL WARN Error: failed to extend /dev/shm/nccl-WU88OE to 9637892 bytes, error: No "
...        "space left on device (28)")
>>> [sign] = storage_signs(log_line(raw, "x", 1))
>>> sign.kind, sign.facts["size"]
('shm_full', 9637892)
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs

_FILE_CALL = (
    r"(?:nfs|rpc_|ll_|lustre|cl_|ptlrpc|fuse_|ceph_|gpfs|xfs_|ext4_|jbd2_|folio_wait|wait_on_page)"
    r"\w*|request_wait_answer|cxiWait|do_truncate|io_schedule"
)
"""Functions of the kernel in which a process waits for a file system, as ps prints them."""
_PATTERNS = (
    Pattern(
        "shm_full",
        r"\[(?P<gpu>\d+)\] .*/dev/shm/\S+ (?:to |\(size )(?P<size>\d+).*No space left on device",
    ),
    Pattern(
        "shm_full",
        # A path that logs speak of, and that nothing opens.
        r"/dev/shm/\S+ (?:to |\(size )(?P<size>\d+)|"  # nosec B108
        r"/dev/shm.*(?:No space left|full)|"
        r"[Uu]nable to (?:allocate|create) shared memory|error while creating shared memory",
    ),
    Pattern("shm_full", r"insufficient shared memory|unable to mmap .*shared memory|shm_open"),
    Pattern(
        "shm_full",
        r"unable to (?:open|resize|write)(?: to)? (?:shared memory|file </(?:torch|dev/shm))",
    ),
    Pattern(
        "disk_full",
        r"No space left on device(?:.*?[:'\"] ?'?(?P<path>/[\w./\-]+))?|ENOSPC|Errno 28|"
        r"[Nn]ot enough (?:disk )?space|[Dd]isk (?:is )?full",
    ),
    Pattern("disk_full", r"PytorchStreamWriter failed writing|unexpected pos \d+ vs \d+"),
    Pattern("write_failed", r"basic_ios::clear: iostream error"),
    Pattern("io_error", r"Error: File \S+ cannot be opened|task \S+ blocked for more than \d+ s"),
    Pattern(
        "remote_store",
        r"(?:googleapis|amazonaws|aliyuncs|blob\.core)\S*.*\b(?:50[0234]|40[389]|[Tt]imed? ?out)\b|"
        r"\b(?:503|504|429)\b.*(?:googleapis|amazonaws|aliyuncs|blob\.core)|"
        r"(?:ServiceUnavailable|EndpointConnectionError)\b|"
        r"503:? Slow Down|reduce your request rate",
    ),
    Pattern("io_error", r"enforce fail at inline_container\.cc"),
    Pattern("quota", r"[Dd]isk quota exceeded|Errno 122"),
    Pattern("stale", r"Stale file handle|Errno 116|Transport endpoint is not connected|Errno 107"),
    Pattern("stale", r"\.nfs[0-9a-f]+|Device or resource busy.*nfs"),
    Pattern("io_error", r"Input/output error|Errno 5\b|Remote I/O error|Errno 121"),
    Pattern("read_only", r"Read-only file system|Errno 30\b"),
    Pattern(
        "torn_checkpoint",
        r"PytorchStreamReader failed|failed finding central directory|"
        r"MetadataIncompleteBuffer|Error while deserializing header|InvalidHeader\w+|"
        r"unexpected EOF, expected \d+ more bytes|file might be corrupted|"
        r"storage has wrong (?:byte )?size|file signature not found|BadZipFile|Ran out of input|"
        r"pickle data was truncated|magic bytes not found|"
        r"(?:[Ff]ailed|[Uu]nable) to (?:read|load) (?:the )?checkpoint",
    ),
    Pattern(
        "remote_store",
        r"(?:s3fs|botocore|boto3|S3|HDFS|hdfs|gcsfs|GCS|oss2|OSS|tos|blobfuse|Lustre|NFS|nfs|"
        r"beegfs|BeeGFS|gpfs|GPFS|ceph|Ceph)\S*"
        r".*(?:[Ee]rror|[Tt]imed? ?out|[Uu]nreachable|not responding|SlowDown|Exception)",
    ),
    Pattern("remote_store", r"nfs: server \S+ not responding|LustreError|mount\.\w+: .*fail"),
    Pattern(
        "mount_failed", r"Unable to (?:attach or )?mount volumes(?:: unmounted .*|.*timed out)"
    ),
    Pattern(  # a row of ps: a process that nothing can end while the call lasts
        "storage_wait",
        rf"^\s*(?:\S+\s+)?(?P<pid>\d+)\s+(?:[\d.:\-]+\s+)*D\S{{0,4}}\s+(?P<call>{_FILE_CALL})\b",
    ),
    Pattern("io_error", r"[Hh]ealth check failed: +check_fs\w*"),
    Pattern("io_error", r"filesystem error|SafetensorError: .*I/O|OSError: \[Errno 52[0-9]\]"),
)


def storage_signs(line: LogLine) -> Iterator[Sign]:
    """Yields what is said of storage in a line."""
    yield from first_signs(_PATTERNS, line)
