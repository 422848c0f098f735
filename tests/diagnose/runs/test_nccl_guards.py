"""What a guard left of ranks on NCCL, one injected fault a run: the root, and nobody else."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

import benchmarks.diagnosis
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

ARCHIVE = Path(benchmarks.diagnosis.__file__).parent / "guarded_nccl.tar.gz"
TOLD = {
    "nccl_sleep_00": "stuck_in_user_code",
    "nccl_wrong_size_08": "mismatch_size",
    "nccl_wrong_dtype_00": "mismatch_dtype",
    "nccl_swapped_groups_01": "swapped_groups",
    "nccl_send_to_the_wrong_peer_02": "wrong_peer",
    "nccl_kill_9_00": "dead",
    "nccl_sigstop_00": "stopped",
    "nccl_exception_01": "exception",
    "nccl_stuck_loader_01": "stuck_in_user_code",
    "nccl_stuck_checkpoint_00": "stuck_in_user_code",
    "nccl_gpu_out_of_memory_400": "gpu_oom",
    "nccl_kill_9_400": "dead",
    "nccl_slow_start_401": "init_rendezvous",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guarded")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize(("name", "kind"), TOLD.items())
def test_the_root_is_named_though_calls_of_nccl_come_back(name: str, kind: str, runs: Path) -> None:
    truth = json.loads((runs / "cases.json").read_text("utf-8"))
    found = diagnosed(gather([runs / name]))
    first, roots = found.causes[0], tuple(truth[name]["root_ranks"])
    assert (first.kind, first.ranks) == (kind, roots or None)
    assert {rank for cause in found.causes for rank in cause.ranks or ()} <= {
        *truth[name]["root_ranks"]
    }


def test_every_run_of_the_archive_is_read(runs: Path) -> None:
    assert json.loads((runs / "cases.json").read_text("utf-8")).keys() == TOLD.keys()
