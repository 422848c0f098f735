"""``serried serve``: its address, and the sentence for each thing that keeps it from starting."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import Call
from tests.trace.recorded_run import Run


@contextmanager
def serving(*words: str) -> Iterator[str]:
    """Runs ``serried serve`` in a process of its own and yields the address that it prints."""
    code = "from serried.views.cli.main import main; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", "--no-open", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            yield re.sub(r"^serried workbench: |\n", "", server.stdout.readline())
        finally:
            server.terminate()


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def test_it_prints_an_address_that_answers(tmp_path: Path) -> None:
    Run(pp=2, num_microbatches=2).write(tmp_path / "run")
    with serving("--trace", str(tmp_path / "run")) as address:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
        assert "<title>serried</title>" in get(address)
        assert '"name":"run"' in get(f"{address}api/traces")


def test_on_all_addresses_it_makes_a_token_and_asks_for_it() -> None:
    with serving("--host", "0.0.0.0") as address:
        found = re.fullmatch(r"http://[^:/]+:(\d+)/\?token=([\w-]{32,})", address)
        assert found
        local = f"http://127.0.0.1:{found[1]}/api/traces"
        with pytest.raises(urllib.error.HTTPError, match="403"):
            get(local)
        asking = urllib.request.Request(local, headers={"Authorization": f"token {found[2]}"})
        with urllib.request.urlopen(asking, timeout=60) as answer:
            assert answer.status == 200


def test_a_token_may_be_chosen() -> None:
    with serving("--token", "mine") as address:
        assert address.endswith("/?token=mine")


def test_a_port_in_use_is_one_sentence(serried: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = serried("serve", "--no-open", "--port", str(port))
    assert answer.code == 3
    assert re.fullmatch(
        rf"serried: port {port} is in use; (\d+) is free: add --port \1\n", answer.err
    )


def test_a_folder_without_a_trace_is_one_sentence(serried: Call, tmp_path: Path) -> None:
    answer = serried("serve", "--no-open", "--trace", str(tmp_path))
    assert answer.code == 2
    assert answer.err.startswith(f"serried: {tmp_path} holds no rank-*.spans files")


def test_a_port_that_is_no_number_is_one_sentence(serried: Call) -> None:
    answer = serried("serve", "--port", "x")
    assert answer.code == 2
    assert answer.err == "serried: --port takes a whole number, such as 16; it got 'x'\n"


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_a_missing_extra_is_named_with_what_installs_it(
    package: str, serried: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("serried.views.web")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Hidden(package), *sys.meta_path])
    answer = serried("serve")
    assert answer.code == 3
    assert answer.err == (
        f"serried: the workbench needs {package}, which is not installed; "
        "pip install 'serried[web]' adds it\n"
    )


class Hidden:
    """Finds no module of one package, as if it were not installed."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.split(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
