"""Hosts of network namespaces, each with files and an ssh server of its own, are collected from."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from serried.views.cli.main import run
from tests.runtime.hosts import Hosts, hosts, lacking

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
LACKING = lacking() or ("" if SSHD else "sshd, of Debian's package openssh-server")
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"this machine lacks {LACKING}")

CONFIG = """
AuthorizedKeysFile {key}.pub
HostKey {key}
ListenAddress {address}
LogLevel VERBOSE
PasswordAuthentication no
PidFile none
StrictModes no
UsePAM no
"""
CLIENT = """#!/bin/sh
exec ip netns exec {namespace} {ssh} -i {key} -o StrictHostKeyChecking=no \\
    -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o ConnectTimeout=2 "$@"
"""
RUN = "/run/sshd"
"""Where sshd parts its rights; each server sees one of its own."""


@contextmanager
def server(
    made: Hosts, host: int, key: Path, shared: Path, *, hangs: bool = False
) -> Iterator[None]:
    """Runs an ssh server on a host, on which ``shared`` is a folder of its own."""
    config = key.with_name(f"sshd-{host}")
    config.write_text(CONFIG.format(key=key, address=made.address(host)))
    own = shared.with_name(f"of-{host}")
    own.mkdir()
    (own / "rank.log").write_text(f"[rank{host}]: step 7\n")
    quoted = [shlex.quote(str(each)) for each in (own, shared)]
    script = (
        f"mount -t tmpfs none /run && mkdir {RUN} && mount --bind {' '.join(quoted)} && "
        f"exec {SSHD} -D -e -f {shlex.quote(str(config))}"
    )
    command = ["ip", "netns", "exec", made.name(host), "sh", "-c", script]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = []
            for line in process.stderr:
                told.append(line)
                if line.startswith("Server listening"):
                    break
            else:
                raise AssertionError("".join(told))
            threading.Thread(target=process.stderr.read, daemon=True).start()
            if hangs:  # its kernel still takes connections
                process.send_signal(signal.SIGSTOP)
            yield
        finally:
            process.kill()


def test_what_came_of_hosts_lies_apart_and_those_of_which_nothing_came_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    key, shared = tmp_path / "key", tmp_path / "run"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    shared.mkdir()
    (tmp_path / "bin").mkdir()
    with hosts(4) as made, ExitStack() as servers:
        for host in (0, 1, 3):
            servers.enter_context(server(made, host, key, shared, hangs=host == 3))
        client = tmp_path / "bin" / "ssh"
        ssh = shutil.which("ssh")
        client.write_text(CLIENT.format(namespace=made.name(0), ssh=ssh, key=key))
        client.chmod(0o755)
        monkeypatch.setenv("PATH", f"{client.parent}:{os.environ['PATH']}")
        hostfile = tmp_path / "hosts.txt"
        names = [*(made.address(host) for host in range(4)), "10.77.0.99"]
        hostfile.write_text("".join(f"{name} slots=8\n" for name in names))
        words = ["collect", str(shared), "-o", str(tmp_path / "all"), "--hostfile", str(hostfile)]
        code = run(words)
    out, err = capfd.readouterr()
    assert code == 1
    logs = {path.parent.parent.name: path.read_text() for path in tmp_path.glob("all/*/run/*.log")}
    assert logs == {names[host]: f"[rank{host}]: step 7\n" for host in (0, 1)}, err
    hosts_told = json.loads((tmp_path / "all" / "manifest.json").read_text())["hosts"]
    problems = {name: told["problem"] for name, told in hosts_told.items() if told["problem"]}
    assert "Connection refused" in problems.pop(names[2])
    assert "timed out during banner exchange" in problems.pop(names[3])
    away = problems.pop(names[4])
    assert "timed out" in away or "No route to host" in away
    assert not problems
    assert "from 2 of 5 hosts" in out
    assert f"{names[2]}: nothing whole came: ssh: connect to host {names[2]} port 22" in err
