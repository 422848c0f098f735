"""Files that break off, are spoilt, enormous or made to harm: one sentence, and the page lives."""

from __future__ import annotations

import gzip
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serried.views.web.opening.desk import OpeningDesk
from tests.page import Open
from tests.views.web.opening.samples import FILES
from tests.views.web.served import served
from tests.views.web.workbench import Workbench

NOISE = bytes((i * 7919 + i // 3) % 256 for i in range(4096))


class Harm:
    """Pickles as a call of a program that makes the folder ``harmed``."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, ("harmed",)


def broken_off(data: bytes) -> bytes:
    return data[: 3 * len(data) // 5]


def spoilt(data: bytes) -> bytes:
    half = len(data) // 2
    return data[:half] + NOISE[: max(20, len(data) // 4)] + data[half:]


HOSTILE = {
    "deep.json": b'{"traceEvents":' + b"[" * 100_000,
    "bomb.json.gz": gzip.compress(b'{"traceEvents":[' + b" " * (64 << 20)),
    "<img src=x onerror=alert(1)>.json": b'{"schema":"serried.groups/1"}',
    "beyond.json": b'{"schema":"serried.groups/1","framework":"megatron","world_size":1e999}',
    "next year.json": b'{"schema":"serried.plan/9"}',
    "no check.json": b'{"schema":"serried.check/1","groups":[]}',
    "no diagnosis.json": b'{"schema":"serried.diagnosis/1","findings":[[]]}',
    "a list.json": b"[]",
    "noise": NOISE,
    "nothing": b"",
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(OpeningDesk()) as found:
        yield found


def chosen(bench: Workbench, path: Path) -> str:
    """Chooses a file as the dialog does; returns what the page complains of."""
    bench.page.set_input_files("#launch-files", str(path))
    bench.page.evaluate("serried.opened()")
    return bench.text("#alert").partition("\n")[0]


def require_alive(bench: Workbench) -> None:
    bench.open("view=layout&dims=tp&world_size=16&pp=1&lang=en")
    bench.fill(tp="8")
    assert bench.text("#alert") == "" and len(bench.read("groups()")["tp"]) == 2


def require_sentence(said: str, name: str) -> None:
    """A sentence names the file as it was given, and blames nobody else."""
    assert said.startswith(name), said
    assert "mistake in serried" not in said and "/tmp" not in said, said


@pytest.mark.parametrize("harm", [pytest.param(broken_off, marks=pytest.mark.soak), spoilt])
def test_a_damaged_file_of_each_kind_is_shown_as_far_as_it_goes_or_refused(
    page_of: Open, address: str, tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    bench = page_of(address, "lang=en")
    refused = 0
    for which, (_, _, made) in FILES.items():
        path = tmp_path / f"my {which}"
        path.write_bytes(harm(made(tmp_path)))
        said = chosen(bench, path)
        refused += bool(said)
        if said:
            require_sentence(said, path.name)
    assert refused > len(FILES) // 3
    require_alive(bench)


def test_a_file_that_is_made_to_harm_is_refused_in_one_sentence(
    page_of: Open, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bench = page_of(address, "lang=en")
    for name, data in HOSTILE.items():
        (tmp_path / name).write_bytes(data)
        require_sentence(chosen(bench, tmp_path / name), name)
    require_alive(bench)
    (tmp_path / "dump_rank_0").write_bytes(pickle.dumps({"entries": Harm()}, 2))
    assert chosen(bench, tmp_path / "dump_rank_0") == ""
    assert "a pickle may run any program, so it was not read" in bench.text("#centre")
    assert not (tmp_path / "harmed").exists()


def test_a_trace_larger_than_a_drop_may_be_is_refused_before_it_is_sent(
    page_of: Open, address: str, tmp_path: Path
) -> None:
    bench = page_of(address, "lang=en")
    sent: list[str] = []
    bench.page.on("request", lambda request: sent.append(request.url))
    with (tmp_path / "a week.json").open("wb") as file:
        event = b'{"ph":"X","name":"a","ts":1,"dur":1,"pid":0,"tid":0},'
        file.write(b'{"traceEvents":[' + event * 20_000)
        file.truncate(1 << 40)
    said = chosen(bench, tmp_path / "a week.json")
    assert said.startswith("a week.json holds 1048576 MB; drops take at most"), said
    assert "serried serve" in said
    assert not any("api/open?" in url for url in sent)
