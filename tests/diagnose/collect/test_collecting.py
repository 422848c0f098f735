"""What lies on hosts is brought whole, bounded and apart; a host that fails keeps nobody else's.

Stand-ins for ssh and srun run the very command that they are given, on this machine: the packing,
the streams and the folders are real, the way to another machine is not.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
import tarfile
from pathlib import Path

import pytest

from serried.diagnose.collect import collecting
from serried.diagnose.collect.collecting import Collection, collect
from serried.diagnose.collect.packing import LAST, pack
from serried.diagnose.collect.transport import (
    Asked,
    Source,
    by_srun,
    by_ssh,
    here,
    hosts_in,
    nodes_of,
)
from serried.errors import EnvironmentProblem, InputError

STUCK = ("bash", "-c", "head -c 700 /dev/zero; exec sleep 1000")


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Returns what a node has: a guard's file, a long log, a socket's like that is no file."""
    folder = tmp_path / "node" / "run"
    folder.mkdir(parents=True)
    (folder / "rank-00003.guard").write_bytes(b"g" * 5000)
    (folder / "restart-1").mkdir()
    (folder / "restart-1" / "rank-00003.stacks").write_text("Thread 0x1\n")
    (folder / "out.log").write_text("begin\n" + "line\n" * 60_000 + "the end\n")
    (folder / ".rank-00003.fr.json.77").write_text("half writ")
    os.mkfifo(folder / "pipe")
    return folder


def stand_in(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a program of this name on the PATH."""
    folder.mkdir(exist_ok=True)
    place = folder / name
    place.write_text(f"#!/bin/bash\n{script}\n")
    place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def brought(collection: Collection) -> dict[str, int]:
    folder = collection.folder
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("kernel.log", "nvidia-smi.txt")
    }


def test_a_folder_of_this_machine_is_brought_with_the_end_of_long_files(
    node: Path, tmp_path: Path
) -> None:
    found = collect([here(Asked((str(node),), most_file_mb=0.1))], tmp_path / "all")
    sizes = brought(found)
    assert sizes.pop("manifest.json")
    assert sizes == {
        "here/run/out.log": 104_857,
        "here/run/rank-00003.guard": 5000,
        "here/run/restart-1/rank-00003.stacks": 11,
    }
    assert (tmp_path / "all/here/run/out.log").read_text().endswith("line\nthe end\n")
    assert found.hosts[0].cut == ("run/out.log",)
    manifest = json.loads((tmp_path / "all/manifest.json").read_text())
    assert manifest["schema"] == "serried.collection/1"
    (log,) = [e for e in manifest["hosts"]["here"]["files"] if e["name"] == "run/out.log"]
    assert (log["bytes"], log["of"]) == (104_857, (node / "out.log").stat().st_size)


def test_a_host_that_holds_more_than_its_bound_gives_the_guards_files_first(
    node: Path, tmp_path: Path
) -> None:
    found = collect([here(Asked((str(node),), most_host_mb=0.1))], tmp_path / "all")
    assert set(brought(found)) == {
        "manifest.json",
        "here/run/rank-00003.guard",
        "here/run/restart-1/rank-00003.stacks",
    }
    assert found.hosts[0].left_out == 1


def test_hosts_by_ssh_lie_apart_and_one_that_does_not_answer_is_named(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'for host; do :; done; case "$*" in *node1*) echo "no route" >&2; exit 255;; esac\n'
    stand_in(tmp_path / "bin", "ssh", script + 'eval "$host"', monkeypatch)
    sources = by_ssh(["node0", "node1", "node2"], Asked((str(node),)))
    told: list[str] = []
    found = collect(sources, tmp_path / "all", lambda each: told.append(each.host))
    assert sorted(told) == ["node0", "node1", "node2"]
    assert [(each.host, bool(each.problem)) for each in found.hosts] == [
        ("node0", False),
        ("node1", True),
        ("node2", False),
    ]
    assert str(found.hosts[1].problem) == "nothing whole came: no route"
    assert (tmp_path / "all/node0/run/rank-00003.guard").exists()
    assert (tmp_path / "all/node2/run/rank-00003.guard").exists()
    assert sorted(p.name for p in (tmp_path / "all").iterdir()) == [
        "manifest.json",
        "node0",
        "node2",
    ]


def test_a_host_that_answers_and_then_hangs_is_left_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "PATIENCE_S", 0.2)
    found = collect([Source("node0", STUCK)], tmp_path / "all")
    assert str(found.hosts[0].problem) == "nothing whole came: nothing came for 0.2 s"
    assert [path.name for path in (tmp_path / "all").iterdir()] == ["manifest.json"]


def test_a_folder_that_a_host_does_not_have_is_named(node: Path, tmp_path: Path) -> None:
    found = collect([here(Asked((str(node), "/no/such/run")))], tmp_path / "all")
    assert found.hosts[0].missing == ("/no/such/run",)
    manifest = json.loads((tmp_path / "all/manifest.json").read_text())
    assert manifest["hosts"]["here"]["missing"] == ["/no/such/run"]


def test_nodes_of_a_slurm_job_are_asked_by_a_step_beside_it(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    stand_in(tmp_path / "bin", "squeue", "echo 'node[0-1]'", monkeypatch)
    stand_in(tmp_path / "bin", "scontrol", 'echo "$3" >&2; echo node0; echo node1', monkeypatch)
    skip = 'while [ "$1" != python3 ]; do shift; done; shift; exec python3 "$@"'
    stand_in(tmp_path / "bin", "srun", skip, monkeypatch)
    assert nodes_of("41") == ("node0", "node1")
    sources = by_srun(nodes_of("41"), "41", Asked((str(node),)))
    assert shlex.join(sources[0].command).startswith(
        "srun --jobid 41 --overlap --nodes=1 --ntasks=1 --quiet --nodelist node0 python3 - 16 512"
    )
    found = collect(sources, tmp_path / "all")
    assert not found.failed
    assert (tmp_path / "all/node1/run/rank-00003.guard").exists()


def test_a_stream_that_breaks_off_leaves_what_was_there_before(node: Path, tmp_path: Path) -> None:
    good = here(Asked((str(node),)))
    collect([good], tmp_path / "all")
    before = brought(Collection(tmp_path / "all"))
    cut = Source("here", ("bash", "-c", f"{shlex.join(good.command)} | head -c 12000"))
    found = collect([cut], tmp_path / "all")
    assert found.failed
    after = brought(found)
    assert {name: size for name, size in after.items() if name != "manifest.json"} == {
        name: size for name, size in before.items() if name != "manifest.json"
    }


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside"])
def test_a_member_that_would_lie_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        member = tarfile.TarInfo(name)
        tar.addfile(member, io.BytesIO())
    (tmp_path / "evil.tar").write_bytes(stream.getvalue())
    source = Source("evil", ("cat", str(tmp_path / "evil.tar")))
    found = collect([source], tmp_path / "all")
    assert "a file with the name" in str(found.hosts[0].problem)
    assert not (tmp_path / "outside").exists()


def test_links_in_a_stream_are_left_out(tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        last = tarfile.TarInfo(LAST)
        text = b'{"files": [], "left_out": 0}'
        last.size = len(text)
        tar.addfile(last, io.BytesIO(text))
    (tmp_path / "a.tar").write_bytes(stream.getvalue())
    found = collect([Source("a", ("cat", str(tmp_path / "a.tar")))], tmp_path / "all")
    assert not found.failed
    assert list((tmp_path / "all/a").iterdir()) == []


def test_the_packing_program_needs_nothing_of_serried(node: Path) -> None:
    stream = io.BytesIO()
    pack(1 << 20, 1 << 30, [str(node)], stream)
    stream.seek(0)
    with tarfile.open(fileobj=stream) as tar:
        assert tar.getnames()[-1] == LAST
    assert "serried." not in Path(pack.__code__.co_filename).read_text().replace("serried.diag", "")


def test_a_hostfile_is_read_with_slots_and_notes(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# ours\nnode0 slots=8\nnode1:4\n\n10.0.0.7 # spare\nnode0\n")
    assert hosts_in(path) == ("node0", "node1", "10.0.0.7")
    path.write_text("# nobody\n")
    with pytest.raises(InputError, match="names no host"):
        hosts_in(path)


@pytest.mark.parametrize("name", ["-oProxyCommand=touch x", "a b", "", "$(x)"])
def test_a_name_that_is_no_host_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="is not the name of a host"):
        by_ssh([name], Asked(("/run",)))


def test_what_cannot_be_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="not the number of a Slurm job"):
        by_srun(["a"], "41; rm", Asked(("/run",)))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentProblem, match="srun is not installed here"):
        collect(by_srun(["a"], "41", Asked(("/run",))), tmp_path / "all")
    with pytest.raises(EnvironmentProblem, match="Slurm does not answer"):
        nodes_of("41")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        collect([Source("here", (sys.executable,))], tmp_path / "file" / "all")
