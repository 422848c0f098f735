"""What is open, and what is being opened: things are read one after another, behind the page.

What is small is read in a thread, what is large in a process of its own (``apart``). A page follows
by waiting for the next change; whatever is read is on offer from then on, in its order. A desk that
is ``held`` reads nothing until it is told to begin: a server that starts answers first.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from serried.errors import InputError, SerriedError
from serried.finding import Sentence, said
from serried.views.web.opening.folder import Recognised, awaits_ranks, recognised
from serried.views.web.opening.kinds import Kind
from serried.views.web.opening.opening import Opening
from serried.views.web.wire.coming import Coming, require_room

if TYPE_CHECKING:
    from serried.views.web.check.heat import NamedCheck
    from serried.views.web.diagnose.cases import NamedCase
    from serried.views.web.opening.followed import FollowedCases
    from serried.views.web.opening.reading import Opened
    from serried.views.web.trace.payload import NamedTrace

AGAIN_S = 1.0
"""Seconds after which it is looked again whether the ranks of a run record."""
Tell = Callable[[Sentence | SerriedError], None]
"""Hears what is said of an opening, as for the terminal."""


class OpeningDesk:
    """Opens things, and holds what they gave."""

    def __init__(
        self,
        traces: Sequence[NamedTrace] = (),
        checks: Sequence[NamedCheck] = (),
        cases: Sequence[NamedCase] = (),
        tell: Tell = lambda _: None,
        held: bool = False,
        waits: bool = False,
    ) -> None:
        """Takes what is read already; ``tell`` hears what is done, and what cannot be.

        ``waits`` says that a run whose ranks have recorded nothing yet is read once they have.
        """
        self.traces, self.checks, self.cases = [*traces], [*checks], [*cases]
        self.openings: list[Opening] = []
        self.version = 0
        """Counts changes, so that a page can wait for the next."""
        self.is_left = False
        """Whether the server ends, so that pages are told nothing more."""
        self._tell = tell
        self._changed = threading.Condition()
        self._queue: list[Opening] = []
        self._is_working = False
        self._is_held = held
        self._waits = waits
        self._folder: Path | None = None
        self._copies: dict[Path, int] = {}

    # ------------------------------------------------------------------- what a page asks

    def open(self, place: Path, name: str = "", found: Recognised | None = None) -> Opening:
        """Begins to open what lies at ``place``; ``found`` says what it is where that is known."""
        with self._changed:
            opening = Opening(len(self.openings), name or place.name or str(place), place, found)
            self.openings.append(opening)
            self._queue.append(opening)
            self._start()
        self._turn()
        return opening

    def begin(self) -> None:
        """Begins to read what waits on a desk that was held."""
        with self._changed:
            self._is_held = False
            self._start()

    def diagnose(self, number: int) -> Opening:
        """Begins to diagnose the run of a trace, or returns the opening that does.

        Raises InputError where there is no such trace, or where nothing of it lies in a folder.
        """
        named = self.traces[number] if 0 <= number < len(self.traces) else None
        if named is None or named.evidence is None:
            raise InputError(
                "there is no recorded run {number} here whose folder could be diagnosed",
                number=number,
            )
        for each in self.openings:
            is_alive = each.state in ("reading", "done")
            if is_alive and each.kind is Kind.LOG and each.place == named.evidence:
                return each
        return self.open(named.evidence, named.name, Recognised(Kind.LOG, ()))

    def cancel(self, number: int) -> None:
        """Ends an opening; raises InputError where there is none of that number."""
        opening = self.opening(number)
        if process := opening.process:
            process.cancel()
        opening.settle("cancelled")
        self._turn()

    def opening(self, number: int) -> Opening:
        """Returns an opening; raises InputError where there is none of that number."""
        if not 0 <= number < len(self.openings):
            raise InputError(
                "nothing was opened under number {number}; {count} were, numbered from 0",
                number=number,
                count=len(self.openings),
            )
        return self.openings[number]

    def case(self, number: int) -> NamedCase:
        """Returns a diagnosis; raises InputError where there is none of that number."""
        if not 0 <= number < len(self.cases):
            raise InputError(
                "there is no diagnosis {number} here; {count} are open, numbered from 0",
                number=number,
                count=len(self.cases),
            )
        return self.cases[number]

    @cached_property
    def followed(self) -> FollowedCases:
        """Follows the evidence of the diagnoses that pages show."""
        from serried.views.web.opening.followed import FollowedCases

        return FollowedCases(self.cases)

    @property
    def reading(self) -> list[Opening]:
        """What is being opened."""
        return [each for each in self.openings if each.state == "reading"]

    def wait(self, version: int, seconds: float) -> int:
        """Returns the count of changes once it is not ``version``, or that time has passed."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != version, seconds)
            return self.version

    def settle(self, seconds: float | None = None) -> bool:
        """Returns once nothing is being opened, or that time has passed; tells which."""
        with self._changed:
            return self._changed.wait_for(lambda: not self.reading, seconds)

    # ------------------------------------------------------------------- copies

    def folder(self) -> Path:
        """Returns a new empty folder, which goes with the desk."""
        with self._changed:
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="serried-"))
        return Path(tempfile.mkdtemp(dir=self._folder))

    def make_room(self, folder: Path, coming: Coming) -> None:
        """Keeps room for what comes into ``folder``; raises InputError where there is none."""
        with self._changed:
            require_room(coming, self.copied_bytes)
            self._copies[folder] = coming.size_bytes

    def drop(self, folder: Path) -> None:
        """Removes a copy that did not come whole; its room is free again."""
        shutil.rmtree(folder, ignore_errors=True)
        self._copies.pop(folder, None)

    @property
    def copied_bytes(self) -> int:
        """How much the copies hold, with those that are on their way."""
        return sum(self._copies.values())

    def leave(self) -> None:
        """Ends what pages are told."""
        self.is_left = True

    def close(self) -> None:
        """Ends what is being read, and removes the copies."""
        for each in self.reading:
            self.cancel(each.number)
        for each in self.openings:
            if each.question and each.kind is Kind.MODEL:
                from serried.views.web.plan.models import withdraw_model

                withdraw_model(each.question["model"])
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # ------------------------------------------------------------------- the worker

    def _start(self) -> None:
        if self._queue and not self._is_working and not self._is_held:
            self._is_working = True
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        for opening in self._waiting():
            if self._waits and awaits_ranks(opening.place):
                self._put_off(opening)
                continue
            opening.sentence = None
            try:
                self._take(opening, self._read(opening))
                opening.settle("done")
            except SerriedError as error:
                error.values.update(_called(error.values, self._folder, opening))
                self._fail(opening, error)
            except Exception as error:
                from serried.views.mishap import mishap_of

                self._fail(opening, mishap_of(error, ["open", opening.name]))
            self._turn()

    def _waiting(self) -> Iterator[Opening]:
        while True:
            with self._changed:
                if not self._queue:
                    self._is_working = False
                    return
                opening = self._queue.pop(0)
            if opening.state == "reading":
                yield opening

    def _put_off(self, opening: Opening) -> None:
        """Takes an opening up again in a moment, behind what else is to be read."""
        if opening.sentence is None:
            opening.found = Recognised(Kind.RECORDING, ())
            opening.sentence = said(
                "no rank of {name} has recorded anything yet; it opens by itself once one has",
                name=opening.name,
            )
            self._tell(opening.sentence)
            self._turn()
        again = threading.Timer(AGAIN_S, self._requeue, [opening])
        again.daemon = True
        again.start()

    def _requeue(self, opening: Opening) -> None:
        with self._changed:
            self._queue.append(opening)
            self._start()

    def _read(self, opening: Opening) -> Opened:
        from serried.views.web.opening.apart import APART_BYTES, ReaderProcess
        from serried.views.web.opening.prepared import prepared

        def hear(sentence: Sentence) -> None:
            values = _called(sentence.values, self._folder, opening)
            opening.sentence = replace(sentence, values=values)
            self._tell(opening.sentence)
            self._turn()

        opening.found = opening.found or recognised(opening.place)
        ready = prepared(opening.place, opening.found, self.folder)
        opening.size_bytes = ready.size_bytes
        self._turn()
        if ready.size_bytes < APART_BYTES:
            # The readers take longer to import than a page takes to open.
            from serried.views.web.opening.reading import opened_from

            return opened_from(ready.kind, ready.places, opening.name, hear)
        opening.process = ReaderProcess(ready.kind, ready.places, opening.name)
        if opening.state == "cancelled":
            opening.process.cancel()
        return opening.process.read(hear)

    def _take(self, opening: Opening, opened: Opened) -> None:
        if opening.state != "reading":
            return
        found: dict[str, int | str] = {}
        traces = [self._given(each, opening) for each in opened.traces]
        if traces:
            found |= {"trace": len(self.traces), "run": traces[0].trace.run}
        if opened.checks:
            found |= {"check": len(self.checks)}
        taken = {each.name for each in self.cases}
        cases = [replace(each, name=_free(each.name, taken)) for each in opened.cases]
        if self._is_copied(opening.place):
            cases = [replace(each, place=None) for each in cases]  # nobody writes to a copy
        if cases:
            found |= {"case": cases[0].name}
        self.traces += traces
        self.checks += opened.checks
        self.cases += cases
        opening.found_at, opening.files = found, opened.files
        opening.question = opened.question

    def _given(self, named: NamedTrace, opening: Opening) -> NamedTrace:
        """Returns a trace that commands and links call as its user does, not by a copy's path."""
        copies = self._folder
        if copies is None or named.place is None or not self._is_copied(named.place):
            return named
        # A trace that names no run is called after its folder: the copy's, another one each time.
        is_nameless = named.trace.run in {each.name for each in copies.iterdir()}
        trace = replace(named.trace, run=named.name) if is_nameless else named.trace
        is_dropped = self._is_copied(opening.place)
        return replace(named, trace=trace, given=named.name if is_dropped else opening.place)

    def _is_copied(self, place: Path) -> bool:
        """Tells whether a place holds a copy of what was dropped, or links to what is read."""
        return self._folder is not None and place.is_relative_to(self._folder)

    def _fail(self, opening: Opening, error: SerriedError) -> None:
        if opening.state == "reading":
            opening.problem = error
            opening.settle("failed")
            self._tell(error)

    def _turn(self) -> None:
        with self._changed:
            self.version += 1
            self._changed.notify_all()


def _called(
    values: Mapping[str, object], copies: Path | None, opening: Opening
) -> dict[str, object]:
    """Returns a sentence's values with the name that a user gave in place of a copy's path."""
    called = dict(values)
    for key, value in values.items():
        path = Path(str(value))
        if copies is None or not path.is_relative_to(copies):
            continue
        is_whole = opening.place.is_file() or len(path.relative_to(copies).parts) < 2
        called[key] = opening.name if is_whole else f"{opening.name}/{path.name}"
    return called


def _free(name: str, taken: set[str]) -> str:
    """Returns a name that is not taken: the page finds a diagnosis by its name."""
    return next(n for n in (name, *(f"{name} ({i})" for i in range(2, 10_000))) if n not in taken)
