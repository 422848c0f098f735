"""serried: every rank of a parallel training job, in view.

Each public name is loaded with the room that holds it when it is first used, so that importing
serried loads neither torch nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from serried.shown import show_by
from serried.version import __version__ as __version__

if TYPE_CHECKING:
    from serried.api import (
        analyse,
        diagnose_job,
        layout,
        model_states,
        plan_job,
        read_launch,
        read_trace,
        schedule,
    )
    from serried.errors import SerriedError
    from serried.pipeline.costs import Costs, Links
    from serried.runtime.guard.guard import guard
    from serried.runtime.recording.api import record, record_steps, span
    from serried.views.notebook.view import view

__all__ = [
    "Costs",
    "Links",
    "SerriedError",
    "analyse",
    "diagnose_job",
    "guard",
    "layout",
    "model_states",
    "plan_job",
    "read_launch",
    "read_trace",
    "record",
    "record_steps",
    "schedule",
    "span",
    "view",
]

_MODULE_OF = {
    **dict.fromkeys(
        (
            *("analyse", "diagnose_job", "layout", "model_states", "plan_job"),
            *("read_launch", "read_trace", "schedule"),
        ),
        "serried.api",
    ),
    **dict.fromkeys(("Costs", "Links"), "serried.pipeline.costs"),
    **dict.fromkeys(("record", "record_steps", "span"), "serried.runtime.recording.api"),
    "guard": "serried.runtime.guard.guard",
    "SerriedError": "serried.errors",
    "view": "serried.views.notebook.view",
}
# Values are drawn by views, which are above them; here both are known.
show_by(lambda: import_module("serried.views.notebook.values"))


def __getattr__(name: str) -> object:
    """Returns a public name, loading its module; AttributeError for any other.

    Raises EnvironmentProblem for one that hooks into PyTorch where that is not installed.
    """
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(import_module(_MODULE_OF[name]), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "torch":
            raise
        raise import_module("serried.errors").EnvironmentProblem(
            "serried.{name} hooks into PyTorch, which is not installed; install it with: "
            "pip install 'serried[torch]'",
            name=name,
        ) from error
    globals()[name] = found  # the next use finds it without coming here
    return found


def __dir__() -> list[str]:
    """Returns the public names, loaded or not, beside those that are there."""
    return sorted({*globals(), *__all__})
