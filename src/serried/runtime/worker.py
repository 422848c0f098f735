"""The one entry of a rank: started by ``launch`` on this host, or by torchrun on many.

Nothing here imports torch before the environment that torch reads is set.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from serried.errors import InputError, SerriedError
from serried.runtime.report import Event, Failed, Place, Progress
from serried.runtime.settings import TrainSettings


def prepare_environment(*, local: bool) -> None:
    """Sets what torch and gloo read from the environment, unless the user has set it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TORCH_GLOO_LAZY_INIT", "1")
    if local and Path("/sys/class/net/lo").exists():
        # Ranks of one host need no network card, and no host name that resolves.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def torchrun_place() -> Place | None:
    """Returns the place that torchrun gave this process, None where there is no torchrun.

    Raises InputError where its variables are not numbers.
    """
    if "RANK" not in os.environ:
        return None
    names = {"RANK": None, "WORLD_SIZE": None, "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    values = {name: os.environ.get(name, default) for name, default in names.items()}
    for name, value in values.items():
        if value is None or not value.isdecimal():
            raise InputError(
                "RANK is set, so this process joins a torchrun job, but {name}={value} is not a "
                "number; start it with torchrun, or unset RANK",
                name=name,
                value=value,
            )
    return Place(*(int(str(value)) for value in values.values()))


def run_local(settings: TrainSettings, place: Place, store: Path, channel: Connection) -> NoReturn:
    """Is a local rank's whole life: trains, tells the parent over ``channel``, and exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    _die_with_parent()

    def tell(event: Event) -> None:
        if place.rank == 0:
            channel.send(event)

    try:
        _train(settings, place, tell, store=store)
    except BaseException as error:
        channel.send(failure(place.rank, error))
        leave(1)
    leave(0)


def join(settings: TrainSettings, place: Place, tell: Progress) -> None:
    """Trains this process's rank of a torchrun job."""
    prepare_environment(local=False)
    _train(settings, place, tell, store=None)


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
        return Failed(rank, str(error), error.exit_code, text)
    words = [type(error).__name__, *str(error).strip().splitlines()[:1]]
    return Failed(rank, ": ".join(words), 1, text)


def _train(settings: TrainSettings, place: Place, tell: Progress, *, store: Path | None) -> None:
    from serried.runtime.train import train_rank

    # Its errors come with the whole schedule; ours name the rank and the cause.
    logging.getLogger("torch.distributed.pipelining").setLevel(logging.CRITICAL)
    # Gathered scores are a view; nothing here writes into them, which is what torch warns of.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
    train_rank(settings, place, _rendezvous(store, place), tell)


def _rendezvous(store: Path | None, place: Place) -> Mapping[str, Any]:
    """Returns a store in a file, which no other program's port can race; else env://."""
    if store is None:
        return {}
    from torch.distributed import FileStore  # type: ignore[attr-defined]

    return {"store": FileStore(str(store), place.world_size)}


def _die_with_parent() -> None:
    """Ends this process as soon as the launching process is gone, however it went."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
