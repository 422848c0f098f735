"""Heartbeats over the store, and who is to blame when a step does not end.

    beat/<rank>    counted up by a thread of each rank, also while the rank waits for others
    at/<rank>      the step that the rank has come to; every rank goes through every step
    left/<rank>    written by a rank that gives up, so that nobody takes it for the cause
    knows/<rank>   written by a rank that has found the cause

A rank whose step fails or times out looks who is silent: not counting, and not gone for a
reason. Where all hearts beat, the ranks that are furthest behind are the ones waited for. The
rank that hosts the store stays until the others know, a few seconds at most: with it goes what
they read. Where the store no longer takes a rank's own beats, its host is the silent one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from torch.distributed import Store  # type: ignore[attr-defined]

from serried.errors import SerriedError, listed
from serried.runtime.groups.rendezvous import agent_hosts
from serried.runtime.groups.store_limit import limited_clone

INTERVAL_S = 0.25
PATIENCE = 6
"""Intervals without a beat after which a rank counts as silent."""
STAY_S = 5.0
"""How long the store's host waits at most for the others to know the cause."""


class Heartbeat:
    """Beats for one rank while its steps run, and names the cause when one of them fails.

    Raises SerriedError naming the store's host where that takes no further connection.
    """

    def __init__(self, store: Store, rank: int, world_size: int) -> None:
        self._store = store
        self._rank = rank
        self._world_size = world_size
        # A store's connection serves one call at a time, and the rank itself may wait on it.
        try:
            self._own: Store = limited_clone(store)
        except RuntimeError as error:
            raise self._without_store("start") from error
        self._answered = threading.Event()
        self._number = 0
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._ended = threading.Event()

    def __enter__(self) -> Heartbeat:
        try:
            self._own.set(f"at/{self._rank}", "0 start")
            self._own.add(f"beat/{self._rank}", 1)
        except RuntimeError as error:
            raise self._without_store("start") from error
        self._thread.start()
        return self

    def __exit__(self, *exit_: object) -> None:
        self._ended.set()
        self._thread.join(INTERVAL_S * PATIENCE)  # it may wait for a store that does not answer

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Runs one step; raises SerriedError naming who kept it from ending."""
        self._number += 1
        try:
            self._store.set(f"at/{self._rank}", f"{self._number} {name}")
            yield
        except RuntimeError as error:
            raise self._blame(name, error) from error

    def _beat(self) -> None:
        while not self._ended.wait(INTERVAL_S):
            try:
                self._own.add(f"beat/{self._rank}", 1)
            except RuntimeError:
                return  # the store has gone, and with it anybody who would listen
            self._answered.set()

    def _blame(self, name: str, error: Exception) -> SerriedError:
        # Whether the store answers comes first: where it does not, nothing can be read of others,
        # and its host is the silent one. Then the silent go before the late, for who is behind may
        # itself be waiting for one that is silent.
        self._answered.clear()
        if not self._answered.wait(INTERVAL_S * PATIENCE):
            return self._without_store(name)
        try:
            self._store.set(f"left/{self._rank}", name)
            silent = self._silent()
            behind = {} if silent else self._behind()
            self._tell(silent)
        except RuntimeError:
            return self._without_store(name)
        if silent:
            return SerriedError(
                "rank {ranks} does not answer; rank {rank} waited for it in: {step}",
                ranks=listed(silent, limit=16),
                rank=self._rank,
                step=name,
            )
        if behind:
            return SerriedError(
                "rank {ranks} is still in: {behind}; rank {rank} waited for it in: {step}",
                ranks=listed(sorted(behind), limit=16),
                behind=listed(sorted(set(behind.values())), limit=3),
                rank=self._rank,
                step=name,
            )
        reason = str(error).strip().splitlines() or [type(error).__name__]
        return SerriedError("{step} failed: {reason}", step=name, reason=reason[0])

    def _without_store(self, name: str) -> SerriedError:
        if agent_hosts():
            return SerriedError(
                "torchrun's agent does not answer, nor the store it hosts; rank {rank} was in: "
                "{step}",
                rank=self._rank,
                step=name,
            )
        return SerriedError(
            "rank 0 does not answer, nor the store it hosts; rank {rank} was in: {step}",
            rank=self._rank,
            step=name,
        )

    def _silent(self) -> list[int]:
        """Returns the ranks whose hearts stand still, but those that left for a reason."""
        others = [rank for rank in range(self._world_size) if rank != self._rank]
        # Beats are compared with themselves some intervals later, for hosts' clocks need not agree.
        before = {rank: self._beats(rank) for rank in others}
        time.sleep(INTERVAL_S * PATIENCE)
        still = [rank for rank in others if self._beats(rank) == before[rank]]
        return [rank for rank in still if not self._store.check([f"left/{rank}"])]

    def _tell(self, silent: list[int]) -> None:
        """Says that this rank knows the cause; the store's host waits until the others do."""
        self._store.set(f"knows/{self._rank}", "")
        others = [rank for rank in range(1, self._world_size) if rank not in silent]
        until = time.monotonic() + (STAY_S if self._rank == 0 else 0)
        while time.monotonic() < until and not self._store.check(
            [f"knows/{rank}" for rank in others]
        ):
            time.sleep(INTERVAL_S)

    def _beats(self, rank: int) -> int:
        count: int = self._store.add(f"beat/{rank}", 0)
        return count

    def _behind(self) -> dict[int, str]:
        """Returns the ranks furthest behind this one's step, each with the step it is in."""
        at = {}
        for rank in range(self._world_size):
            number, _, name = self._store.get(f"at/{rank}").decode().partition(" ")
            at[rank] = (int(number), name)
        last = min(number for number, _ in at.values())
        if last == self._number:
            return {}
        return {rank: name for rank, (number, name) in at.items() if number == last}
