"""States of a training with Accelerate, a folder for each, that a kill cannot endanger.

out/state-000003         whole: it got its name once all of it was there
out/state-000006.part    being saved, or left by a run that was killed as it saved
"""

from __future__ import annotations

import shutil
from pathlib import Path

from accelerate import Accelerator


def begin(accelerator: Accelerator, folder: Path, *, resume: bool) -> None:
    """Loads the newest state to ``resume`` from; ends the program where one is not asked for."""
    state = newest(folder)
    if state and not resume:
        raise SystemExit(f"{state} is of an earlier run; give --resume, or another --out")
    if state:
        accelerator.load_state(str(state))


def save(accelerator: Accelerator, folder: Path, step: int) -> None:
    """Saves the state of all ranks; all of them call it."""
    whole = folder / f"state-{step:06}"
    part = whole.with_suffix(".part")
    if accelerator.is_main_process:
        shutil.rmtree(part, ignore_errors=True)
    accelerator.wait_for_everyone()
    accelerator.save_state(str(part))
    accelerator.wait_for_everyone()  # the last rank has written its part
    if accelerator.is_main_process:
        part.rename(whole)


def newest(folder: Path) -> Path | None:
    """Returns the newest whole state; None where there is none."""
    whole = [path for path in folder.glob("state-*") if path.suffix != ".part"]
    return max(whole, default=None, key=lambda path: int(path.name.removeprefix("state-")))
