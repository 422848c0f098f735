"""A run's checkpoints: begun from one, and writing one after another while it goes on.

    main thread     step ─ step ─┬─ copy ─ step ─ step ─ step ─┬─ told: committed
    save thread                  └── write ── commit ──────────┘

Tensors are copied before the next step changes them, and written beside it; a save that is still
under way when the next is due is waited for. Old ones go when a new one is committed, first their
commit and then their files, so that what is half removed is no checkpoint either.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_saver import async_save

from serried.errors import EnvironmentProblem
from serried.finding import said
from serried.runtime.checkpoint.checkpoint import (
    METADATA,
    Description,
    committed,
    describe,
    leftovers,
    require_fits,
    source_of,
    step_folder,
)
from serried.runtime.checkpoint.files import Writer, metadata_of, read_into, reason_of
from serried.runtime.checkpoint.tensors import RunTensors
from serried.runtime.job.report import Progress, Resumed, Saved
from serried.runtime.job.settings import CheckpointSettings
from serried.runtime.training.loop_state import LoopState


@dataclass(frozen=True)
class _Pending:
    """Holds a save that is under way."""

    step: int
    folder: Path
    stall_ms: float
    future: Future[Any]


class Checkpoints:
    """Reads and writes the checkpoints of one rank; all ranks call it together."""

    def __init__(
        self,
        tensors: RunTensors,
        state: LoopState,
        checkpoints: CheckpointSettings,
        describe_run: Callable[[], Description],
        *,
        steps: int,
        timeout_s: float,
    ) -> None:
        """Prepares them for a run of ``steps``, of which ``describe_run`` says what they say."""
        self.checkpoints, self.steps, self._described = checkpoints, steps, describe_run
        self.tensors, self.state = tensors, state
        self.pending: _Pending | None = None
        self.group: dist.ProcessGroup | None = None
        if self.checkpoints.folder or self.checkpoints.begin_from:
            # Saving talks from its own thread, so over a group of its own; files need no GPU.
            timeout = timedelta(seconds=timeout_s)
            self.group = dist.new_group(backend="gloo", timeout=timeout)

    def begin(self, tell: Progress) -> None:
        """Takes over the checkpoint that the run is to begin from, if there is one.

        Raises InputError where it is of another model or text, or cannot be read.
        """
        if self.group is None:
            return
        source = source_of(self.checkpoints) if dist.get_rank() == 0 else None
        chosen = [str(source) if source else None]
        dist.broadcast_object_list(chosen, src=0, group=self.group)
        if chosen[0] is None:
            return
        folder = Path(chosen[0])
        found = describe(folder)
        own = self._described()
        require_fits(folder, found, own, self.steps)
        has_places = found.layout == own.layout
        tensors = self.tensors.tensors(random=has_places)
        names = metadata_of(folder).state_dict_metadata
        # A run on another kind of device has no random state of this one's.
        tensors = {
            name: tensor
            for name, tensor in tensors.items()
            if name in names or not name.startswith("random.")
        }
        read_into(tensors, folder, self.group)
        self.tensors.take_over(tensors)
        self._take_over(found)
        tell(Resumed(found.step, str(folder)))

    def after_step(self, tell: Progress) -> None:
        """Begins to save where a save is due, and tells of one that has ended."""
        if self.pending and self.pending.future.done():
            self._settle(tell)
        # One save is under way at a time: the next one waits for it.
        if self._is_due():
            self._settle(tell)
            self._start()

    def finish(self, tell: Progress) -> None:
        """Waits for a save that is under way."""
        self._settle(tell)

    def _is_due(self) -> bool:
        step, every = self.state.step, self.checkpoints.every
        is_last = step == self.steps
        return self.checkpoints.folder is not None and (
            is_last or bool(every and step % every == 0)
        )

    def _start(self) -> None:
        """Copies the tensors and has them written; returns before they are."""
        assert self.checkpoints.folder is not None and self.group is not None
        begun = time.monotonic()
        folder = step_folder(self.checkpoints.folder, self.state.step)
        if dist.get_rank() == 0 and not (folder / METADATA).exists():
            # What a run left that ended while it wrote; never a committed checkpoint.
            shutil.rmtree(folder, ignore_errors=True)
        dist.barrier(self.group)
        saved = async_save(
            self.tensors.tensors(random=True),
            storage_writer=Writer(folder, self._description()),
            process_group=self.group,
        )
        assert isinstance(saved, Future)
        stall_ms = (time.monotonic() - begun) * 1e3
        self.pending = _Pending(self.state.step, folder, stall_ms, saved)

    def _settle(self, tell: Progress) -> None:
        """Waits for the save under way, and says what came of it.

        Raises EnvironmentProblem where it failed and the run is to stop then.
        """
        pending, self.pending = self.pending, None
        if pending is None:
            return
        try:
            pending.future.result()
        except (CheckpointException, Exception) as error:
            self._give_up(pending, reason_of(error), tell, error)
            return
        if dist.get_rank() == 0:
            self._prune()
        tell(Saved(pending.step, str(pending.folder), pending.stall_ms))

    def _give_up(
        self, pending: _Pending, reason: str, tell: Progress, error: BaseException
    ) -> None:
        if dist.get_rank() == 0:
            shutil.rmtree(pending.folder, ignore_errors=True)
        if self.checkpoints.on_error == "continue":
            tell(Saved(pending.step, str(pending.folder), pending.stall_ms, reason))
            return
        kept = committed(pending.folder.parent)
        raise EnvironmentProblem(
            "checkpoint {path} could not be written: {reason}; {last}. Make room and --resume, or "
            "let the run go on without it: --on-save-error continue",
            path=pending.folder,
            reason=reason,
            last=said("{folder} stays", folder=kept[-1].name)
            if kept
            else said("there is no earlier one"),
        ) from error

    def _prune(self) -> None:
        """Removes all but the newest ``last`` checkpoints, and halves that earlier runs left."""
        assert self.checkpoints.folder is not None
        kept = committed(self.checkpoints.folder)
        old = kept[: -self.checkpoints.last] if self.checkpoints.last else []
        # Without its metadata a folder is no checkpoint any more, so a removal that is cut short
        # leaves nothing that looks like one.
        for each in old:
            (each / METADATA).unlink(missing_ok=True)
        for each in (*old, *leftovers(self.checkpoints.folder)):
            shutil.rmtree(each, ignore_errors=True)

    def _description(self) -> Description:
        scale, state = self.state.scale, self.state
        return replace(
            self._described(),
            step=state.step,
            updates=state.updates,
            samples=state.samples,
            loss_scale=(scale.value, scale.good) if scale else None,
        )

    def _take_over(self, found: Description) -> None:
        state = self.state
        state.step, state.updates, state.samples = found.step, found.updates, found.samples
        if state.scale and found.loss_scale:
            state.scale.value, state.scale.good = found.loss_scale
