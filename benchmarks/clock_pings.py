"""What comparing two hosts' clocks costs a training process; run by ``make bench``.

A thread asks another process, over loopback, in rounds as ``runtime.pings`` does. Processor
time is the asking thread's; a busy main thread, which holds the interpreter, stands for the
training, and how much longer its work takes with rounds one after another is the worst that
pings can do to it. In a job a round comes every two minutes.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import statistics
import threading
import time
from collections.abc import Callable

from serried.runtime.recorder.host_time import HostTime
from serried.runtime.recording.pings import LONGEST_GAP_S, ROUND, Answerer, Asker
from serried.trace.clocks.pings import ping_line

PASSWORD = "x" * 32
ROUNDS = 5


def answer(server: socket.socket) -> None:
    """Answers until it is killed."""
    Answerer(server, PASSWORD, HostTime()).start()
    threading.Event().wait()


def rounds(channel: socket.socket, told: list[tuple[float, list[int]]]) -> None:
    """Asks for some rounds; tells each round's processor seconds and round trips."""
    with Asker(channel, HostTime()) as asker:
        for _ in range(ROUNDS):
            begun = time.thread_time()
            pings = [asker.ask() for _ in range(ROUND)]
            "".join(ping_line(1, ping) for ping in pings)
            spent = time.thread_time() - begun
            trips = [back - sent - (left - came) for sent, came, left, back in pings]
            told.append((spent, trips))


def work() -> float:
    """Is some Python that never lets go by itself; returns the seconds it took."""
    begun = time.perf_counter()
    total = 0
    for number in range(3_000_000):
        total += number & 7
    return time.perf_counter() - begun


def asked_beside(
    channel: socket.socket, act: Callable[[], float]
) -> tuple[list[float], float, int]:
    """Returns the rounds' processor seconds, what ``act`` took, and the fastest round trip."""
    told: list[tuple[float, list[int]]] = []
    thread = threading.Thread(target=rounds, args=(channel, told))
    thread.start()
    took = act()
    thread.join()
    return [spent for spent, _ in told], took, min(min(trips) for _, trips in told)


def main() -> None:
    """Prints the figures."""
    server = socket.create_server(("127.0.0.1", 0))
    process = multiprocessing.get_context("fork").Process(target=answer, args=(server,))
    process.start()
    try:
        with socket.create_connection(server.getsockname()) as channel:
            channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            channel.sendall(PASSWORD.encode())
            idle, _, trip = asked_beside(channel, lambda: 0.0)
            turns = [(work(), asked_beside(channel, work)[1]) for _ in range(3)]
            alone, beside = (min(times) for times in zip(*turns, strict=True))
    finally:
        process.kill()
        process.join()
    spent = statistics.median(idle)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}; rounds of {ROUND} pings")
    print(f"fastest round trip {trip / 1e3:.0f} us, so within {trip / 2e3:.0f} us on this path")
    print(f"a round: {spent * 1e3:.2f} ms of processor time, {spent / LONGEST_GAP_S:.6%} of a core")
    print(
        f"{ROUNDS} rounds beside a busy interpreter: its work takes {beside / alone:.2f} x as long"
    )


if __name__ == "__main__":
    main()
