"""Who asks whom for its time: one rank leads each host, and hosts form a tree.

                0              leader 0's host is the first that came
        ╭───┬───┼───┬───╮
        1   2   …   7   8      each asks its parent (n - 1) // 8, and answers its children:
       ╭┴╮                     1,000 hosts are four deep, and nobody has more than nine
       9 10                    connections

Leaders find each other in the store by which the job's own ranks met. No collective of the job
is called, so that none can come out of order.

    serried/clock/<run>/<turn>/ranks            how many ranks have come
                              /leader/<host>    the rank that came first on a host
                              /hosts            how many hosts have come
                              /at/<number>      rank, address, port and password of a leader
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from serried.runtime.recorder.header import rank_here, world_size_here
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recorder.torch_private import default_store

CHILDREN = 8
_LOOK_S, _LAST_LOOKS = 0.1, 10


@dataclass(frozen=True)
class Leader:
    """Says where the leader of a host answers, and what proves that somebody is of the job."""

    rank: int
    address: str
    port: int
    password: str


class PingTree:
    """Knows a rank's place among the leaders, by the job's store on a connection of its own."""

    def __init__(self, store: Any, name: str) -> None:
        # A store's connection serves one call at a time, and the program itself may wait on it.
        self._store = store.clone()
        self._name = f"serried/clock/{name}"
        self.number = -1
        """The rank's number among the leaders, once it is one."""

    def leads(self, host: HostTime) -> bool:
        """Tells whether this rank was the first on its host to ask."""
        rank = str(rank_here())
        key = f"{self._name}/leader/{host.name}/{host.boot}"
        told: bytes = self._store.compare_set(key, "", rank)
        is_leader = told.decode() == rank
        if not is_leader:
            self._store.add(f"{self._name}/ranks", 1)
        return is_leader

    def tell(self, leader: Leader) -> None:
        """Says where this rank, a leader, answers."""
        self.number = self._store.add(f"{self._name}/hosts", 1) - 1
        self._store.set(f"{self._name}/at/{self.number}", json.dumps(asdict(leader)))
        # Counted last: once all ranks have come, so have all hosts.
        self._store.add(f"{self._name}/ranks", 1)

    def parent(self, wait: Callable[[float], bool]) -> Leader | None:
        """Returns whom this leader, not the first, asks; None where it does not come.

        Once ``wait`` says that the job ends, it has little time left to come.
        """
        key = f"{self._name}/at/{(self.number - 1) // CHILDREN}"
        looks = _LAST_LOOKS
        while not self._store.check([key]):
            if wait(_LOOK_S):
                time.sleep(_LOOK_S)
                looks -= 1
                if not looks:
                    return None
        return Leader(**json.loads(self._store.get(key)))

    def has_all_ranks(self) -> bool:
        """Tells whether all ranks of the job have come."""
        ranks: int = self._store.add(f"{self._name}/ranks", 0)
        return ranks == world_size_here()

    def num_children(self, patience_s: float) -> int:
        """Returns how many leaders ask this one, once all ranks have come or that time is over."""
        # Leader n asks leader (n - 1) // 8, so it is asked by leaders 8 n + 1 to 8 n + 8.
        first = self.number * CHILDREN + 1
        until = time.monotonic() + patience_s
        while not self.has_all_ranks() and time.monotonic() < until:
            time.sleep(_LOOK_S)
        return max(0, min(first + CHILDREN, self.num_hosts()) - first)

    def num_hosts(self) -> int:
        """Returns how many hosts have come."""
        hosts: int = self._store.add(f"{self._name}/hosts", 0)
        return hosts


def store_of_several_hosts(num_local_ranks: int) -> Any:
    """Returns the store of the job that this process is a rank of; None where it has one host."""
    local = str(num_local_ranks or os.environ.get("LOCAL_WORLD_SIZE", ""))
    if world_size_here() == 1 or local == str(world_size_here()):
        return None
    return default_store()


def listening(store: Any) -> tuple[socket.socket, str]:
    """Returns a socket that other hosts reach, and the address by which they do.

    That is the one by which this host reaches the job's master; the master itself may see only
    its own loopback on that way, and is reached as all reach it.
    """
    master = os.environ.get("MASTER_ADDR") or _host_of(store) or socket.gethostname()
    own = _own_address(master)
    if own and not own.startswith("127.") and own != "::1":
        family = socket.AF_INET6 if ":" in own else socket.AF_INET
        return socket.create_server((own, 0), family=family), own
    return socket.create_server(("", 0)), master


def _own_address(host: str) -> str:
    """Returns this host's address on its way to ``host``; nothing is sent."""
    try:
        ((family, kind, _, _, there), *_) = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)
        with socket.socket(family, kind) as probe:
            probe.connect(there)
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _host_of(store: Any) -> str:
    """Returns the host of a TCPStore, which others may surround; "" for other stores."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return str(getattr(store, "host", ""))
