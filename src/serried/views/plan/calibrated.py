"""What a calibration found, for the terminal: how far off before and after, and what moved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serried.errors import listed
from serried.finding import Sentence, said
from serried.plan.calibration.calibrate import Calibration
from serried.plan.time.constants import Constants
from serried.views.explain.plain import wrap
from serried.views.sentences import say, tell
from serried.views.table import Table

MOVED = 0.02
"""Constants that changed by a smaller share are not listed."""


def calibration_verdict(found: Calibration) -> Sentence:
    """Says how far planned steps were off, and are now."""
    return said(
        "{count} steps: off by {before:.1%} on average by the constants that serried ships, by "
        "{after:.1%} by those of this cluster",
        count=found.after.size,
        before=float(np.abs(np.expm1(found.before)).mean()),
        after=float(np.abs(np.expm1(found.after)).mean()),
    )


def calibration_parts(
    found: Calibration,
    known: Constants,
    left_out: Sequence[tuple[str, str]],
    *,
    columns: int,
    lang: str = "en",
) -> list[str | Table]:
    """Returns the verdict, the constants that moved, and what no row told."""
    parts: list[str | Table] = [*wrap(say(calibration_verdict(found), lang), columns)]
    for row, why in left_out:
        parts += wrap(say(said("left out: {row}: {why}", row=row, why=why), lang), columns)
    parts += ["", moved_table(found.constants, known, lang=lang), ""]
    untold = said(
        "never measured, so kept as shipped: {names}",
        names=listed(found.unmeasured, limit=len(found.unmeasured)) if found.unmeasured else "-",
    )
    return [*parts, *wrap(say(untold, lang), columns)]


def moved_table(constants: Constants, known: Constants, *, lang: str = "en") -> Table:
    """Returns a row for each constant that moved: before, after, and how well it is known."""
    rows = Table()
    rows.add_column(tell("constant", lang), no_wrap=True)
    for word in (said("shipped"), said("here"), said("known within")):
        rows.add_column(say(word, lang), justify="right")
    for name, each in constants.entries.items():
        before = known.value(name)
        if abs(each.value / before - 1) >= MOVED:
            rows.add_row(name, f"{before:.4g}", f"{each.value:.4g}", f"{each.error:.0%}")
    return rows
