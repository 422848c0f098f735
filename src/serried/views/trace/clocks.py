"""Clocks of a run's hosts, for the terminal and as JSON: what was done to each, and how sure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from serried.errors import listed
from serried.trace.model.trace import AlignedClock
from serried.units import duration_text
from serried.views.explain.plain import wrap
from serried.views.sentences import phrase, tell

HOSTS_SHOWN = 8
"""Hosts that are told of one by one, the least sure first; JSON has them all."""
_LEAST_DRIFT = 5e-8
"""The least drift that is printed as 0.1 ppm."""
_INDENT = "  "
_COLUMNS = 100
_SOURCES = {
    "pings": "pings",
    "messages": "messages between hosts",
    "order": "order of F and B",
    "wall": "wall clocks",
}


def clock_lines(clocks: Sequence[AlignedClock], *, lang: str = "en") -> list[str]:
    """Returns what is to be said of each host that was brought onto the first one's clock."""
    moved = sorted((each for each in clocks if each.source != "own"), key=_certainty)
    told = [_told(each, lang) for each in moved[:HOSTS_SHOWN]]
    told += _rest(moved[HOSTS_SHOWN:], lang)
    width = _COLUMNS - len(_INDENT)
    return [_INDENT + line for each in told for line in wrap(each, width, hanging=len(_INDENT))]


def _rest(clocks: Sequence[AlignedClock], lang: str) -> list[str]:
    """Returns what is said of hosts that are not told one by one: a line for each sort."""
    bounds = [each.uncertainty_ns for each in clocks if each.uncertainty_ns is not None]
    unknown, told = len(clocks) - len(bounds), []
    if unknown:
        told.append(
            tell("{count} more hosts; how far they are off is not known", lang, count=unknown)
        )
    if bounds:
        within = duration_text(max(bounds))
        told.append(
            tell("{count} more hosts, each within {within}", lang, count=len(bounds), within=within)
        )
    return told


def clock_document(clock: AlignedClock) -> dict[str, Any]:
    """Returns how a host's clock was aligned, as JSON has it."""
    return {
        "host": clock.host,
        "source": clock.source,
        "offset_us": clock.offset_ns / 1e3,
        "drift_ppm": clock.drift * 1e6,
        "uncertainty_us": _us(clock.uncertainty_ns),
        "even_us": _us(clock.symmetric_ns),
    }


def _told(clock: AlignedClock, lang: str) -> str:
    source = listed([phrase(_SOURCES[word], lang) for word in clock.source.split("+")], last="and")
    if clock.uncertainty_ns is None:
        return tell(
            "{host}: by {source} alone; how far it is off is not known",
            lang,
            host=clock.host,
            source=source,
        )
    return tell(
        "{host}: by {source}, moved {offset}, drift {drift:.1f} ppm; within {within} "
        "whatever way messages took, or {even} if they take as long either way"
        if abs(clock.drift) >= _LEAST_DRIFT
        else "{host}: by {source}, moved {offset}, no drift seen; within {within} whatever way "
        "messages took, or {even} if they take as long either way",
        lang,
        host=clock.host,
        source=source,
        offset=("-" if clock.offset_ns < 0 else "") + duration_text(abs(clock.offset_ns)),
        drift=clock.drift * 1e6,
        within=duration_text(clock.uncertainty_ns),
        # Without a bound of its own for even ways, the sure bound holds for them too.
        even=duration_text(
            clock.uncertainty_ns if clock.symmetric_ns is None else clock.symmetric_ns
        ),
    )


def _certainty(clock: AlignedClock) -> float:
    # In ascending order a clock whose error is unknown comes first, then the largest error.
    return float("-inf") if clock.uncertainty_ns is None else -clock.uncertainty_ns


def _us(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e3
