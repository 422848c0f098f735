"""Checkpoints on disk: a folder for each step, what it says of itself, and whether it is whole.

    runs/a/step-000040/
        __0_0.distcp …     what each rank wrote, by torch.distributed.checkpoint
        checkpoint.json    the step, the model, and each file's size (Description)
        .metadata          which tensor lies where; written last, by a rename: the commit

A folder without ``.metadata`` was never committed: its run ended while it was written. No folder
is ever written to again. This module needs no torch, so that a run is refused before it starts.
"""

from __future__ import annotations

import importlib.util
import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from serried.errors import EnvironmentProblem, InputError, listed
from serried.finding import said
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.job.settings import CheckpointSettings, TrainSettings
from serried.runtime.training.tokens import text_of

SCHEMA = "serried.checkpoint/1"
METADATA = ".metadata"
DESCRIPTION = "checkpoint.json"
STEP = re.compile(r"step-(\d{6,})")

SHAPING = ("layers", "hidden", "heads", "kv_heads", "experts", "tie")
"""Sizes of the model that its weights, or their meaning, depend on; ``top_k`` with experts."""


@dataclass(frozen=True)
class Description:
    """Says what a checkpoint holds, beside its tensors."""

    step: int
    """Steps done."""
    updates: int
    samples: int
    loss_scale: tuple[float, int] | None
    """float16's loss scale, and how many updates it has been good for."""
    model: dict[str, Any]
    """The model's sizes, which a run must share to go on from here."""
    text: dict[str, int]
    """Says which text sample n is: ``bytes`` or ``tokens``, ``seq_len``, ``held_out``, ``seed``."""
    layout: dict[str, Any]
    """Sizes and order; random states fit only ranks that were placed the same."""
    files: dict[str, int]
    """Bytes of each file beside this one."""

    def write(self, folder: Path) -> None:
        """Writes the description into ``folder``."""
        text = json.dumps({"schema": SCHEMA} | asdict(self), indent=1)
        (folder / DESCRIPTION).write_text(text, encoding="utf-8")


def step_folder(folder: Path, step: int) -> Path:
    """Returns the checkpoint of ``step`` under ``folder``.

    >>> step_folder(Path("runs/a"), 40).as_posix()
    'runs/a/step-000040'
    """
    return folder / f"step-{step:06}"


def committed(folder: Path) -> list[Path]:
    """Returns the committed checkpoints under ``folder``, oldest first."""
    return [each for each in _steps(folder) if (each / METADATA).is_file()]


def leftovers(folder: Path) -> list[Path]:
    """Returns what runs left that ended while they saved, and a newer commit has made useless."""
    kept = committed(folder)
    steps = _steps(folder)
    return [each for each in steps[: steps.index(kept[-1])] if each not in kept] if kept else []


def _steps(folder: Path) -> list[Path]:
    try:
        found = [each for each in folder.iterdir() if STEP.fullmatch(each.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=lambda each: int(each.name.removeprefix("step-")))


def source_of(checkpoints: CheckpointSettings) -> Path | None:
    """Returns the checkpoint that a run begins from; None begins anew.

    Raises InputError when a checkpoint asked for is not there, or one is that would be
    written again.
    """
    kept = committed(checkpoints.folder) if checkpoints.folder else []
    if kept and not checkpoints.resume:
        raise InputError(
            "{folder} already holds checkpoints up to {newest}; add --resume to go on from it, or "
            "choose another folder",
            folder=checkpoints.folder,
            newest=kept[-1].name,
        )
    # What the folder holds goes before begin_from: a run that was stopped goes on from where it
    # was.
    if kept:
        return kept[-1]
    return find(checkpoints.begin_from) if checkpoints.begin_from else None


def find(path: Path) -> Path:
    """Returns the checkpoint at ``path``, or the newest in it.

    Raises InputError when there is none.
    """
    if (path / METADATA).is_file():
        return path
    inside = committed(path)
    if inside:
        return inside[-1]
    beside = committed(path.parent) if STEP.fullmatch(path.name) else []
    if beside:
        raise InputError(
            "{path} is no committed checkpoint: it has no {metadata}; the newest beside it that is "
            "one: {newest}",
            path=path,
            metadata=METADATA,
            newest=beside[-1],
        )
    raise InputError(
        "{path} holds no committed checkpoint, which is a folder such as step-000040 with "
        "{metadata} in it; give one, or a folder of them",
        path=path,
        metadata=METADATA,
    )


def describe(path: Path) -> Description:
    """Reads what the committed checkpoint at ``path`` says of itself, and sees that it is whole.

    Raises InputError when it is torn, or none of ours.
    """
    try:
        read = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        if not isinstance(read, dict) or read.pop("schema", None) != SCHEMA:
            raise ValueError
        _require_kinds(read)
        description = Description(**read)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            "{path} is not a checkpoint of this serried: its {file} is missing or says something "
            "else; {cure}",
            path=path,
            file=DESCRIPTION,
            cure=_cure(path),
        ) from error
    _require_whole(path, description)
    return description


KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("step", "updates", "samples"), int),
    **dict.fromkeys(("model", "text", "layout", "files"), dict),
    "loss_scale": (list, type(None)),
}


def _require_kinds(read: dict[str, Any]) -> None:
    """Raises ValueError unless each field is there and of its kind."""
    for each in fields(Description):
        if not isinstance(read.get(each.name, KINDS), KINDS[each.name]):
            raise ValueError(each.name)


def _require_whole(path: Path, description: Description) -> None:
    for name, wanted in description.files.items():
        # The names come from a file: only what lies in the folder itself is looked at.
        file = path / Path(name).name
        found = file.stat().st_size if file.is_file() else 0
        if found != wanted:
            raise InputError(
                "{path} is torn: {file} has {found} of the {wanted} bytes that were written; "
                "{cure}",
                path=path,
                file=name,
                found=found,
                wanted=wanted,
                cure=_cure(path),
            )


def _cure(path: Path) -> Any:
    """Returns what to do about a checkpoint that cannot be read."""
    older = [each for each in committed(path.parent) if each != path]
    if older:
        return said("remove it to begin from {older}", older=older[-1].name)
    return said("remove it to begin anew")


def description_of(settings: TrainSettings) -> Description:
    """Returns what the checkpoints of a run say of it, before its first step.

    Raises InputError when the text is missing.
    """
    return Description(
        step=0,
        updates=0,
        samples=0,
        loss_scale=None,
        model=_shape(settings),
        text={
            "tokens" if settings.has_tokens else "bytes": text_of(settings).num_tokens,
            "seq_len": settings.model.seq_len,
            "held_out": settings.validation.held_out,
            "seed": settings.seed,
        },
        layout={
            "world_size": settings.world_size,
            "order": settings.layout.order,
            **settings.layout.sizes,
            "schedule": settings.pipeline.name,
            "sequence_parallel": settings.sequence_parallel,
        },
        files={},
    )


def _shape(settings: TrainSettings) -> dict[str, Any]:
    model = settings.model
    if isinstance(model, ConfigModel):
        return {"architecture": model.architecture, "config": json.loads(model.config)}
    shape = {name: getattr(model, name) for name in SHAPING} | {"kv_heads": model.num_kv_heads}
    return shape | ({"top_k": model.top_k} if model.experts else {})


def require_fits(path: Path, found: Description, own: Description, steps: int) -> None:
    """Raises InputError when the run at hand is of another model, or reads another text.

    ``own`` is what its checkpoints would say, and ``steps`` how many it is to have done.
    """
    if found.model != own.model:
        raise InputError(
            "{path} is of another model: it has {found}, and this run {wanted}; give it the "
            "checkpoint's sizes, or another folder",
            path=path,
            found=_differing(_flat(found.model), _flat(own.model)),
            wanted=_differing(_flat(own.model), _flat(found.model)),
        )
    if found.text != own.text:
        raise InputError(
            "{path} was trained on other text: it has {found}, and this run {wanted}; the place "
            "it stopped at means nothing there, so give it the same",
            path=path,
            found=_differing(found.text, own.text),
            wanted=_differing(own.text, found.text),
        )
    if found.step >= steps:
        raise InputError(
            "{path} has done {step} steps, and the run is to end after {steps}; give more steps, "
            "such as --steps {more}",
            path=path,
            step=found.step,
            steps=steps,
            more=2 * found.step,
        )


def _flat(model: dict[str, Any]) -> dict[str, Any]:
    """Returns a model's sizes; of one with a config its architecture, and then what that says."""
    config = model.get("config")
    if not isinstance(config, dict):
        return model
    return {key: each for key, each in model.items() if key != "config"} | config


def _differing(one: dict[str, Any], other: dict[str, Any]) -> Any:
    return listed(f"{key}={value}" for key, value in one.items() if other.get(key) != value)


def require_safetensors() -> None:
    """Raises EnvironmentProblem where safetensors, which an export needs, is not installed."""
    if importlib.util.find_spec("safetensors") is None:
        raise EnvironmentProblem(
            "an export needs the safetensors package, which is not installed; install it with: "
            "pip install 'serried[export]'"
        )
