"""The merge on Ray makes the same bytes as the merge here; the cluster is real, of two cores."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from serried.errors import EnvironmentProblem, InputError
from serried.trace.merge.ray import merge_store_on_ray
from serried.trace.merge.store import merge_store
from tests.trace.merge.test_store import files
from tests.trace.recorded_run import Clock, Run

RUN = Run(pp=4, dp=4, num_microbatches=4)
CLOCKS = [Clock("a")] * 8 + [Clock("b", late_ns=3_000_000)] * 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pyarrow")
    return RUN.write(tmp_path_factory.mktemp("ray") / "run", clocks=CLOCKS, only=range(15))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A Ray of this machine, which starts in some seconds."""
    ray = pytest.importorskip("ray", reason="Ray is not installed; pip install 'serried[ray]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")  # else a token is written into the home
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


def test_a_cluster_that_is_not_there_is_said(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="Ray is not installed; pip install 'serried[ray]'")
    monkeypatch.setenv("RAY_ADDRESS", "nowhere")
    with pytest.raises(EnvironmentProblem) as caught:
        merge_store_on_ray([folder], tmp_path / "run.store")
    assert str(caught.value).startswith("Ray cannot be reached at nowhere: ")


@pytest.mark.usefixtures("cluster")
def test_ray_makes_the_same_bytes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    given = [Path("run")]  # workers find it although they run elsewhere
    here = merge_store(given, tmp_path / "here")
    there = merge_store_on_ray(given, tmp_path / "there")
    assert files(tmp_path / "here") == files(tmp_path / "there")
    assert (here.messages, here.alignment) == (there.messages, there.alignment)
    assert len(files(tmp_path / "there")) == 3


@pytest.mark.usefixtures("cluster")
def test_a_refusal_on_ray_is_the_same_sentence(tmp_path: Path) -> None:
    folder = Run(pp=2).write(tmp_path / "run")
    path = folder / "rank-00001.spans"
    damaged = bytearray(path.read_bytes())
    damaged[4096 + 32] = 200  # the kind of its first span
    path.write_bytes(damaged)
    told = []
    for merged in (merge_store, merge_store_on_ray):
        with pytest.raises(InputError) as caught:
            merged([folder], tmp_path / "run.store")
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert told[0].startswith(f"{path} is damaged, or of a newer serried: its span 0 ")
    assert not (tmp_path / "run.store").exists()


def test_without_ray_the_sentence_says_how_to_get_it(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EnvironmentProblem) as caught:
        merge_store_on_ray([folder], tmp_path / "run.store")
    assert str(caught.value) == "--engine ray needs Ray; pip install 'serried[ray]' brings it"
