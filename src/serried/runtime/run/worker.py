"""The one entry of a rank: started by ``launch`` on this host, or by torchrun on many.

Nothing here imports torch before the environment that torch reads is set.
"""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import multiprocessing.forkserver
import os
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

from serried.errors import EnvironmentProblem, InputError, SerriedError
from serried.finding import Sentence, said
from serried.runtime.job.report import Event, Failed, Place
from serried.runtime.job.settings import TrainSettings
from serried.runtime.recorder.host_time import HostTime

PR_SET_PDEATHSIG = 1
"""Linux's prctl: which signal a process gets when the one that forked it ends."""

Told = TypeVar("Told")
Told_co = TypeVar("Told_co", covariant=True)
Rendezvous = Mapping[str, Any]
"""What torch.distributed is told of where ranks meet: ``{"store": …}``."""


class RankJob(Protocol[Told_co]):
    """Says what ranks are started for, sent to them by pickle; ``Told_co`` is what rank 0 tells."""

    @property
    def world_size(self) -> int:
        """How many ranks the job has."""
        ...

    @property
    def timeout_s(self) -> float:
        """How long ranks wait for one another."""
        ...

    def run_rank(
        self, place: Place, rendezvous: Rendezvous, tell: Callable[[Told_co], None]
    ) -> None:
        """Does one rank's work, from joining the others to its last message."""
        ...


@dataclass(frozen=True)
class TrainJob:
    """Trains as ``settings`` say."""

    settings: TrainSettings
    host: HostTime | None = None
    """Stands for the rank's own host, where its clocks are to be others."""

    @property
    def world_size(self) -> int:
        """How many ranks the run has."""
        return self.settings.world_size

    @property
    def timeout_s(self) -> float:
        """How long ranks wait for one another."""
        return self.settings.timeout_s

    def run_rank(self, place: Place, rendezvous: Rendezvous, tell: Callable[[Event], None]) -> None:
        """Trains one rank; torch is loaded only here."""
        from serried.runtime.run.loop import train_rank

        quiet_torch()
        train_rank(self.settings, place, rendezvous, tell, self.host)


def quiet_torch() -> None:
    """Silences what torch says of no mistake of the user's."""
    # Its errors come with the whole schedule; ours name the rank and the cause.
    logging.getLogger("torch.distributed.pipelining").setLevel(logging.CRITICAL)
    # Gathered scores are a view; nothing here writes into them, which is what torch warns of.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")


def prepare_environment(*, local: bool) -> None:
    """Sets what torch and gloo read from the environment, unless the user has set it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TORCH_GLOO_LAZY_INIT", "1")
    # Hosts without names are no news: torch warns of each that it cannot look up.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if local and Path("/sys/class/net/lo").exists():
        # Ranks of one host need no network card, and no host name that resolves.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def require_loopback() -> None:
    """Raises EnvironmentProblem where ranks of this host would not reach each other by lo."""
    if "GLOO_SOCKET_IFNAME" in os.environ:
        return  # the user knows another way
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((host, 9))  # sends nothing: it only asks for the way
            return
    raise EnvironmentProblem(
        "local ranks reach each other by the loopback card lo, which has no address here; give "
        "it one with: {command}",
        command="ip link set lo up",
    )


TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
SLURM = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE")


def place_of_launcher() -> Place | None:
    """Returns the place that torchrun or Slurm gave this process, None where neither started it.

    A Slurm step of one task, such as an interactive shell, counts as no launcher. Raises
    InputError where the variables are not numbers.
    """
    if "RANK" in os.environ:
        cure = said("start it with torchrun, or unset RANK")
        return _place(TORCHRUN, said("torchrun job"), cure)
    if os.environ.get("SLURM_STEP_NUM_TASKS", "1") != "1":
        cure = said("start it with srun, or unset SLURM_STEP_NUM_TASKS")
        return _place(SLURM, said("Slurm step"), cure)
    return None


def _place(names: tuple[str, str, str, str], what: Sentence, cure: Sentence) -> Place:
    values = {
        names[0]: os.environ.get(names[0]),
        names[1]: os.environ.get(names[1]),
        names[2]: os.environ.get(names[2], "0"),
        # Slurm writes 4(x2) for two nodes of four tasks; steps of uneven nodes write 4,3.
        names[3]: os.environ.get(names[3], "1").partition("(")[0].partition(",")[0],
    }
    for name, value in values.items():
        if value is None or not value.isdecimal():
            raise InputError(
                "{started} is set, so this process joins a {what}, but {name}={value} is not a "
                "number; {cure}",
                started=names[0],
                what=what,
                name=name,
                value=value,
                cure=cure,
            )
    return Place(*(int(str(value)) for value in values.values()))


def run_local(job: RankJob[Told], place: Place, store: Path, channel: Connection) -> NoReturn:
    """Runs a local rank: works, tells the parent over ``channel``, and exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    _die_with_parent()

    def tell(event: Told) -> None:
        if place.rank == 0:
            channel.send(event)

    try:
        _run(job, place, tell, file=store)
    except BaseException as error:
        channel.send(failure(place.rank, error))
        leave(1)
    leave(0)


def join(job: RankJob[Told], place: Place, tell: Callable[[Told], None]) -> None:
    """Works as this process's rank of a job that torchrun, Slurm or a user started."""
    prepare_environment(local=False)
    _choose_card(place)
    _run(job, place, tell, file=None)


def _choose_card(place: Place) -> None:
    """Lets gloo use the card that reaches rank 0, unless the user has named one.

    By itself gloo takes the address of this host's name, which is often 127.0.1.1.
    """
    from serried.runtime.groups.rendezvous import card_towards

    card = card_towards(os.environ.get("MASTER_ADDR", ""))
    # Loopback leads from rank 0's own host to rank 0; the ranks of other hosts cannot be met over
    # it.
    is_one_host = place.local_world_size == place.world_size
    if card and (is_one_host or card != "lo"):
        os.environ.setdefault("GLOO_SOCKET_IFNAME", card)


def leave(exit_code: int) -> NoReturn:
    """Ends the process now: a gloo thread may abort an interpreter that takes itself down."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def failure(rank: int, error: BaseException) -> Failed:
    """Returns what ended ``rank``, told by the error that began it."""
    text = "".join(traceback.format_exception(error))
    while error.__cause__ is not None and not isinstance(error, SerriedError):
        error = error.__cause__
    if isinstance(error, SerriedError):
        return Failed(rank, error, error.exit_code, text)
    words = [type(error).__name__, *str(error).strip().splitlines()[:1]]
    return Failed(rank, ": ".join(words), 1, text)


def _run(
    job: RankJob[Told], place: Place, tell: Callable[[Told], None], *, file: Path | None
) -> None:
    """Meets the other ranks, in a file that no program's port can race or at MASTER_ADDR."""
    from serried.runtime.groups.rendezvous import meet

    job.run_rank(place, {"store": meet(place, file, job.timeout_s)}, tell)


def _die_with_parent() -> None:
    """Ends this process as soon as the launching process is gone, however it went."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
    _die_with_server()


def _die_with_server() -> None:
    """Lets Linux kill this process when the forkserver goes: one that is stopped cannot watch.

    The server goes when nobody is left who could ask it for processes, which this one gives up.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "prctl"):
        return
    library.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    server: Any = getattr(multiprocessing.forkserver, "_forkserver", None)
    held = getattr(server, "_forkserver_alive_fd", None)
    if held is not None:
        server._forkserver_alive_fd = None
        os.close(held)
