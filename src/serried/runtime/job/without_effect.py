"""Options of a run that would do nothing, each refused in a sentence that says what would."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from serried.errors import InputError, listed
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.model import ModelSizes

PLACING_OPTIONS = ("use_tp_pp_dp_mapping",)
"""Framework settings that a run obeys, as they place ranks; others would do nothing."""


def require_placing(options: Iterable[str]) -> None:
    """Raises InputError for a framework's setting that does not place ranks."""
    for key in options:
        if key not in PLACING_OPTIONS:
            raise InputError(
                "setting '{key}' does not place ranks and a run would ignore it; "
                "settings that do: {known}",
                key=key,
                known=listed(PLACING_OPTIONS),
            )


def require_tokens_read(tokenizer: Path | None, model: ModelSizes) -> None:
    """Raises InputError for a tokenizer beside a model that reads bytes."""
    if tokenizer is not None and not isinstance(model, ConfigModel):
        raise InputError(
            "the model of serried's own reads bytes, so that {tokenizer} would do nothing; add "
            "--model with a config.json, or leave out --tokenizer",
            tokenizer=tokenizer,
        )


def require_recorded(window: tuple[int, int] | None, steps: int) -> None:
    """Raises InputError for a ``window`` (first, end) that holds none of the run's steps."""
    if window is None:
        return
    first, end = window
    if not 0 <= first < end or first >= steps:
        raise InputError(
            "trace steps {first}:{end} hold none of the steps 0 to {last}; "
            "give the first and the one after the last, such as 0:{steps}",
            first=first,
            end=end,
            last=steps - 1,
            steps=steps,
        )
