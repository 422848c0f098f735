"""What a run saves, where it begins again, and the held-out text that it is measured on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from serried.errors import InputError
from serried.runtime.job.limits import require_at_least_zero, require_positive


@dataclass(frozen=True)
class CheckpointSettings:
    """Describes a run's checkpoints; each is a folder of its own in ``folder``.

    Raises InputError for options that would do nothing without a folder.
    """

    folder: Path | None = None
    """Where checkpoints go; None keeps none."""
    every: int = 0
    """Steps between two; the last step is always kept. 0 keeps that alone."""
    last: int | None = None
    """How many of the newest stay; None keeps all."""
    resume: bool = False
    """Whether to go on from the newest in ``folder``; where there is none, the run begins anew."""
    begin_from: Path | None = None
    """A checkpoint, or a folder of them, to begin from; a newer one in ``folder`` goes first."""
    on_error: Literal["stop", "continue"] = "stop"
    """What a run does when a checkpoint cannot be written."""
    export: Path | None = None
    """Where the model goes at the end, as one safetensors file."""

    def __post_init__(self) -> None:
        require_at_least_zero("save_every", self.every)
        if self.last is not None:
            require_positive("keep", self.last)
        asked = {
            "save_every": self.every > 0,
            "keep": self.last is not None,
            "resume": self.resume,
            "export": self.export is not None,
        }
        for name, is_asked in asked.items():
            if is_asked and self.folder is None:
                raise InputError(
                    "{name} needs a folder of checkpoints; name one with save_dir, such as "
                    "--save-dir runs/a",
                    name=name,
                )

    def resolved(self) -> CheckpointSettings:
        """Returns the same with absolute paths."""
        named = {name: getattr(self, name) for name in ("folder", "begin_from", "export")}
        return replace(self, **{name: path and path.absolute() for name, path in named.items()})


@dataclass(frozen=True)
class Validation:
    """Describes when a run is measured on text that it is not trained on.

    >>> Validation(every=5).held_out, Validation().held_out
    (64, 0)
    """

    every: int = 0
    """Steps between two measurements; 0 measures never, and holds nothing out."""
    sequences: int = 64
    """Sequences at the end of the text that are held out for it."""

    def __post_init__(self) -> None:
        require_at_least_zero("validate_every", self.every)
        require_positive("validate_sequences", self.sequences)

    @property
    def held_out(self) -> int:
        """How many sequences the run does not train on."""
        return self.sequences if self.every else 0
