"""Pings: a rank of each host asks another host for its time while the job runs.

    asker     t1 ─────────╮               ╭────────> t4      beside rank-00004.spans:
    answerer              ╰──> t2    t3 ──╯                  clock-00004.jsonl

    time since the start    0  .25 .5 .75 1  1.25 1.6 2 …   a quarter more each, then every
    a round of 32 pings     |   |   |  |  |   |    |  |     two minutes; and one at the end

All is done by threads of the leaders (``pings_meet``), over connections of their own: no step
and no collective waits for it, and a single-host job has none of it. Where it cannot be done,
the training goes on, and merging aligns by messages alone.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import selectors
import socket
import struct
import threading
import time
from itertools import count
from pathlib import Path
from typing import Any

from serried.runtime.recorder.header import rank_here
from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recording.ping_tree import Leader, PingTree, listening, store_of_several_hosts
from serried.trace.clocks.pings import ping_file, ping_heading, ping_line

ROUND = 32
"""Pings of one round: enough that some find both hosts awake."""
FIRST_GAP_S, LONGEST_GAP_S = 0.25, 120.0
LATE_S = 5.0
"""How long an answer may take."""
LINGER_S = 2.0
"""How long, at the end, those that ask this host are answered."""
_ASK = b"what time"
_ANSWER = struct.Struct("<qq")
_PASSWORD_BYTES = 32
_UNCOMPARED = "this host's clock is not compared with others': %s"
_log = logging.getLogger("serried")
_turn = count()


class Pings:
    """Runs the threads of one rank; those of a rank that does not lead its host end at once."""

    def __init__(self, folder: Path, run: str, host: HostTime, store: Any) -> None:
        self._path = folder / ping_file(rank_here())
        self._run = run
        self._host = host
        self._store = store
        self._turn = next(_turn)
        self._ending = threading.Event()
        self._asker = threading.Thread(target=self._lead, name="clock-asker", daemon=True)
        self._answerer: Answerer | None = None
        self._asker.start()

    def finish(self) -> None:
        """Asks once more, lets others do so, and ends; at once or twice."""
        self._ending.set()
        self._asker.join(LATE_S)
        if self._answerer:
            self._answerer.finish()

    def _lead(self) -> None:
        try:
            tree = PingTree(self._store, f"{self._run}/{self._turn}")
            if not tree.leads(self._host):
                return
            server, address = listening(self._store)
            password = secrets.token_hex(_PASSWORD_BYTES // 2)
            self._answerer = Answerer(server, password, self._host)
            self._answerer.start()
            tree.tell(Leader(rank_here(), address, server.getsockname()[1], password))
            # The first leader asks nobody, and only it can tell that no other host has come; all
            # others ask their parent until the end. Each then stays for its own children.
            if tree.number == 0 and self._is_of_one_host(tree):
                self._answerer.finish()
                return
            if tree.number > 0 and (parent := tree.parent(self._ending.wait)):
                self._ask_on(parent)
            self._ending.wait()
            self._answerer.expect(tree.num_children(LINGER_S))
        except (OSError, RuntimeError) as error:
            # A store, a port, a host or a disk that will not do: all end the pings only.
            if not self._ending.is_set():
                _log.warning(_UNCOMPARED, error)

    def _is_of_one_host(self, tree: PingTree) -> bool:
        """Tells, once all ranks have come, whether none is of another host.

        Not every launcher says so before.
        """
        while not tree.has_all_ranks():
            if self._ending.wait(1.0):
                return False
        return tree.num_hosts() == 1

    def _ask_on(self, parent: Leader) -> None:
        """Asks, writes down what came, and waits, until the end and once then."""
        with _connected(parent) as channel, Asker(channel, self._host) as asker:
            begun, text = time.monotonic(), ping_heading(run=self._run, rank=rank_here())
            is_last = False
            while True:
                lines = [ping_line(parent.rank, asker.ask()) for _ in range(ROUND)]
                # The first round replaces what an earlier run has left; all others are added to it.
                with self._path.open("w" if text else "a", encoding="utf-8") as file:
                    file.write(text + "".join(lines))
                text = ""
                if is_last:
                    return
                # Gaps grow with the run: a short one has some pings all the same, a long one not
                # too many.
                gap_s = max(FIRST_GAP_S, (time.monotonic() - begun) / 4)
                is_last = self._ending.wait(min(gap_s, LONGEST_GAP_S))


def ping_others(
    folder: Path, run: str, host: HostTime, *, num_local_ranks: int = 0
) -> Pings | None:
    """Starts to compare this host's clock with others'; returns None in a job of one host.

    ``num_local_ranks`` says how many ranks this host has, where torchrun did not.
    """
    try:
        store = store_of_several_hosts(num_local_ranks)
        return None if store is None else Pings(folder, run, host, store)
    except (OSError, RuntimeError) as error:  # a store that has gone, or no thread to be had
        _log.warning(_UNCOMPARED, error)
        return None


class Asker:
    """Asks one other host for its time, and hears it as that host hears the question.

    Both wait by a selector and read alike, for what one does between a message's coming and its
    stamp, and the other does not, would seem to be the wire's: a way that takes longer.
    """

    def __init__(self, channel: socket.socket, host: HostTime) -> None:
        self._channel = channel
        self._host = host
        self._open = selectors.DefaultSelector()
        self._open.register(channel, selectors.EVENT_READ)

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def ask(self) -> tuple[int, int, int, int]:
        """Asks the other end once, and returns the four times of a ping.

        Raises OSError where the other end has gone or is late.
        """
        sent = self._host.now_ns()
        self._channel.sendall(_ASK)
        for key, _ in self._open.select(timeout=LATE_S):
            there, answered, back = self._hear(key.fileobj)
            return sent, there, answered, back
        raise TimeoutError("the other end is late")

    def _hear(self, channel: Any) -> tuple[int, int, int]:
        answer = _received(channel, _ANSWER.size)
        back = self._host.now_ns()
        return (*_ANSWER.unpack(answer), back)


class Answerer:
    """Answers those of the job that ask, on one thread."""

    def __init__(self, server: socket.socket, password: str, host: HostTime) -> None:
        self._server = server
        self._password = password.encode()
        self._host = host
        self._until: float | None = None
        self._channels: set[socket.socket] = set()
        self._num_seen = self._num_expected = 0
        self._open = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._answer, name="clock-answerer", daemon=True)

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def expect(self, count: int) -> None:
        """Says how many will have asked before the end."""
        self._num_expected = count

    def finish(self) -> None:
        """Ends when all have asked and nobody asks any more, or after a while."""
        self._until = time.monotonic() + LINGER_S
        self._thread.join(LINGER_S + LATE_S)

    def _answer(self) -> None:
        self._open.register(self._server, selectors.EVENT_READ)
        with self._server, self._open:
            while not self._is_over():
                for key, _ in self._open.select(timeout=0.25):
                    channel = key.fileobj
                    if channel in self._channels:
                        self._answer_one(channel)
                    else:
                        self._let_in()
            for channel in self._channels:
                channel.close()

    def _is_over(self) -> bool:
        if self._until is None:
            return False
        is_alone = not self._channels and self._num_seen >= self._num_expected
        return is_alone or time.monotonic() > self._until

    def _let_in(self) -> None:
        """Takes a connection, if it knows the password."""
        channel, _ = self._server.accept()
        channel.settimeout(LATE_S)
        try:
            told = _received(channel, _PASSWORD_BYTES)
            if hmac.compare_digest(told, self._password):
                channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.register(channel, selectors.EVENT_READ)
                self._channels.add(channel)
                self._num_seen += 1
                return
        except OSError:
            pass  # a stranger, or gone again
        channel.close()

    def _answer_one(self, channel: Any) -> None:
        try:
            _received(channel, len(_ASK))
            there = self._host.now_ns()
            channel.sendall(_ANSWER.pack(there, self._host.now_ns()))
        except OSError:
            self._open.unregister(channel)
            self._channels.discard(channel)
            channel.close()


def _connected(leader: Leader) -> socket.socket:
    channel = socket.create_connection((leader.address, leader.port), timeout=LATE_S)
    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    channel.sendall(leader.password.encode())
    return channel


def _received(channel: socket.socket, size: int) -> bytes:
    """Returns ``size`` bytes; raises OSError where the other end has gone or is late."""
    found = channel.recv(size)
    while len(found) < size:
        more = channel.recv(size - len(found))
        if not more:
            raise ConnectionResetError("the other end has gone")
        found += more
    return found
