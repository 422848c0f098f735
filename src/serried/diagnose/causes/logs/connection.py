"""Connections: networks between hosts, and what NCCL and gloo say where a call of theirs fails.

Of a connection that was reset the other side ended first, so it is never the root itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from serried.diagnose.causes.logs.meaning import SignMeaning, Standing, candidate
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.finding import said

_PEER = said("look at the peer first: its log, its kernel log, whether its process still lives")
_LINKS = said(
    "test the fabric between the hosts (ibstat, ib_write_bw, nccl-tests) and read the ports' error "
    "counters; a link that flaps shows there"
)
_DEBUG = said("run again with NCCL_DEBUG=INFO to see the interface and the failing call")
_INTERFACE = said("name the interface that the hosts share: NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME")
_PORT = said(
    "end the job that still holds the port, or choose another one (MASTER_PORT, --rdzv-endpoint)"
)
_NAMES = said(
    "use an address instead of a name, or make the name resolve on every host (getent hosts NAME)"
)
_FIREWALL = said("open the port between the hosts (nc -vz HOST PORT), and check MASTER_ADDR")

_MANY = 3
_KILLED = said(
    "ask the kernel of its host whether it ended that process (dmesg -T), the scheduler whether a "
    "limit did, and the launcher for its exit code; a return before the last step leaves no word "
    "either"
)

_MEANINGS = (
    SignMeaning(
        ("ib",),
        CauseClass.NETWORK,
        "network",
        Standing.CONNECTION,
        (
            said(
                "NCCL lost its peer {peer} over InfiniBand (completion error {status}): the link "
                "is down, or the process there is gone"
            ),
            said(
                "NCCL lost a peer over InfiniBand (completion error {status}): the link is down, "
                "or the process there is gone"
            ),
            said("InfiniBand reports an event on the way between hosts: {what}"),
            said("InfiniBand reports an error"),
        ),
        (_PEER, _LINKS),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("port_down",),
        CauseClass.NETWORK,
        "network",
        Standing.EXHAUSTED,
        (said("a network port went down"),),
        (_LINKS,),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("port_in_use",),
        CauseClass.NETWORK,
        "port_in_use",
        Standing.MISMATCH,
        (said("the port is in use already: another job, or one that did not end, listens there"),),
        (_PORT,),
        0.95,
        "unknown",
    ),
    SignMeaning(
        ("dns",),
        CauseClass.NETWORK,
        "dns",
        Standing.MISMATCH,
        (said("a host's name cannot be resolved"),),
        (_NAMES,),
        0.9,
        "unknown",
    ),
    SignMeaning(
        ("interface", "ib_device"),
        CauseClass.NETWORK,
        "interface",
        Standing.CONNECTION,
        (
            said("the network device cannot be used: {call} failed with {what}"),
            said("NCCL or gloo found no network interface that it can use"),
        ),
        (_INTERFACE, _DEBUG),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("no_route",),
        CauseClass.NETWORK,
        "network",
        Standing.MISMATCH,
        (said("a host cannot be reached over the network (no route, or a firewall drops it)"),),
        (_FIREWALL, _INTERFACE),
        0.85,
        "unknown",
    ),
    SignMeaning(
        ("remote_host",),
        CauseClass.NETWORK,
        "remote_host",
        Standing.CONNECTION,
        (
            said(
                "a server outside the job could not be reached: a hub of models, a proxy or a "
                "tracking service"
            ),
        ),
        (
            said("download beforehand and work offline (HF_HUB_OFFLINE=1), or set the proxy"),
            _NAMES,
        ),
        0.75,
    ),
    SignMeaning(
        ("socket",),
        CauseClass.NETWORK,
        "network",
        Standing.WAITS,
        (
            said("NCCL's connection to {peer} failed: {why}"),
            said("NCCL's connection between two ranks failed: {why}"),
            said("NCCL's connection between two ranks failed"),
        ),
        (_PEER, _INTERFACE, _DEBUG),
        0.6,
        "unknown",
    ),
    SignMeaning(
        ("mpi_address",),
        CauseClass.NETWORK,
        "network",
        Standing.CONNECTION,
        (
            said(
                "Open MPI reached another process than it meant: hosts have several interfaces, of "
                "which some share an address"
            ),
        ),
        (
            said(
                "name the interface that the hosts share, and leave out docker0 and lo: mpirun "
                "--mca btl_tcp_if_include IFACE --mca oob_tcp_if_include IFACE"
            ),
        ),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("nccl_remote",),
        CauseClass.NETWORK,
        "network",
        Standing.WAITS,
        (
            said(
                "NCCL lost a peer: its process ended, or the network between them failed; which of "
                "both this log does not tell"
            ),
        ),
        (_PEER, _LINKS),
        0.6,
        "unknown",
    ),
    SignMeaning(
        ("nccl_system",),
        CauseClass.NETWORK,
        "network",
        Standing.WAITS,
        (
            said(
                "a system call of NCCL's failed (socket, shared memory or device); the line that "
                "NCCL prints with NCCL_DEBUG=WARN names it"
            ),
        ),
        (
            said("run again with NCCL_DEBUG=WARN: the first WARN line names the failing call"),
            _INTERFACE,
        ),
        0.6,
        "unknown",
    ),
    SignMeaning(
        ("nccl_rings",),
        CauseClass.STARTUP,
        "nccl_rings",
        Standing.ROOT,
        (said("NCCL could not order the GPUs in rings that close: it misread the links"),),
        (
            said(
                "run again with NCCL_P2P_DISABLE=1: it leaves out links that join only some of the "
                "GPUs"
            ),
            said("update NCCL, and unset NCCL_TOPO_FILE, NCCL_GRAPH_FILE and NCCL_RINGS"),
        ),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("nccl_internal",),
        CauseClass.NETWORK,
        "nccl_internal",
        Standing.WAITS,
        (said("NCCL failed inside; the line that it prints with NCCL_DEBUG=WARN names the call"),),
        (_DEBUG,),
        0.5,
        "unknown",
    ),
    SignMeaning(
        ("nccl_error",),
        CauseClass.NETWORK,
        "nccl_error",
        Standing.FOLLOWS,
        (said("a call of NCCL's failed; the line that says how is not among these"),),
        (_DEBUG,),
        0.4,
        "unknown",
        is_bare=True,
    ),
    SignMeaning(
        ("gloo_connect",),
        CauseClass.NETWORK,
        "gloo_connect",
        Standing.CONNECTION,
        (
            said("gloo cannot connect the ranks: {why}"),
            said("gloo cannot connect the ranks with one another"),
        ),
        (_INTERFACE, _NAMES),
        0.8,
        "unknown",
    ),
    SignMeaning(
        ("refused",),
        CauseClass.NETWORK,
        "refused",
        Standing.NOTICED,
        (said("a connection was refused: nothing listens there yet, or no longer"),),
        (_PEER, _FIREWALL),
        0.5,
        "unknown",
    ),
    SignMeaning(
        ("reset", "gloo_closed"),
        CauseClass.NETWORK,
        "peer_closed",
        Standing.FOLLOWS,
        (
            said(
                "{who} lost the connection to a peer: that peer ended first, and its own log "
                "says why"
            ),
        ),
        (_PEER,),
        0.5,
        "unknown",
    ),
    SignMeaning(
        ("agent_lost",),
        CauseClass.NODE_LOST,
        "agent_lost",
        Standing.FOLLOWS,
        (
            said(
                "a launcher lost the rendezvous: the launcher that holds it, on the first node, "
                "ended or cannot be reached, and why stands in its own log"
            ),
        ),
        (_PEER,),
        0.5,
        "unknown",
    ),
    SignMeaning(
        ("store_lost",),
        CauseClass.NETWORK,
        "store_lost",
        Standing.FOLLOWS,
        (
            said(
                "{who} lost the store of the job: the process that holds it (rank 0 or the "
                "launcher) ended first, and why stands in its own log"
            ),
        ),
        (_PEER,),
        0.4,
        "unknown",
    ),
)


def _who_is_left(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields the one rank that lost no peer where all others did: whose end they tell of.

    A process that loses a peer ends after that peer, so whoever ended first lost none. Every
    rank's own log has to be there, and those who lost a peer be many beside one.
    """
    lost_by = told.of("reset", "gloo_closed")
    lost, logged = set(told.ranks(lost_by)), set(told.ranks(told.of("own_log")))
    silent = logged - lost
    if len(silent) != 1 or len(lost) < _MANY or logged != set(range(len(logged))) or lost - logged:
        return
    [rank] = silent
    own = [sign for sign in told.signs if told.rank(sign.speaker) == rank]
    if any(sign.kind not in ("own_log", "other_failure", "closing") for sign in own):
        return  # it says itself how it was
    cause = Cause(
        CauseClass.HANG,
        "dead",
        (rank,),
        said(
            "rank {rank} ended first, and without a word: its log tells of no error, and all "
            "other ranks whose logs are here lost the connection to a peer",
            rank=rank,
        ),
        confidence=0.7,
        quotes=quotes(lost_by),
        cures=(_KILLED,),
    )
    yield RankedCause(cause, Standing.ENDED, told.place(lost_by[0]))


def connection_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what kept ranks from reaching one another, unless results came after it."""
    measured = told.of("measured")
    since = told.place(measured[-1]) if measured else -1
    yield from _who_is_left(told)
    for meaning in _MEANINGS:
        signs = [sign for sign in told.of(*meaning.kinds) if told.place(sign) > since]
        if signs:
            found = candidate(told, meaning, signs)
            is_common = meaning.kind == "remote_host" and len(found.cause.ranks or ()) > 1
            yield replace(found, cause=replace(found.cause, ranks=None)) if is_common else found
