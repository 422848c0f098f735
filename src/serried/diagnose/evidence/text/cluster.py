"""What Slurm, Kubernetes, Ray and shells print of jobs, nodes and tasks.

Signs: ``task_oom`` (the scheduler saw the host's memory run out), ``cancelled`` (fact ``why``),
``interrupted`` (a person's ctrl-C), ``node_lost``, ``task_exit`` (facts ``tasks``, ``code`` or
``how``), ``evicted``, ``evicted_for`` (facts ``what``: what the node was low on, ``spent``: what
the pod used up), ``killed_word`` (a shell's ``Killed``), ``task_segfault``.

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2024-04-20 DUE TO TIME LIMIT ***"
>>> [sign] = cluster_signs(log_line(raw, "slurm.out", 1))
>>> sign.kind, sign.facts["why"]
('cancelled', 'TIME LIMIT')
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.quote import Numbering
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, all_signs, first_signs

_FIRST = (
    Pattern("task_oom", r"CANCELLED AT \S+ DUE TO OUT.OF.MEM"),
    Pattern("node_lost", r"CANCELLED AT \S+ DUE TO NODE FAILURE|NODE_FAIL|DUE TO NODE_FAIL"),
    Pattern(
        "cancelled",
        r"(?:JOB|STEP) \S+ ON (?P<host>\S+) CANCELLED AT \S+(?: DUE (?:TO|to) (?P<why>[A-Z_ ]+?))?"
        r"(?= \*|$|,)",
    ),
    Pattern("cancelled", r"(?:slurmstepd|srun|submitit).*(?P<why>preempted|PREEMPTED|preemption)"),
    Pattern("cancelled", r"this job is (?P<why>preempted|timed-out)"),
    Pattern(
        "cancelled", r"job killed: (?P<why>walltime) |(?P<limit>TERM_(?:RUNLIMIT|OWNER|ADMIN))"
    ),
    Pattern(
        "cancelled",
        r"Preempted by (?:pod|a pod)\b|[Pp]reemption signal|imminent node shutdown|"
        r"(?:[Jj]ob|[Nn]ode|[Cc]luster|[Ii]nstance|[Pp]od|VM|[Tt]rial|[Tt]ask|[Ww]orker|[Ww]orkload)\S*"
        r"(?: \S+)? (?:was |has been |is |got )(?:being )?(?P<why>preempted|suspended)(?![/,\w])",
    ),
    Pattern(
        "cancelled",
        r"(?:[Jj]ob|[Rr]un|[Tt]raining|State)\b.{0,40}(?:[Tt]erminated|[Cc]ancell?ed|CANCELLED|"
        r"[Ss]topped) by (?:the )?(?:user|uid|admin|\d)|"
        r"[Ee]xceeded (?:its |the |job )*(?P<why>time limit|walltime|wall ?clock)",
    ),
    Pattern(  # how a cloud stops a machine that it takes back
        "cancelled",
        r"systemd-logind\S* (?:Power key pressed|Powering [Oo]ff|System is powering down)|"
        r"ACPI G2 [Ss]oft [Oo]ff|received (?:a )?(?:spot |preemption |termination )notice",
    ),
    Pattern("cancelled", r"scancel: (?:Terminating|Signal)|suspended by (?:the )?user"),
    Pattern("cancelled", r"Force Terminated (?:job|StepId)|Job step (?P<why>aborted)"),
    Pattern("task_oom", r"Detected (?P<number>\d+) oom.kill event"),
    Pattern(
        "task_oom",
        r"(?<!\S)(?P<host>\S+): (?:task (?P<task>\d+)|tasks (?P<tasks>[\d,\-\[\]]+)): "
        r"Out Of Memory",
    ),
    Pattern("task_oom", r"OUT_OF_ME|OutOfMemory: |oom_kill event"),
    Pattern("task_oom", r"OOMKilled|Exceeded (?:job|step) memory limit|exceeded memory limit"),
    Pattern("task_oom", r"[Mm]emory (?:limit exceeded|usage.*exceed(?:s|ed).*limit)"),
    Pattern(
        "task_oom",
        r"(?:killed|Killed|terminated).{0,80}(?:due to (?:the node )?|because the node is )"
        r"(?:running )?low on memory",
    ),
    Pattern(
        "task_oom",
        r"cgroup out-of-memory handler|due to memory pressure|job killed: v?mem |TERM_MEMLIMIT",
    ),
    Pattern("task_oom", r"was killed by (?:the )?(?:[kK]ernel |Linux )?(?:OOM|oom)[ -]?killer"),
    Pattern("task_oom", r"(?:earlyoom|oomd)\S* .*(?:SIGTERM|SIGKILL|Killed|Killing)"),
    Pattern(
        "task_oom",
        r"Memory on the node \(IP: (?P<host>[\d.]+),.{0,80}where the task \(.{0,200}?"
        r"pid=(?P<pid>\d+)",
    ),
    Pattern("task_oom", r"ray\.exceptions\.OutOfMemoryError|ray memory monitor.*kill"),
    Pattern("task_oom", r"The node was low on resource: memory"),
    Pattern("evicted_for", r"The node was low on resource: (?P<what>[\w\-]+)"),
    Pattern("evicted_for", r"The node had condition: \[(?P<what>DiskPressure|PIDPressure)"),
    Pattern(
        "evicted_for",
        r"(?:[Pp]od |its local |Usage of )"
        r"(?P<spent>ephemeral (?:local )?storage|EmptyDir volume)\b.*(?:exceeds|limit)",
    ),
    Pattern("evicted", r"(?:reason|Reason|status)[:=\" ]+Evicted"),
    Pattern("node_lost", r"Node failure on (?P<host>[\w.\-]+)"),
    Pattern("node_lost", r"[Nn]ode (?P<host>[\w.\-]+) has been marked (?:DOWN|down)"),
    Pattern(  # a row of sinfo -R
        "node_lost",
        r"^\s*(?:Not responding|Node unexpectedly rebooted|\w*node_fail)\s+\S+\s+"
        r"\d{4}-\d\d-\d\dT\S+\s+(?P<host>\S+)\s*$",
    ),
    Pattern(  # PALS, the launcher of Cray's MPI
        "node_lost",
        r"ping RPC timeout from (?P<host>[\w.\-]+)|"
        r"Couldn't forward RPC ping\S* to child (?P<node>[\w.\-]+?):?(?:\s|$)",
    ),
    Pattern("node_lost", r"Node (?P<host>[\w.\-]+) status is now: NodeNotReady"),
    Pattern("node_lost", r"[Nn]ode \"?(?P<host>[\w.\-]+)\"? is unresponsive"),
    Pattern("node_lost", r"srun: error: (?P<host>\S+): task.*(?:node fail|Node Fail)"),
    Pattern("node_lost", r"Communication connection failure.*node (?P<host>[\w.\-]+)"),
    Pattern(
        "node_lost",
        r"[Nn]ode (?:with (?:\w+ )?(?:id|ID):? ?)?(?P<node>\S+).{0,80}marked dead because",
    ),
    Pattern("node_lost", r"The node (?:(?P<node>\S+) )?(?:has died|died|was terminated|is dead)"),
    Pattern(
        "node_lost", r"(?:died|dead|failed|exited).{0,60}because its node (?:has )?(?:died|is)"
    ),
    Pattern("node_lost", r"The actor died because its node has died"),
    Pattern(
        "node_lost",
        r"[Hh]ealth check failed for node (?P<node>\w+)|"
        r"[Nn]ode (?P<id>[\w.\-]+) is dead because",
    ),
    Pattern("node_lost", r"node it was running on is dead or unavailable"),
    Pattern(
        "node_lost",
        r"\b[Nn]ode(?:'s)? (?:has )?(?:crashed|died|failed)\b|NodeDiedError|NodeNotReady|"
        r"on failed node (?P<host>[\w.\-]+)|[Nn]ode .*has been marked dead|NO_HEARTBEAT|"
        r"SpotInstanceTermination|[Ii]nstance \S+ (?:was )?(?:terminated|reclaimed|interrupted)|"
        r"[Nn]odes? \S+ (?:are |is )?(?:still )?not (?:ready|responding)",
    ),
    Pattern("node_lost", r"Remote daemon: \[\S+\] on node (?P<host>\S+)"),
    Pattern(
        "node_lost",
        r"lost communication with|(?:soft|hard) (?:lockup|LOCKUP) |rcu\S* self-detected stall|"
        r"Connection to (?P<host>\S+) closed by remote host|"
        r"(?:host|VM|node|TPU).*maintenance event",
    ),
    Pattern(
        "node_lost",
        r"JAX distributed service detected fatal errors|another task died|"
        r"[Ff]ailed to send RPC to coordination service|leader task was preempted",
    ),
    Pattern("told_to_stop", r"Worker exit detail: .*\breceive[sd] a SIGTERM"),
    Pattern("worker_failed", r"^\s*Worker (?P<rank>\d{1,6}) has failed\.\s*$"),  # Ray Train's
    Pattern(
        "worker_died",
        r"Worker IP address: (?P<host>[\d.]+) .*Worker PID: (?P<pid>\d+) Worker exit type: SYSTEM_",
    ),
    Pattern("worker_died", r"Worker PID: (?P<pid>\d+) Worker exit type: SYSTEM_ERROR"),
    Pattern(
        "worker_died",
        r"actor is dead because its worker process has died|[Ww]orker unexpectedly exits",
    ),
    Pattern("worker_died", r"killed by SIGKILL by OOM killer due to high memory usage"),
    Pattern("worker_died", r"may have exceeded K8s pod memory limits"),
    Pattern("worker_died", r"worker died or was killed while executing a task"),
    Pattern("node_lost", r"[Nn]ode (?P<host>\S+).{0,20}(?:NotReady|NodeNotReady|is not ready)"),
    Pattern("node_lost", r"NodeLost|node\.kubernetes\.io/unreachable|NodeStatusUnknown"),
    Pattern(
        "node_lost", r"(?:[Ll]ost connection to|[Nn]o heartbeat from) (?:node |host )(?P<host>\S+)"
    ),
    Pattern("node_lost", r"[Rr]emoving (?:worker|executor|node)\S* because we got no heartbeat"),
    Pattern("node_lost", r"node (?:manager )?has (?:mistakenly )?bee[nm] marked as dead"),
    Pattern("node_lost", r"detected has missed too many heartbeats|missed too many heartbeats"),
    Pattern("node_lost", r"spot instance (?:was )?(?:interrupt|terminat|reclaim)"),
    Pattern(
        "interrupted",
        r"KeyboardInterrupt|Received SIGINT|\^C\b|Exiting from ctrl\+c|killed by user",
    ),
)
_ALL = (
    Pattern(
        "segfault_stack",
        r"Fatal Python error: Segmentation fault|received signal SIGSEGV|Caught signal 11",
    ),
    Pattern(
        "task_exit",
        (r"(?:Fatal Python error: |Caught signal 7 \(|signal: )(?P<how>Bus error|Aborted)"),
    ),
    Pattern(  # Open MPI's block, whose lines begin with host and process
        "segfault_stack",
        r"(?:\[(?P<host>[\w.\-]+):(?P<pid>\d+)\] )?\bSignal: Segmentation fault \(11\)",
    ),
    Pattern(
        "task_exit",
        r"(?:\[(?P<host>[\w.\-]+):(?P<pid>\d+)\] )?\bSignal: (?P<how>Bus error|Aborted) \(\d+\)",
    ),
    Pattern(  # docker's list of containers
        "task_exit", r"(?:(?P<host>\w[\w.\-]*): )?\bExited \((?P<code>[1-9]\d{0,2})\) \S"
    ),
    Pattern("task_exit", r"[Ee]xited with (?:status |exit )?code:? (?P<code>\d+)"),
    Pattern("task_exit", r"command terminated with (?:non-zero )?exit code (?P<code>\d+)"),
    Pattern(
        "task_exit",
        r"(?:^|line \d+:\s+(?P<pid>\d+) )"
        r"(?P<how>Aborted|Segmentation fault|Bus error|Illegal instruction|"
        r"Floating point exception)\s+\(core dumped\)",
    ),
    Pattern(
        "task_exit",
        r"(?:^|line \d+:\s+(?P<pid>\d+)\s+|zsh: )"
        r"(?P<how>Aborted|Terminated|[Ss]egmentation fault|Bus error|Illegal instruction)"
        r"(?: +\(core dumped\))?(?=\s*$|\s{2,}\S)",
    ),
    Pattern(  # glibc's own words of a heap that native code broke
        "heap_broken",
        r"free\(\): invalid|double free or corruption|stack smashing detected|"
        r"(?:malloc|realloc|munmap_chunk|corrupted)\S*: (?:invalid|corrupted|memory|size)|"
        r"malloc_consolidate",
    ),
    Pattern(
        "native_abort",
        r"terminate called (?:after throwing an instance of (?!.*DistBackendError)|"
        r"without an active)",
    ),
    Pattern(
        "task_exit",
        r"srun: error: (?P<host>[^\s:]+): (?:task (?P<task>\d+)|tasks (?P<tasks>[\d,\-\[\]]+)): "
        r"(?:Exited with exit code (?P<code>\d+)|(?P<how>[A-Z][\w ]+(?:\(core dumped\))?))",
    ),
    Pattern("object_store", r"ObjectStoreFullError|in (?:the )?object store because it is full"),
    Pattern(
        "no_host_memory",
        r"^(?!.*(?:ibv_|NCCL WARN)).*Cannot allocate memory|DefaultCPUAllocator: (?:can't|"
        r"not enough)|std::bad_alloc(?!: (?:cuda|hip))|"
        r"^MemoryError\b|Unable to allocate [\d.]+ [KMGT]iB for an array",
    ),
    Pattern("peer_failed", r"Horovod has been shut down|HorovodInternalError"),
    Pattern("task_exit", r"non-zero exit code\. Per user-direction, the job has been aborted"),
    Pattern("segfault_stack", r"\*\*\* SIGSEGV \(@0x[0-9a-f]+\) received by PID (?P<pid>\d+)"),
    Pattern("exit", r"_job_complete: JobId=\S+ WTERMSIG (?P<signal>\d+)"),
    Pattern("told_to_stop", r"Received SIGTERM\b|SIGTERM received|after receiving SIGTERM"),
    Pattern("killed_word", r"^Killed(?: by .*|: 9|\s{2,}\S.*)?\s*$"),
    Pattern("killed_word", r"line \d+:\s+(?P<pid>\d+) Killed(?:\s+(?P<program>\S.*))?\s*$"),
    Pattern("killed_word", r"(?:it/s|s/it)[^\]]{0,80}\]\s*Killed$"),
    Pattern("killed_word", r"(?:^|[:：] ?行 ?\d+:\s+(?P<pid>\d+) |\]\s*)已杀死(?:\s|$)"),
    Pattern("segfault", r"(?:^|[:：] ?行 ?\d+:\s+(?P<pid>\d+) |\]\s*)段错误"),
    Pattern(
        "task_exit",
        r"(?:[Ee]xit (?:[Cc]ode|[Ss]tatus)(?:[:=]| is)?\s+|exitCode\"?: ?)(?P<code>[1-9]\d*)",
    ),
)


_OF_EACH = ("Killed", "Segmentation fault (core dumped)", "Segmentation fault")
"""Ends that a task does not take from another: each that met them is named."""
MOST_TASKS = 4096


def cluster_signs(line: LogLine) -> Iterator[Sign]:
    """Yields what a scheduler or a shell says in a line; of several tasks that ended each."""
    for sign in (*first_signs(_FIRST, line), *all_signs(_ALL, line)):
        tasks = _numbers(str(sign.facts.get("tasks", "")))
        is_of_each = sign.kind == "task_oom" or sign.facts.get("how") in _OF_EACH
        if not tasks or not (is_of_each or len(tasks) == 1):
            yield sign
            continue
        for task in tasks:
            speaker = replace(sign.speaker, rank=task, numbering=Numbering.TASK)
            yield replace(sign, speaker=speaker)


def _numbers(text: str) -> list[int]:
    """Returns the numbers of a list as Slurm writes it.

    >>> _numbers("1-3,7")
    [1, 2, 3, 7]
    """
    found: list[int] = []
    for first, last in re.findall(r"(\d{1,6})(?:-(\d{1,6}))?", text):
        found += range(int(first), int(last or first) + 1)
    return found[:MOST_TASKS]
