"""One thing that is being opened: its state, and what the page is told of it.

reading ──> done          its traces, checks and cases are on offer
   ├──────> failed        one sentence
   └──────> cancelled
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from serried.errors import SerriedError
from serried.finding import Sentence
from serried.views.sentences import LANGUAGES, say
from serried.views.web.opening.folder import Recognised
from serried.views.web.opening.kinds import NAMES, Kind, Tab

if TYPE_CHECKING:
    from serried.views.web.opening.apart import ReaderProcess

State = Literal["reading", "done", "failed", "cancelled"]


@dataclass(eq=False)
class Opening:
    """Holds how far one thing is that is opened."""

    number: int
    name: str
    place: Path
    found: Recognised | None = None
    """What it is; None until it is recognised."""
    state: State = "reading"
    sentence: Sentence | None = None
    """What is done at the moment."""
    size_bytes: int = 0
    problem: SerriedError | None = None
    found_at: dict[str, int | str] = field(default_factory=dict)
    """Where the page finds what was opened: the number of a trace, the name of a case …"""
    question: Mapping[str, Any] | None = None
    """The words that the page then asks with."""
    files: tuple[Path, ...] = ()
    """Launch files, which are read anew with each answer to what they leave open."""
    process: ReaderProcess | None = None

    @property
    def kind(self) -> Kind | None:
        """The kind of it; None until it is recognised."""
        return self.found.kind if self.found else None

    @property
    def tab(self) -> Tab | None:
        """The tab that shows it; None until it is recognised."""
        return self.found.tab if self.found else None

    @property
    def share(self) -> float | None:
        """The part of it that was read, between 0 and 1; None where that is not known."""
        if self.state != "reading" or self.process is None or not self.size_bytes:
            return None
        return min(1.0, self.process.bytes_read / self.size_bytes)

    def settle(self, state: State) -> None:
        """Ends it, unless it has ended."""
        self.process = None
        if self.state == "reading":
            self.state = state

    def document(self) -> dict[str, Any]:
        """Returns what the page is told of it, each sentence in every language."""
        return {
            "number": self.number,
            "name": self.name,
            "state": self.state,
            "kind": self.kind,
            "tab": self.tab,
            "what": _in_each(NAMES[self.kind]) if self.kind else None,
            "said": _in_each(self.sentence) if self.sentence else None,
            "share": self.share,
            "size_bytes": self.size_bytes,
            "error": _in_each(self.problem) if self.problem else None,
            "question": self.question,
            "files": [each.name for each in self.files],
            **self.found_at,
        }


def openings_answer(openings: Sequence[Opening]) -> dict[str, Any]:
    """Returns every opening, and how many of them are being read."""
    told = [each.document() for each in openings]
    # Counted as they are told: one that ends meanwhile would be missed by who stops listening at 0.
    reading = sum(each["state"] == "reading" for each in told)
    return {"schema": "serried.openings/1", "openings": told, "reading": reading}


def _in_each(sentence: Sentence | SerriedError) -> dict[str, str]:
    return {lang: say(sentence, lang) for lang in LANGUAGES}
