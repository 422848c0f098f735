"""Runs an example on real ranks, in the environment that torchrun gives, and reads their logs.

torchrun would load torch and transformers anew in every rank of every example; ``rank_server``
loads them once and forks.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE_S = 240


class Launcher:
    """Owns the server that ranks are forked from."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("rank_server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def run(
        self,
        script: str,
        folder: Path,
        *words: str,
        world_size: int = 2,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Runs ``examples/script`` with ``words`` on every rank; returns what rank 0 printed.

        Raises AssertionError with the ranks' logs when one fails or does not end.
        """
        folder.mkdir(parents=True, exist_ok=True)
        logs = [folder / f"rank-{rank}.log" for rank in range(world_size)]
        port = _free_port()
        ranks = [
            {"env": _place(rank, world_size, port) | dict(env or {}), "log": str(log)}
            for rank, log in enumerate(logs)
        ]
        server = self._server
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps({"script": script, "words": words, "ranks": ranks}) + "\n")
        server.stdin.flush()
        is_told, _, _ = select.select([server.stdout], [], [], PATIENCE_S)
        codes = json.loads(server.stdout.readline()) if is_told else "no end"
        said = [log.read_text(encoding="utf-8", errors="replace") for log in logs if log.exists()]
        assert codes == [0] * world_size, "\n".join([str(codes), *said])
        return said[0]

    def close(self) -> None:
        """Ends the server."""
        self._server.kill()
        self._server.communicate()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _place(rank: int, world_size: int, port: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": "1",
    }
