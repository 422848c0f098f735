"""Models that were opened on this server, by the names under which the page asks for them.

    config.json, opened     model=config.json          the copy that lies in this server's folder
    a launch file's         model=mine:layers=96,…     the address holds it whole

No address opens any other file: a name is known here, or in the catalogue, or refused.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from serried.plan.catalog import model_named
from serried.plan.model.hugging_face import shape_of_file
from serried.plan.model.written import is_written, shape_of_text

_OPENED: dict[str, Path] = {}
_LOCK = threading.Lock()


def offer_model(path: Path, name: str) -> str:
    """Offers the model of a config file for plans, and returns the name that it has from now on.

    Raises InputError for a file that is no config of a model.
    """
    shape_of_file(path)
    with _LOCK:
        taken = (each for each in _names(name) if _OPENED.get(each, path) == path)
        chosen = next(taken)
        _OPENED[chosen] = path
    return chosen


def withdraw_model(name: str) -> None:
    """Takes a model that was opened out of the offer."""
    with _LOCK:
        _OPENED.pop(name, None)


def opened_models() -> tuple[str, ...]:
    """Returns the names of the models that were opened."""
    return tuple(_OPENED)


def resolved(told: Mapping[str, str]) -> dict[str, str]:
    """Returns words of a plan with the file of a model that was opened in place of its name.

    Raises InputError for a name that is neither that of such a model nor in the catalogue.
    """
    name = told.get("model", "")
    if path := _OPENED.get(name):
        return {**told, "model": str(path)}
    if is_written(name):
        shape_of_text(name)
    elif name:
        model_named(name)
    return dict(told)


def _names(name: str) -> list[str]:
    """Returns names to choose from: that of the file, then the same with a number."""
    stem, dot, suffix = name.rpartition(".")
    base, end = (stem, f".{suffix}") if dot else (name, "")
    return [name, *(f"{base}-{number}{end}" for number in range(2, 1000))]
