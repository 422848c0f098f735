"""Lines that their own program marks as an error, for those that no other reader understands.

    2026-02-03 14:01:07 ERROR worker lost its store            marked
    E0203 14:01:07.123 worker.cc:12] lost its store            marked, as glog writes it
    2026-02-03 14:01:07 WARNING timeout is 1800 s              not marked

A sign ``marked`` holds the line as ``text`` and, where its words tell a topic, that as fact
``topic``: the word of a class of causes.

>>> from serried.diagnose.evidence.log_line import log_line
>>> [sign] = marked_signs(log_line("[ERROR] [agent] training hang detected at step 7", "x", 1))
>>> sign.facts["topic"]
'hang'
>>> list(marked_signs(log_line("INFO no error so far", "x", 1)))
[]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign

_MARK = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL)\b|^[EF]\d{4} |\b(?:[Ff]atal|[Ee]rror)(?: \w+)?: |\[E \w+\.cpp|"
    r"\b[Ee]rror (?:in|on) rank \d"
)
_HARMLESS = re.compile(
    r"\b(?:INFO|WARN|WARNING|DEBUG|TRACE|NOTICE)\b|Unable to register \w+ (?:factory|plugin)|"
    r"already been registered|pip's dependency resolver|ERROR_(?:LEVEL|LOG)|\bon[_ ]error\b|"
    r"\b[eE]rror (?:handl|rate|budget|count|code|level|polic|bar)\w*\b|"
    r"error(?:s|_count)?[ :=]+0\b|severity=Correct|Corrected error"
)
_TOPICS = (
    ("numerics", r"\b(?:nan|NaN|NAN)\b|[Nn]on-finite|diverge"),
    ("node_lost", r"\b[Nn]ode\b.*(?:lost|dead|die|down|crash|not respond)|heartbeat"),
    (
        "gpu_oom",
        r"(?:GPU|CUDA|device|HBM|hbm).*[Oo]ut of memory|"
        r"\bOOM (?:during|in|at) (?:the )?(?:\w+ )?(?:optim|forward|backward|step|train|alloc)",
    ),
    ("host_oom", r"[Oo]ut of memory|\bOOM|oom.kill|memory (?:limit|pressure)"),
    ("hardware", r"\bECC\b|NVLink|[Ff]allen off|PCIe|[Xx]id\b|thermal"),
    ("cuda_error", r"\b(?:CUDA|cuda|cuBLAS|cuDNN|HIP|hip)\b"),
    ("data", r"[Dd]ata ?[Ll]oader|\bdataset\b"),
    ("storage", r"[Cc]heckpoint|\b(?:disk|mount|file system|filesystem|S3|NFS|Lustre|storage)\b"),
    ("network", r"[Cc]onnect|[Ss]ocket|[Nn]etwork|\bRDMA\b|InfiniBand|unreachable|\bport\b"),
    ("startup", r"[Rr]endezvous|[Ii]nitiali[sz]|[Ll]aunch|\b[Ss]tart(?:up| up)\b"),
    ("external_stop", r"[Pp]reempt|[Cc]ancel|SIGTERM|[Ii]nterrupt|[Ee]vict"),
    ("hang", r"\b(?:hang|hung|stuck|deadlock)|[Tt]imed? ?out"),
)
_TOPIC = tuple((topic, re.compile(words)) for topic, words in _TOPICS)


def marked_signs(line: LogLine) -> Iterator[Sign]:
    """Yields a sign for a line that is marked as an error."""
    if not _MARK.search(line.text) or _HARMLESS.search(line.text):
        return
    topic = next((topic for topic, words in _TOPIC if words.search(line.text)), None)
    facts: dict[str, object] = {"topic": topic} if topic else {}
    yield Sign("marked", line.quote, line.speaker, line.time, text=line.text.strip(), facts=facts)
