"""What a run saves, where it begins again, and the held-out text that it is measured on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from serried.errors import InputError
from serried.runtime.job.option import (
    check_bounds,
    require_at_least_zero,
    require_positive,
    setting,
)


@dataclass(frozen=True)
class CheckpointSettings:
    """Describes a run's checkpoints; each is a folder of its own in ``folder``.

    Raises InputError for options that would do nothing without a folder.
    """

    folder: Path | None = setting(
        None,
        en="Folder to keep checkpoints in, each in a folder of its own.",
        zh="存检查点的文件夹，每个检查点一个子文件夹。",
        word="save_dir",
    )
    """Where checkpoints go; None keeps none."""
    every: int = setting(
        0,
        en="Steps between two checkpoints; 0 saves the last step only.",
        zh="每隔多少个 step 存一次；0 表示只存最后一个 step。",
        word="save_every",
        bound=require_at_least_zero,
    )
    """Steps between two; the last step is always kept. 0 keeps that alone."""
    last: int | None = setting(
        None,
        en="Checkpoints to keep, the newest ones; by default all.",
        zh="保留最新的多少个检查点；默认全部保留。",
        word="keep",
        bound=require_positive,
    )
    """How many of the newest stay; None keeps all."""
    resume: bool = setting(
        False,
        en="Go on from the newest checkpoint in --save-dir, if there is one.",
        zh="从 --save-dir 里最新的检查点继续，有的话。",
    )
    """Whether to go on from the newest in ``folder``; where there is none, the run begins anew."""
    begin_from: Path | None = setting(
        None,
        en="Begin from this checkpoint, which may lie in another folder.",
        zh="从这个检查点开始，它可以在别的文件夹里。",
        word="load",
    )
    """A checkpoint, or a folder of them, to begin from; a newer one in ``folder`` goes first."""
    on_error: Literal["stop", "continue"] = setting(
        "stop",
        en="What to do when a checkpoint cannot be written.",
        zh="检查点写不下去时怎么办。",
        word="on_save_error",
    )
    """What a run does when a checkpoint cannot be written."""
    export: Path | None = setting(
        None,
        en="Write the trained model into this file, as safetensors.",
        zh="把训练好的模型写进这个文件，格式是 safetensors。",
    )
    """Where the model goes at the end, as one safetensors file."""

    def __post_init__(self) -> None:
        check_bounds(self)
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

    every: int = setting(
        0,
        en="Steps between two measurements of the loss on held-out text; 0 for none.",
        zh="每隔多少个 step 在留出的文本上测一次 loss；0 表示不测。",
        word="validate_every",
        bound=require_at_least_zero,
    )
    """Steps between two measurements; 0 measures never, and holds nothing out."""
    sequences: int = setting(
        64,
        en="Sequences at the end of the text that are held out.",
        zh="文本末尾留出多少条序列。",
        word="validate_sequences",
        bound=require_positive,
    )
    """Sequences at the end of the text that are held out for it."""

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def held_out(self) -> int:
        """How many sequences the run does not train on."""
        return self.sequences if self.every else 0
