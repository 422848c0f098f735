"""What NCCL, sockets and InfiniBand say of the network between hosts.

Signs: ``ib`` (a send or receive failed: facts ``peer``, ``status``), ``ib_device``, ``port_down``,
``port_in_use`` (fact ``port``), ``dns`` (fact ``name``), ``no_route``, ``refused``, ``interface``,
``socket`` (NCCL's sockets: facts ``peer``, ``why``), ``nccl_remote``, ``nccl_system``,
``nccl_internal``, ``nccl_rings``, ``reset`` (a peer went away; it follows from something else
as a rule).

>>> from serried.diagnose.evidence.log_line import log_line
>>> raw = "NET/IB : Got completion from peer 10.0.0.122<39138> with error 12, opcode 0, len 0"
>>> [sign] = network_signs(log_line(raw, "x", 1))
>>> sign.facts["peer"], sign.facts["status"]
('10.0.0.122', 12)
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.diagnose.evidence.log_line import LogLine
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.pattern import Pattern, first_signs

_PATTERNS = (
    Pattern(
        "ib",
        r"Got completion(?: from peer (?P<peer>[\w.:%\-]+)<\d+>)? with "
        r"(?:error|status=?(?:\w+\()?)\s?(?P<status>\d+)",
    ),
    Pattern("ib", r"NET/IB ?: .*(?:Got async event|async fatal event)[ :]*(?P<what>.*)"),
    Pattern("ib", r"[Hh]ealth check failed: +check_(?P<what>(?:hw_)?(?:ib|rdma|eth|net)\w*:.*)"),
    Pattern("port_down", r"mlx\d\S* .*(?:[Pp]ort: \d+ Link DOWN|Link down)|ib\d+: .*[Ll]ink.*down"),
    Pattern(
        "port_down",
        r"\b(?:mlx|ib|bond|eth|en[ops])\d\S*.{0,60}\b[Ll]ink (?:is |status definitely )?"
        r"(?:[Dd]own|DOWN)",
    ),
    Pattern("port_down", r"IBV_EVENT_PORT_ERR|port error|link flap|eth\d.*NIC Link is Down"),
    Pattern("port_in_use", r"Address already in use|EADDRINUSE|errno: 98"),
    Pattern("port_in_use", r"server socket has failed to (?:listen on any|bind to)"),
    Pattern("port_in_use", r"listen on ip\S+ and specific port\[\d+\] fail"),
    Pattern("dns", r"(?:[Tt]emporary failure in name resolution|Name or service not known)"),
    Pattern("dns", r"getaddrinfo|gai error|Could not resolve host|nodename nor servname provided"),
    Pattern(
        "dns",
        r"(?:[Cc]an't|[Cc]annot|[Cc]ould not|[Uu]nable to|[Ff]ailed to) resolve\b|"
        r"[Nn]ame does not resolve|[Uu]nknown host\b|[Nn]o such host|gaierror|NXDOMAIN",
    ),
    Pattern("interface", r"no socket interface found|[Nn]o usable (?:listening )?interface"),
    Pattern("interface", r"Bootstrap ?: no |NET/Socket ?: no |Unable to find interface"),
    Pattern("ib_device", r"^(?!.*NCCL INFO).*(?:Unable to open device|[Nn]o device found)"),
    Pattern(
        "ib_device",
        r"Call to ibv_(?P<call>\w+) failed(?: with error (?P<what>.*))?",
    ),
    Pattern("ib", r"(?P<what>IBV_WC_\w+_ERR|transport retry counter exceeded)"),
    Pattern("ib_device", r"Failed to initialize any NET plugin|Could not find NET with name"),
    Pattern("ib_device", r"libfabric|OFI.*(?:fail|error)|NET/OFI.*(?:fail|rc=-|error)"),
    Pattern("no_route", r"No route to host|Network is unreachable|errno: 113\b"),
    Pattern(
        "socket",
        r"^(?:(?=.*?\b(?:from|to|peer) (?P<peer>[\w.:%\-]+)<\d+>))?.*?"
        r"(?:socketProgress|socketStartConnect|ncclSocket\w*|Call to (?:connect|recv|send|bind))"
        r".*?(?P<why>Connection (?:timed out|refused|closed by remote peer|reset by peer)|"
        r"Broken pipe|failed(?! ?: (?:Connection|Broken)).*)",
    ),
    Pattern("socket", r"Net ?: [Cc]onnect.*failed|NET/Socket.*(?:fail|error|timed out)"),
    Pattern("socket", r"(?:socket|Socket) (?:recv|send|connect|accept) failed"),
    Pattern("socket", r"peer \S+ is not reachable|unable to reach peer"),
    Pattern("ib", r"bad completion status (?P<status>\d+)"),
    Pattern(
        "remote_host",
        r"Max retries exceeded|Connect(?:ion)?Timeout(?:Error)?: |ReadTimeout(?:Error)?: |"
        r"LocalEntryNotFoundError: Connection error|NewConnectionError",
    ),
    Pattern(
        "socket", r"failed to connect to all addresses|failed to TCP connect|btl_tcp\S* .*fail"
    ),
    Pattern("mpi_address", r"btl_tcp\S* received unexpected process identifier"),
    Pattern("socket", r"UCX +ERROR|pml_ucx\S* +Error"),
    Pattern("no_route", r"ssh: connect to host \S+ port \d+|ssh exited with exit code 255"),
    Pattern("nccl_remote", r"ncclRemoteError|remote process exited or there was a network error"),
    Pattern("nccl_system", r"ncclSystemError|unhandled system error"),
    Pattern("nccl_rings", r"NCCL WARN .*\bring \d+ does not (?:loop back to start|contain rank)"),
    Pattern("nccl_internal", r"ncclInternalError|[Ii]nternal error(?: - please report)"),
    Pattern("nccl_internal", r"NCCL error in.*internal error"),
    Pattern("refused", r"Connection refused|errno: 111"),
    Pattern(
        "reset",
        r"Connection reset by peer|peer process has unexpectedly disconnected|"
        r"Connection closed by (?:remote )?peer|Broken pipe",
    ),
    Pattern(
        "nccl_error",
        r"\bNCCL [Ee]rror\b|NCCL WARN (?!Failed to open lib|Your program may|"
        r"NUMA|Missing|MSCCL|.*[Pp]lugin)",
    ),
)


def network_signs(line: LogLine) -> Iterator[Sign]:
    """Yields what is said of the network in a line."""
    yield from first_signs(_PATTERNS, line)
