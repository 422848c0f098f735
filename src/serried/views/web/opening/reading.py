"""What was opened, read: a value for the tab that shows it, whatever file it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from serried.trace.formats.reading import read_recording
from serried.trace.model.progress import Listener, unheard
from serried.views.web.check.heat import NamedCheck, read_check
from serried.views.web.diagnose.cases import NamedCase, read_case
from serried.views.web.diagnose.written import read_written
from serried.views.web.opening.documents import groups_question, plan_question
from serried.views.web.opening.kinds import TABS, Kind
from serried.views.web.plan.models import offer_model
from serried.views.web.trace.payload import NamedTrace


@dataclass(frozen=True, eq=False)
class Opened:
    """Holds what one thing that was opened gives the page."""

    traces: tuple[NamedTrace, ...] = ()
    checks: tuple[NamedCheck, ...] = ()
    cases: tuple[NamedCase, ...] = ()
    question: Mapping[str, Any] | None = None
    """The words that the page then asks with; None where what was opened brings its own."""
    files: tuple[Path, ...] = ()
    """Launch files, which are read anew with each answer to what they leave open."""


def opened_from(
    kind: Kind, places: Sequence[Path], name: str, listener: Listener = unheard
) -> Opened:
    """Returns what lies at ``places``, called ``name``; raises InputError as its reader does."""
    first = places[0]
    match kind:
        case Kind.CHECK:
            return Opened(checks=(read_check(first, PurePath(name).stem),))
        case Kind.DIAGNOSIS:
            return Opened(cases=(read_written(first, name),))
        case Kind.PLAN:
            return Opened(question=plan_question(first))
        case Kind.GROUPS:
            return Opened(question=groups_question(first))
        case Kind.MODEL:
            return Opened(question={"model": offer_model(first, name), "planned": "1"})
        case Kind.LAUNCH | Kind.HOSTFILE:
            return Opened(files=tuple(places))
    if TABS[kind] == "diagnose":
        return Opened(cases=(read_case(first, name, listener),))
    called = [name] if len(places) == 1 else [f"{name}/{place.name}" for place in places]
    return Opened(
        traces=tuple(
            NamedTrace.read(each, read_recording([place], listener=listener), place)
            for each, place in zip(called, places, strict=True)
        )
    )
