"""The traces on offer: small ones are read before the page opens, large ones while it is open.

    serried serve big/run       the page opens at once and says that big/run is being read
    a process of its own        reads it, so that the server answers all the while

Reading JSON holds Python's interpreter for as long as it takes, so no thread would do.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from serried.errors import SerriedError
from serried.finding import Sentence
from serried.trace.formats.reading import read_recording
from serried.trace.gpu.activity import GpuTrace
from serried.trace.model.progress import LARGE_BYTES, size_bytes
from serried.trace.model.trace import Trace
from serried.views.web.trace.payload import NamedTrace

WAIT_S = 2.0
"""How long an answer that was asked to wait does so; the page asks again."""

Reader = Callable[[Path], Trace | GpuTrace]


class Shelf:
    """Holds the traces that were read, the names of those that still are, and what failed."""

    def __init__(
        self, traces: Sequence[NamedTrace], later: Sequence[Path] = (), reader: Reader | None = None
    ) -> None:
        """Takes what is read already, and the places that ``start`` reads; those stand behind."""
        self.traces = [*traces]
        self.problems: list[SerriedError] = []
        self._later = [*later]
        self._read = reader or read_apart
        self._done = threading.Event()
        if not later:
            self._done.set()

    @classmethod
    def of_places(cls, places: Sequence[Path], *, at_once: bool = False) -> Shelf:
        """Reads all ``places`` now, or leaves them all to ``start`` where they are large.

        ``at_once`` reads large ones now too.

        Raises InputError as ``read_recording`` does, for places that are read now.
        """
        if not at_once and sum(map(size_bytes, places)) >= LARGE_BYTES:
            return cls((), places)
        return cls([NamedTrace.read(_name(path), read_recording([path]), path) for path in places])

    @property
    def reading(self) -> list[str]:
        """The names of the traces that are not read yet; none are offered until all are."""
        return [] if self._done.is_set() else [_name(path) for path in self._later]

    def start(self, tell: Callable[[SerriedError], None]) -> None:
        """Begins to read the others behind the open page; ``tell`` hears of what cannot be."""
        if not self._done.is_set():
            threading.Thread(target=self._fill, args=(tell,), daemon=True).start()

    def wait(self, seconds: float = WAIT_S) -> None:
        """Returns once all is read, or that time has passed."""
        self._done.wait(seconds)

    def _fill(self, tell: Callable[[SerriedError], None]) -> None:
        found: list[NamedTrace] = []
        for path in self._later:
            try:
                found.append(NamedTrace.read(_name(path), self._read(path), path))
            except SerriedError as error:
                self.problems.append(error)
                tell(error)
        # First the traces, then the flag: nobody may see that all is read and find nothing. They
        # come all at once, for the page asks for a trace by its number, which must not change.
        self.traces += found
        self._done.set()


def read_apart(path: Path) -> Trace | GpuTrace:
    """Reads a trace in a process of its own, whose memory goes back to the system.

    Raises what ``read_recording`` does.
    """
    command = [sys.executable, "-m", __name__, str(path)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    try:
        found = pickle.loads(ran.stdout)  # what this very program wrote a moment ago
    except (pickle.UnpicklingError, EOFError) as error:
        raise SerriedError(
            "{path} was not read: the process that read it ended with code {code}",
            path=path,
            code=ran.returncode,
        ) from error
    if isinstance(found, SerriedError):
        raise found
    assert isinstance(found, Trace | GpuTrace)
    return found


def _name(path: Path) -> str:
    return path.name or str(path)


def _tell(sentence: Sentence) -> None:
    sys.stderr.write(f"{sentence} …\n")


def _main(path: Path) -> None:
    try:
        found: Trace | GpuTrace | SerriedError = read_recording([path], listener=_tell)
    except SerriedError as error:
        found = error
    sys.stdout.buffer.write(pickle.dumps(found, pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
