"""Large files, read in a process of their own: the server answers all the while.

    server                                 python -m serried.views.web.opening.apart
    reads messages, counts bytes   <───    said(sentence) … done(value) or failed(error)
    ends it to cancel

Reading JSON holds Python's interpreter for as long as it takes, so no thread would do; and a
process gives its memory back, and can be ended at any moment.
"""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from serried.errors import SerriedError
from serried.finding import Sentence
from serried.trace.model.progress import Listener
from serried.views.web.opening.kinds import Kind

if TYPE_CHECKING:
    from serried.views.web.opening.reading import Opened

APART_BYTES = 32 << 20
"""Files that hold more are read in a process of their own."""
_LENGTH = struct.Struct("<Q")


@dataclass
class ReaderProcess:
    """Reads one thing in a process of its own, which may be ended."""

    kind: Kind
    places: Sequence[Path]
    name: str
    _process: subprocess.Popen[bytes] | None = None
    _is_cancelled: bool = False

    def read(self, listener: Listener) -> Opened:
        """Returns what was opened; raises what its reader does, and for an early end."""
        words = [self.kind.value, self.name, *map(str, self.places)]
        command = [sys.executable, "-m", __name__, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            self._process = process
            if self._is_cancelled:
                process.kill()
            assert process.stdout
            found = _answer(process.stdout, listener)
        if isinstance(found, SerriedError):
            raise found
        if found is None:
            raise SerriedError(
                "{path} was not read: the process that read it ended with code {code}",
                path=self.name,
                code=process.returncode,
            )
        return found

    def cancel(self) -> None:
        """Ends the process; ``read`` then raises Cancelled."""
        self._is_cancelled = True
        if self._process is not None:
            self._process.kill()

    @property
    def bytes_read(self) -> int:
        """How many bytes the process has read so far, 0 where the system does not say."""
        try:
            text = Path(f"/proc/{self._process.pid}/io").read_text() if self._process else ""
        except OSError:
            return 0
        told = dict(line.split(": ") for line in text.splitlines())
        return int(told.get("rchar", 0))


def _answer(stream: IO[bytes], listener: Listener) -> Opened | SerriedError | None:
    """Hears sentences until the answer comes; None where the process ended without one."""
    while len(head := stream.read(_LENGTH.size)) == _LENGTH.size:
        body = stream.read(_LENGTH.unpack(head)[0])
        try:
            # What this very program wrote a moment ago, to a pipe of its own.
            message = pickle.loads(body)  # nosec B301
        except (pickle.UnpicklingError, EOFError):
            return None
        if not isinstance(message, Sentence):
            answer: Opened | SerriedError = message
            return answer
        listener(message)
    return None


def _main(kind: str, name: str, *places: str) -> None:
    # The server, which imports this module too, has no need of the readers.
    from serried.views.web.opening.reading import opened_from

    # What libraries print must not stand among the messages.
    with os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)

        def send(message: object) -> None:
            body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
            stream.write(_LENGTH.pack(len(body)) + body)
            stream.flush()

        try:
            send(opened_from(Kind(kind), [*map(Path, places)], name, send))
        except SerriedError as error:
            send(error)


if __name__ == "__main__":
    _main(*sys.argv[1:])
