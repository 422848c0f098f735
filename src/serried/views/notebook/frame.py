"""Columns as a data frame of whichever library there is: pandas, Polars or Arrow."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

from numpy.typing import NDArray

from serried.errors import EnvironmentProblem, InputError, listed

Columns: TypeAlias = Mapping[str, NDArray[Any] | Sequence[Any]]
"""Each by its name, which ends in its unit; lists are texts, lists of ranks, or None."""

LIBRARIES = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}
"""The package of each kind of frame, the most used first."""


def frame(columns: Columns, into: str | None = None) -> Any:
    """Returns columns as a frame; without ``into``, of what the program uses, else of what it has.

    >>> frame({"rank": [0, 1], "kind": ["tp", "dp"]}, "arrow").column_names
    ['rank', 'kind']

    Raises InputError for another kind of frame, EnvironmentProblem where its package is missing.
    """
    if into is not None and into not in LIBRARIES:
        raise InputError(
            "a table becomes {known}, not {into}",
            known=listed(LIBRARIES, last="or"),
            into=into,
        )
    kind = into or _usual()
    try:
        package = import_module(LIBRARIES[kind])
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            "a table as {kind} needs {package}, which is not installed; pip install '{package}' "
            "adds it",
            kind=kind,
            package=LIBRARIES[kind],
        ) from error
    return package.table(dict(columns)) if kind == "arrow" else package.DataFrame(dict(columns))


def _usual() -> str:
    """Returns the kind of frame that the program has imported, else the first that is installed."""
    for kind, package in LIBRARIES.items():
        if package in sys.modules:
            return kind
    for kind, package in LIBRARIES.items():
        if find_spec(package):
            return kind
    raise EnvironmentProblem(
        "a table needs pandas, polars or pyarrow, none of which is installed; pip install "
        "'{extra}' adds pyarrow",
        extra="serried[trace]",
    )
