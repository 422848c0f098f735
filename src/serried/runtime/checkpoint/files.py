"""How checkpoints are written and read: torch's own files, committed late and read with care.

write    ranks' files ──all there──> checkpoint.json ──> .metadata.tmp ──rename──> .metadata
read     .metadata, a pickle of torch's, by a reader that makes nothing but its own classes
"""

from __future__ import annotations

import os
import pickle
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.planner import SavePlan, SavePlanner
from torch.distributed.checkpoint.state_dict_loader import load as dcp_load
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from serried.errors import InputError
from serried.runtime.checkpoint.checkpoint import METADATA, Description


class Writer(FileSystemWriter):
    """Writes a checkpoint into a folder of its own; the first rank commits it at the end."""

    def __init__(self, folder: Path, description: Description) -> None:
        super().__init__(folder, overwrite=False)
        self._folder, self._description = folder, description

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Writes this rank's file; raises the system's own error where it refuses."""
        try:
            return super().write_data(plan, planner)
        except RuntimeError as error:
            # torch's writer tells of a wrong position in the file, not of what the system said.
            refused = _refusal(self._folder)
            if refused is None:
                raise
            raise refused from error

    def finish(self, metadata: Metadata, results: Any) -> None:
        """Describes the files, which are all there now, and commits by the rename of .metadata."""
        files = {each.name: each.stat().st_size for each in self._folder.glob("*.distcp")}
        replace(self._description, files=files).write(self._folder)
        super().finish(metadata, results)
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


PROBE_BYTES = 1 << 20


def _refusal(folder: Path) -> OSError | None:
    """Returns the error with which the system refuses to write into ``folder``, if it does."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error
    return None


class Reader(FileSystemReader):
    """Reads a checkpoint, making nothing from its metadata but what metadata is made of."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns which tensor lies where; raises InputError where that cannot be read."""
        metadata = metadata_of(Path(self.path))
        assert metadata.storage_meta is not None
        metadata.storage_meta.load_id = self.load_id
        return metadata


def metadata_of(folder: Path) -> Metadata:
    """Reads the metadata of the checkpoint in ``folder``; raises InputError where it is damaged."""
    try:
        with (folder / METADATA).open("rb") as file:
            found = _Unpickler(file).load()
        if not isinstance(found, Metadata) or not _are_plain(found):
            raise ValueError
    except Exception as error:  # a damaged pickle raises nearly anything
        raise InputError(
            "{file} of {path} is damaged or not torch's; begin from another checkpoint",
            file=METADATA,
            path=folder,
        ) from error
    return found


def _are_plain(metadata: Metadata) -> bool:
    """Tells whether all is tensors, in files of the folder itself."""
    names = {each.relative_path for each in metadata.storage_data.values()}
    # A name such as ../other or /etc/file would lead out of the folder.
    return all(Path(name).name == name for name in names) and all(
        isinstance(each, TensorStorageMetadata) for each in metadata.state_dict_metadata.values()
    )


class _Unpickler(pickle.Unpickler):
    """Makes the classes of torch's checkpoint metadata, and nothing else."""

    ROOMS: Mapping[str, tuple[str, ...]] = {
        "torch.distributed.checkpoint.metadata": (
            *("Metadata", "MetadataIndex", "StorageMeta", "TensorProperties"),
            *("TensorStorageMetadata", "ChunkStorageMetadata", "_MEM_FORMAT_ENCODING"),
        ),
        "torch.distributed.checkpoint.filesystem": ("_StorageInfo",),
        "torch.serialization": ("_get_layout",),
        "pathlib": ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"),
    }

    def find_class(self, module: str, name: str) -> Any:
        """Returns a class or function by its name, if metadata may hold it."""
        is_dtype = module == "torch" and isinstance(getattr(torch, name, None), torch.dtype)
        if is_dtype or (module, name) == ("torch", "Size") or name in self.ROOMS.get(module, ()):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def read_into(tensors: dict[str, Tensor], folder: Path, group: dist.ProcessGroup | None) -> None:
    """Reads the checkpoint in ``folder`` into ``tensors``; all ranks of ``group`` call it.

    ``group`` None reads in this process alone. Raises InputError where it cannot be read.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="torch.distributed is disabled")
            dcp_load(
                dict(tensors),
                storage_reader=Reader(folder),
                process_group=group,
                no_dist=group is None,
            )
    except CheckpointException as error:
        raise InputError(
            "checkpoint {path} cannot be read: {reason}; begin from another",
            path=folder,
            reason=reason_of(error),
        ) from error


def whole_tensors(folder: Path, prefix: str) -> dict[str, Tensor]:
    """Reads all tensors whose names begin so, whole, whatever layout wrote them; without prefix."""
    found = {
        name: torch.empty(each.size, dtype=each.properties.dtype)
        for name, each in metadata_of(folder).state_dict_metadata.items()
        if name.startswith(prefix) and isinstance(each, TensorStorageMetadata)
    }
    read_into(found, folder, None)
    return {name.removeprefix(prefix): tensor for name, tensor in found.items()}


def reason_of(error: BaseException) -> str:
    """Returns in a few words why a rank could not save or load: the system's own, if it spoke."""
    # torch's CheckpointException holds an error for each rank that failed: the lowest one's is
    # told.
    if isinstance(error, CheckpointException) and error.failures:
        first: Any = error.failures[min(error.failures)]
        error = first[0] if isinstance(first, tuple) else first
    chain: BaseException | None = error
    while chain is not None:
        if isinstance(chain, OSError) and chain.strerror:
            return chain.strerror
        chain = chain.__cause__ or chain.__context__
    return " ".join([f"{type(error).__name__}:", *str(error).strip().splitlines()[:1]])
