"""What is said while ranks find one another: stores, rendezvous, NCCL's first exchange.

Signs: ``store_unreachable`` (facts ``host``, ``port``, ``seconds``), ``store_waiting`` (every ten
seconds, facts ``joined``, ``expected``), ``store_passed``, ``store_wait`` (a key that
nobody set), ``store_answer`` (the same of a store that was reached: facts ``address``, ``port``,
``ms``), ``clients`` (facts ``joined``, ``expected``), ``rendezvous``, ``nccl_id`` (facts
``group_rank``: who waits, ``peer``: who has not published, of two who exchange messages ``low``),
``nccl_id_cut`` (the same without the peer), ``duplicate_gpu``, ``environment`` (fact
``variable``), ``ssh_refused`` (fact ``peer_host``), ``restart_loop`` (a container that ends each
time it is started), ``store_lost`` (rank 0's store went away; it follows from something else),
``agent_lost`` (so did the launcher that holds the rendezvous; fact ``last`` where a launcher says
so as it ends),
``rendezvous_begun``, ``rendezvous_met``.

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = ("RuntimeError: [1] is setting up NCCL communicator and retreiving ncclUniqueId from [0] "
...        "via c10d key-value store by key '0'")
>>> [sign] = startup_signs(log_line(raw, "x", 1))
>>> sign.kind, sign.facts["peer"]
('nccl_id', 0)
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs

_PATTERNS = (
    Pattern(
        "nccl_id",
        r"\[(?P<group_rank>\d+)\] is setting up NCCL communicator and retr\w+ ncclUniqueId from "
        r"\[(?P<peer>\d+)\](?:[^']*'(?P<low>\d+):\d+')?.*?"
        r"(?P<closed>Connection reset|Broken pipe|Connection closed)?"
        r"(?:$|(?= by peer))",
    ),
    Pattern(  # a line that breaks off before it names the other rank
        "nccl_id_cut",
        r"\[(?P<group_rank>\d+)\] is setting up NCCL communicator and retr\w+ ncclUniqueId",
    ),
    Pattern("clients", r"(?P<joined>\d+)/(?P<expected>\d+) clients(?: joined|\s*$)"),
    Pattern(
        "store_barrier",
        r"Timed out initializing process group in store based barrier on rank:? (?P<rank>\d+), "
        r"for key: \S*?(?P<first>(?<=_key:)(?:1|default_pg))? \(world_size=(?P<expected>\d+), "
        r"(?:worker_count|num_workers_joined)=(?P<joined>\d+)",
    ),
    Pattern(
        "store_waiting",
        r"Waiting in store based barrier to initialize process group for rank:? (?P<rank>\d+), "
        r"key: \S+ \(world_size=(?P<expected>\d+), "
        r"(?:worker_count|num_workers_joined)=(?P<joined>\d+)",
    ),
    Pattern("store_passed", r"Completed store-based barrier"),
    Pattern(
        "store_unreachable",
        r"client socket has timed out after (?:(?P<seconds>\d+)\s?s|"
        r"(?P<ms>\d+)\s?ms) while trying to connect to "
        r"\(?\[?(?:::ffff:)?(?P<address>[^\],)]+)\]?[,:] ?(?P<port>\d+)",
    ),
    Pattern(  # a socket of IPv6 that is tried before one of IPv4 fails by 97
        "store_unreachable",
        r"^(?!.*errno: 97\b).*client socket (?:has failed|cannot be initialized) to connect to "
        r"(?:any network address of )?[\[(]?(?:::ffff:)?(?P<address>[^\])\s]+?)[\])]?[:,] ?"
        r"(?P<port>\d+)(?![\d:\]]|\.\d)\)?"
        r"(?:.*?errno: (?P<errno>\d+))?",
    ),
    Pattern(
        "store_unreachable",
        r"[Ff]ailed to connect to (?:\[)?(?P<address>[\w.\-:]+?)\]?:(?P<port>\d+).*"
        r"(?:TCPStore|c10d|rendezvous)",
    ),
    Pattern("rendezvous_begun", r"Rendezvous'ing worker group"),
    Pattern("rendezvous_met", r"Rendezvous complete for workers"),
    Pattern(  # torch's launcher sends such heartbeats once its workers have started
        "agent_lost",
        r"has failed to (?:send a keep-alive heartbeat to|(?P<last>shutdown)) the rendezvous .*"
        r"Rendezvous(?:Connection|Timeout)Error",
    ),
    Pattern(  # a frame of the launcher's watch over workers that have started
        "agent_lost", r"num_nodes_waiting = rdzv_handler\.num_nodes_waiting\(\)"
    ),
    Pattern("rendezvous", r"RendezvousConnectionError|The connection to the C10d store has failed"),
    Pattern(
        "rendezvous", r"Stop_waiting response is expected|RayTaskError\(Dist(?:Store|Network)Error"
    ),
    Pattern("rendezvous", r"\betcd\.Etcd\w+"),
    Pattern("rendezvous", r"Rendezvous(?:Timeout|Closed|State|Graceful\w*)?(?:Error|ExitError)"),
    Pattern(
        "store_wait",
        r"(?:Store|Runtime|Network|Timeout)Error: Socket Timeout|store.*got error: Socket Timeout",
    ),
    Pattern("store_wait", r"connect\(\) timed out"),
    Pattern(
        "store_answer",
        r"waitForInput: .*remote=\[?(?:::ffff:)?(?P<address>[^\]\s]+?)\]?:(?P<port>\d+)\) "
        r"timed out after (?P<ms>\d+) ?ms",
    ),
    Pattern("store_wait", r"waitForInput.*timed out after (?P<ms>\d+) ?ms"),
    Pattern("rendezvous", r"DeadlineExceeded|[rR]endezvous.*(?:timed out|TIMEOUT)"),
    Pattern("rendezvous", r"Timed out .*waiting for (?:the )?(?:barrier|rendezvous)"),
    Pattern("environment", r"environment variable (?P<variable>\w+) expected, but not set"),
    Pattern(  # torch's line that raises it, where the error's own is cut off
        "environment", r"^\s*raise _env_error\([\"'](?P<variable>\w+)[\"']\)"
    ),
    Pattern(
        "environment",
        r"^KeyError: '(?P<variable>(?:LOCAL_)?RANK|(?:LOCAL_)?WORLD_SIZE|MASTER_(?:ADDR|PORT)|"
        r"SLURM_(?:PROCID|LOCALID)|OMPI_COMM_WORLD_(?:LOCAL_)?RANK)'\s*$",
    ),
    Pattern("mpi_unbegun", r"(?P<call>MPI_\w+)\(\) function was called before MPI_INIT"),
    Pattern("duplicate_gpu", r"Duplicate GPU detected ?: ?rank (?P<one>\d+) and rank (?P<two>\d+)"),
    Pattern("store_wait", r"wait timeout after \d+ms, keys: (?P<key>\S+)"),
    Pattern("store_wait", r"Timeout waiting for key: (?P<key>\S+)"),
    Pattern(
        "store_lost",
        r"Failed to (?:check|recv|get|set).{0,60}TCPStore|TCPStore server has shut down too early|"
        r"(?:sendBytes|recvValue|recvVector|sendValue).*(?:failed|Broken pipe|Connection reset)|"
        r"failed to recv, got 0 bytes",
    ),
    Pattern("rank_twice", r"rank (?P<twice>\d+) of \d+ ranks has already checked in"),
    Pattern("rank_twice", r"more than one node have assigned same rank"),  # torch's up to 1.0
    Pattern("rank_twice", r"rank < size\. (?P<twice>\d+) vs (?P<size>\d+)"),
    Pattern(
        "rendezvous",
        r"[Ff]ailed to rendezvous|waiting for rendezvous|"
        r"waiting for (?:all )?(?:workers|ranks|nodes|processes) to (?:join|register|start)|"
        r"Failed to connect to (?:GCS|Ray cluster)",
    ),
    Pattern("rendezvous", r"current node timed out during startup"),
    Pattern("hosts_awaited", r"backend initialization is taking more than (?P<seconds>\d+)"),
    Pattern(
        "invalid_usage",
        r"ncclInvalidUsage|NCCL error in.*invalid (?:usage|argument)|ncclInvalidArgument|"
        r"reflects invalid usage of NCCL",
    ),
    Pattern(
        "launch_failed",
        r"not enough slots available|unable to launch the specified application|"
        r"unable to reliably start one or more daemons|daemon has unexpectedly failed after launch",
    ),
    Pattern(
        "launch_failed",
        r"srun: error: (?:Unable to (?:create step|allocate resources|confirm allocation)|"
        r"task \S+ launch failed)|sbatch: error:|salloc: error: Job submit|"
        r"[Pp]rolog (?:failure|failed|hung)\b|launch[ _]failed[ _]requeued",
    ),
    Pattern(
        "launch_failed",
        r"Back-off pulling|nodes are available: .*(?:Insufficient|didn't match)|"
        r"FailedMount\b(?!.*mount volumes:)|UnexpectedAdmissionError|"
        r"FailedCreatePodSandBox|InvalidImageName|exec format error|"
        r"unbound immediate PersistentVolumeClaims|Error response from daemon|"
        r"nvidia-container-cli: ",
    ),
    Pattern(
        "launch_failed",
        r"executable file not found in|error while loading shared libraries",
    ),
    Pattern("ssh_refused", r"host=(?P<peer_host>\S+) was not reachable via ssh"),  # DeepSpeed's
    Pattern("ssh_refused", r"Host key verification failed|Permission denied \(publickey"),
    Pattern(  # Ray's, of processes that it started
        "launch_failed",
        r"have not registered within the timeout\. The process is dead",
    ),
    Pattern("no_command", r"can't open file '(?P<program>[^']{1,300})': \[Errno 2\]"),
    Pattern("no_command", r"(?:^|: )(?P<program>[\w./\-]+): (?:command not found|not found$)"),
    Pattern("launch_failed", r"failed to create containerd task|ImagePullBackOff|ErrImagePull"),
    Pattern("launch_failed", r"CreateContainerError|FailedScheduling"),
    Pattern("restart_loop", r"CrashLoopBackOff|Back-off restarting"),
    Pattern(  # ColossalAI's; a bad exit code is of the program that it ran
        "launch_failed",
        r"failed to run torchrun .* exception: (?!Encountered a bad command exit)",
    ),
    Pattern("launch_failed", r"Unable to create TCPStore|Task launch for .* failed on node"),
    Pattern("launch_failed", r"slurmstepd: error: execve\(\)|[Aa]pplication launch failed"),
    Pattern("launch_failed", r"Failed to initialize the HCCP process"),
    Pattern("launch_failed", r"container_linux\.go|OCI runtime create failed"),
)


_STILL = "Waiting in store based barrier"


class OpenStart:
    """Tells of a log that ends while a rank still waits for the others to start.

    Torch says so only after ten seconds, and says as well when the wait is over: a log whose last
    line it is holds no more. Its sign is ``start_open``.

    >>> from serried.diagnose.evidence.log_line import log_line
    >>> start = OpenStart()
    >>> rows = ["step 1", "Waiting in store based barrier to initialize process gr"]
    >>> [s for row in rows for s in start.read(log_line(row, "x", 1))]
    []
    >>> [sign.kind for sign in start.cut()]
    ['start_open']
    """

    def __init__(self) -> None:
        self._last: LogLine | None = None

    def read(self, line: LogLine) -> Iterator[Sign]:
        """Hears a line; it tells nothing before the end."""
        if line.text.strip():
            self._last = line
        return iter(())

    def cut(self) -> Iterator[Sign]:
        """Yields the sign of a last line that is one of waiting."""
        if self._last is not None and _STILL in self._last.text:
            yield Sign("start_open", self._last.quote, self._last.speaker, self._last.time)


def startup_signs(line: LogLine) -> Iterator[Sign]:
    """Yields what is said at start-up in a line."""
    yield from first_signs(_PATTERNS, line)
