"""Hosts made of network namespaces: a bridge, a veth pair each, and a throttle on one of them.

    namespace serried-<run>-0   10.77.<run>.1 ── veth ──┐
    namespace serried-<run>-1   10.77.<run>.2 ── veth ──┼── bridge in a namespace of its own
    …                                                   ┘

Each host has its own interfaces, loopback and ports; processes and files are this machine's.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, NoReturn

from serried.views.cli.main import run

SWITCH = "switch"
SLOW_WIRE = str(Path(__file__).with_name("slow_wire.py"))
PATIENCE_S = 120
"""Far beyond what a test takes; only a rank that never ends runs into it."""


def lacking() -> str:
    """Returns what this machine lacks for hosts of network namespaces; "" where it has all."""
    if os.geteuid():
        return "root, to make network namespaces"
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            return f"{tool}, of Debian's package iproute2"
    name = f"serried-probe-{secrets.token_hex(3)}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return "network namespaces: ip netns add fails"
    try:
        for words in (
            ("link", "add", "one", "type", "veth", "peer", "name", "two"),
            ("link", "add", "three", "type", "bridge"),
        ):
            made = subprocess.run(["ip", "-n", name, *words], capture_output=True, check=False)
            if made.returncode:
                return f"a kernel with {words[4]}"
        throttled = subprocess.run(
            ["tc", "-n", name, *_tbf("one", "1gbit")], capture_output=True, check=False
        )
        return "a kernel with the tbf queue" if throttled.returncode else ""
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def _tbf(device: str, rate: str) -> list[str]:
    words = f"qdisc replace dev {device} root tbf rate {rate} burst 64kb latency 500ms"
    return words.split()


@dataclass(frozen=True)
class Hosts:
    """Holds some hosts on one switch."""

    run: str
    count: int

    def name(self, host: int | str) -> str:
        return f"serried-{self.run}-{host}"

    def address(self, host: int) -> str:
        return f"10.77.0.{host + 1}"

    def throttle(self, host: int, rate: str) -> None:
        """Lets ``host`` send and receive no faster than ``rate``, such as ``200mbit``."""
        _run("tc", "-n", self.name(host), *_tbf("eth0", rate))
        _run("tc", "-n", self.name(SWITCH), *_tbf(f"port{host}", rate))

    def start_ranks(
        self,
        words: Sequence[str],
        folder: Path,
        *,
        ranks_per_host: int,
        port: int = 29500,
        absent: int = -1,
    ) -> list[Rank]:
        """Starts ``serried …`` on every rank but ``absent``, with the variables of torchrun."""
        started = []
        for rank in range(self.count * ranks_per_host):
            host, local = divmod(rank, ranks_per_host)
            environment = {
                "RANK": rank,
                "WORLD_SIZE": self.count * ranks_per_host,
                "LOCAL_RANK": local,
                "LOCAL_WORLD_SIZE": ranks_per_host,
                "GROUP_RANK": host,
                "MASTER_ADDR": self.address(0),
                "MASTER_PORT": port,
            }
            texts = {name: str(value) for name, value in environment.items()}
            if rank != absent:
                started.append(Rank.start(self.name(host), words, texts, folder / f"rank-{rank}"))
        return started


@dataclass(frozen=True)
class Rank:
    """Is one process of ``serried`` on a host, with what it prints."""

    process: ForkServerProcess
    out: Path
    err: Path

    @classmethod
    def start(
        cls, namespace: str, words: Sequence[str], environment: Mapping[str, str], path: Path
    ) -> Rank:
        """Starts it by the forkserver that has torch loaded: importing torch takes seconds."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["serried.runtime.run.preload"])
        out, err = path.with_suffix(".out"), path.with_suffix(".err")
        process = context.Process(
            target=_be_rank, args=(namespace, list(words), dict(environment), out, err), daemon=True
        )
        process.start()
        return cls(process, out, err)

    def ended(self) -> int | None:
        """Waits until it has ended, and returns its exit code."""
        self.process.join(timeout=PATIENCE_S)
        return self.process.exitcode

    def end(self) -> None:
        """Ends it, should it still run."""
        self.process.kill()
        self.process.join()


def _be_rank(
    namespace: str, words: list[str], environment: dict[str, str], out: Path, err: Path
) -> NoReturn:
    """Is the command on a host."""
    _move_to(namespace)
    os.environ.update(environment)
    for path, descriptor in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    code = run(words)
    sys.stdout.flush()
    os._exit(code)


@dataclass(frozen=True)
class Wire:
    """Is a wire on which frames take their time."""

    process: subprocess.Popen[str]

    def set(self, out_s: float, back_s: float, jitter_s: float = 0.0) -> None:
        """Delays frames of the host by ``out_s``, and those to it by ``back_s``, from here on."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{out_s} {back_s} {jitter_s}\n")
        self.process.stdin.flush()
        self.heard("set")

    def heard(self, word: str) -> None:
        assert self.process.stdout is not None and self.process.stdout.readline() == f"{word}\n"


@contextmanager
def delayed(made: Hosts, host: int, delay_s: float) -> Iterator[Wire]:
    """Plugs ``host`` into the switch by a wire on which each frame takes ``delay_s``."""
    name, switch, port = made.name(host), made.name(SWITCH), f"port{host}"
    _run("ip", "-n", switch, "link", "del", port)
    delays = [str(delay_s), str(delay_s), "0"]
    words = [sys.executable, SLOW_WIRE, name, "eth0", switch, port, *delays]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            wire = Wire(process)
            wire.heard("made")
            _bring_up(made, host)
            yield wire
        finally:
            process.kill()


@contextmanager
def answering(
    made: Hosts, function: Callable[..., Any], given: Sequence[tuple[Any, ...]]
) -> Iterator[Callable[[], list[Any]]]:
    """Calls ``function`` on each host with what is given for it; gives what waits for answers."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["serried.runtime.run.preload"])
    pipes = [context.Pipe(duplex=False) for _ in given]
    started = [
        context.Process(target=_answer, args=(made.name(host), far, function, each), daemon=True)
        for host, (each, (_, far)) in enumerate(zip(given, pipes, strict=True))
    ]

    def answers() -> list[Any]:
        found = [near.recv() for near, _ in pipes]
        for host, each in enumerate(found):
            if isinstance(each, BaseException):
                raise AssertionError(f"host {host} failed") from each
        return found

    try:
        for process, (_, far) in zip(started, pipes, strict=True):
            process.start()
            far.close()
        yield answers
    finally:
        for process in started:
            process.kill()
            process.join()


def _answer(
    namespace: str, channel: Connection, function: Callable[..., Any], given: tuple[Any, ...]
) -> None:
    _move_to(namespace)
    try:
        channel.send(function(*given))
    except BaseException as error:
        channel.send(error)
    channel.close()
    os._exit(0)


def _move_to(namespace: str) -> None:
    """Moves this process to a host."""
    with Path(f"/run/netns/{namespace}").open() as card:
        if ctypes.CDLL(None, use_errno=True).setns(card.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")
    del os.environ["GLOO_SOCKET_IFNAME"]  # the forkserver's, for ranks of one host


@contextmanager
def hosts(count: int) -> Iterator[Hosts]:
    """Makes ``count`` hosts on one switch, and removes them."""
    made = Hosts(secrets.token_hex(3), count)
    names = [made.name(SWITCH), *(made.name(host) for host in range(count))]
    try:
        for name in names:
            _run("ip", "netns", "add", name)
        switch = made.name(SWITCH)
        _run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", switch, "link", "set", "bridge", "up")
        for host in range(count):
            _plug_in(made, host)
        yield made
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _plug_in(made: Hosts, host: int) -> None:
    name, switch, port = made.name(host), made.name(SWITCH), f"port{host}"
    pair = f"link add {port} type veth peer name eth0 netns {name}"
    _run("ip", "-n", switch, *pair.split())
    _bring_up(made, host)


def _bring_up(made: Hosts, host: int) -> None:
    name, switch, port = made.name(host), made.name(SWITCH), f"port{host}"
    _run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
    _run("ip", "-n", name, "addr", "add", f"{made.address(host)}/24", "dev", "eth0")
    for device in ("eth0", "lo"):
        _run("ip", "-n", name, "link", "set", device, "up")


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def outcome(started: Sequence[Rank]) -> list[tuple[int | None, str, str]]:
    """Waits for ranks and returns exit code, stdout and stderr of each."""
    try:
        return [(rank.ended(), rank.out.read_text(), rank.err.read_text()) for rank in started]
    finally:
        for rank in started:
            rank.end()
