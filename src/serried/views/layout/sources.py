"""Where each size of a job came from: an option, a line of a file, a default, or the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from serried.views.layout.text import table
from serried.views.sentences import tell
from serried.views.table import Table


class SizeSource(NamedTuple):
    """Names one size or setting, its value, and in words where it stands."""

    name: str
    value: int | str
    where: str


def sources_table(sources: Sequence[SizeSource], *, lang: str = "en") -> Table:
    """Returns a row per size or setting."""
    rows = table(tell("what", lang), tell("value", lang), tell("from", lang))
    for each in sources:
        rows.add_row(each.name, str(each.value), each.where)
    return rows


def sources_document(
    sources: Sequence[SizeSource], file: str | None, form: str
) -> Mapping[str, object]:
    """Returns the ``serried.sources/1`` document."""
    return {
        "schema": "serried.sources/1",
        "file": file,
        "format": form,
        "sizes": {each.name: {"value": each.value, "from": each.where} for each in sources},
    }
