"""What a file is, by what it holds: renamed, cut off, packed or hostile, of every kind."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.limits import SAMPLE_BYTES
from serried.schemas import schema_names
from serried.trace.model.record import MAGIC
from serried.views.web.opening.kinds import NAMES, TABS, Kind
from serried.views.web.opening.recognise import BINARY, kind_of
from serried.views.web.opening.sample import Sample, sample_of
from tests.package import ROOT
from tests.views.web.opening.samples import FILES, LOG

LAUNCH_FILES = sorted((Path(__file__).parents[3] / "launch" / "files").iterdir())
SHORT = {"script", "hostfile", "stacks", "dump", "log"}
"""Files so short that half of them may be anything."""


def of(data: bytes, name: str = "file", size: int | None = None) -> Sample:
    return Sample(name, len(data) if size is None else size, data[: SAMPLE_BYTES.most])


@pytest.mark.parametrize("which", FILES)
def test_a_file_is_recognised_whatever_it_is_called(which: str, tmp_path: Path) -> None:
    kind, name, make = FILES[which]
    data = make(tmp_path)
    assert kind_of(of(data, name)) is kind
    assert kind_of(of(data, "download (1)")) is kind
    assert kind_of(of(data, "photo.png")) is kind


@pytest.mark.parametrize("which", sorted(FILES.keys() - SHORT))
def test_a_file_that_breaks_off_is_still_what_it_is(which: str, tmp_path: Path) -> None:
    kind, _, make = FILES[which]
    data = make(tmp_path)
    assert kind_of(of(data[: len(data) // 2], "cut")) is kind


@pytest.mark.parametrize("which", FILES)
def test_every_kind_has_a_tab_and_a_name_that_is_said(which: str) -> None:
    kind = FILES[which][0]
    assert kind in TABS
    assert kind in NAMES


def test_a_file_stands_for_every_kind_that_is_one_file() -> None:
    several = {Kind.STORE, Kind.PADDLE_RECORDS, Kind.BESIDE}
    assert {kind for kind, _, _ in FILES.values()} == {*Kind} - several


def test_a_recording_is_known_by_the_mark_that_it_is_written_with() -> None:
    assert (MAGIC, Kind.RECORDING) in BINARY


@pytest.mark.parametrize("path", LAUNCH_FILES, ids=lambda path: path.name)
def test_launch_files_that_people_use_are_none_of_the_others(path: Path) -> None:
    if path.name == "hosts.txt":  # names of hosts alone, which only a launcher can tell
        pytest.skip("no launch file by itself")
    expected = Kind.HOSTFILE if path.name == "ds_hosts" else Kind.LAUNCH
    assert kind_of(sample_of(path)) is expected
    assert kind_of(Sample("x.txt", path.stat().st_size, path.read_bytes())) in (
        (expected, Kind.LAUNCH) if not path.name.endswith(".py.txt") else (Kind.LAUNCH,)
    )


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "file is empty"),
        (b"PK\x03\x04\0\0\0\0", "file is a zip archive; unpack it first (unzip file)"),
        (b"\x28\xb5\x2f\xfd\0\0", "file is packed by zstd; unpack it first (zstd -d file)"),
        (b"\0" * 257 + b"ustar\0", "file is a tar archive; unpack it first (tar -xf file)"),
        (
            b"\x89PNG\r\n\0\0",
            "file is a picture, which serried does not read; serried opens launch",
        ),
        (
            b'\x10\0\0\0\0\0\0\0{"a":{}}',
            "file holds weights, which no tab shows; serried plan --model config.json plans",
        ),
        (
            b"\x07\0\x01\xff" * 99,
            "file is binary and nothing that serried reads; serried opens launch",
        ),
        (b"Dear reader,\nhello.\n", "file is text, but nothing that serried reads; serried opens"),
        (b'{"some": "thing", "else": 1}', "file is text, but nothing that serried reads"),
        (b"[" * 200_000, "file is text, but nothing that serried reads"),
        (b'{"a":' * 100_000, "file is text, but nothing that serried reads"),
        (
            b'{"schema": "serried.search/1"}',
            "file is a document of serried (serried.search) that no tab shows; serried search",
        ),
        (
            b'{"schema": "serried.card/1"}',
            "file is a document of serried (serried.card) that no tab shows; serried explain WORD",
        ),
        (
            b"PK\x03\x04" + b"\0" * 26 + b"model/data.pklPK",
            "file is a checkpoint of PyTorch, which serried does not read",
        ),
        (
            pickle.dumps({"segments": [], "device_traces": [[]]}),
            "file is a memory snapshot of PyTorch, which serried does not read",
        ),
        (
            b"\n<!DOCTYPE html>\n<html></html>",
            "file is a page of HTML, as serried report writes one; open it in your browser",
        ),
        (
            gzip.compress(b"\0\x01\x02" * 50, mtime=0),
            "file is binary and nothing that serried reads",
        ),
        (b"\x1f\x8b" + b"\xff" * 40, "file is packed by gzip, but damaged at its start"),
        (b"\x80\x04cos\nsystem\n(S'ls'\ntR.\0", "file is binary and nothing that serried reads"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        kind_of(of(data))
    assert str(refused.value).startswith(sentence)


def test_a_file_of_a_terabyte_is_recognised_by_its_beginning() -> None:
    assert kind_of(Sample("x", 1 << 40, b'{"traceEvents": [' + b" " * 4000)) is Kind.EVENTS
    assert kind_of(Sample("x", 1 << 40, LOG * 1000)) is Kind.LOG


@pytest.mark.parametrize("which", FILES)
def test_a_gigabyte_of_each_kind_is_told_by_its_beginning(which: str, tmp_path: Path) -> None:
    kind, name, make = FILES[which]
    sample = of(make(tmp_path), name, size=1 << 30)
    if kind is Kind.LAUNCH:
        with pytest.raises(InputError, match="a launch file holds at most 1 MB"):
            kind_of(sample)
    else:
        assert kind_of(sample) is kind


def test_a_gigabyte_of_nothing_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "hole"
    with path.open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(InputError, match="hole is binary and nothing that serried reads"):
        kind_of(sample_of(path))


def test_a_bomb_of_gzip_is_unpacked_no_further_than_a_sample() -> None:
    bomb = gzip.compress(b"\0" * (64 << 20))
    assert len(of(bomb).start) <= SAMPLE_BYTES.most


@pytest.mark.parametrize("name", schema_names())
def test_every_document_of_serried_opens_or_names_the_command_that_shows_it(name: str) -> None:
    sample = of(b'{"schema": "%s"}' % name.encode())
    try:
        assert kind_of(sample) in (*TABS, Kind.BESIDE)
    except InputError as refused:
        assert "that no tab shows; serried " in str(refused)
        assert str(refused).endswith(" shows it")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "step,loss,lr\n0,2.5,1e-4\n1,2.4,1e-4\n",
            "file holds a table of losses, which no tab shows; serried diagnose LOG reads losses",
        ),
        ("step loss\n0 2.5\n1 2.4\n2 nan\n", "file holds a table of losses, which no tab shows"),
        ('{"log_history": [{"loss": 2}]}', "file holds the state of a trainer, which no tab shows"),
        (
            "operation,ranks,size_bytes,busbw_bytes_per_s\nall_reduce,8,1024,3e10\n",
            "file holds a table of bus bandwidths, which no tab shows; serried collective "
            "all-reduce --busbw FILE reads what serried check --busbw FILE writes",
        ),
        (
            "model,gpu,tp,pp,step_s\nllama3-8b,h100,2,4,1.5\n",
            "file holds a table of steps, which no tab shows; serried plan --calibrate file takes",
        ),
        (
            '{"trem": 1.7, "tadd": 2.2, "tori": 2.1, "tideal": 1.8}',
            "file holds figures of StragglerAnalysis, which no tab shows; serried trace stats FILE "
            "reads the table (.parquet)",
        ),
        (
            '[mine]\ngpu = "h100"\ngpus_per_node = 8\n',
            "file holds a cluster, which no tab shows; serried plan --cluster file takes it",
        ),
        ('{"text": "Once"}\n{"text": "Twice"}\n', "file holds text to train on, which no tab"),
        ('{"cells": [], "nbformat": 4}', "file holds a notebook, which no tab shows; jupyter lab"),
        ('{"metadata": {}, "weight_map": {"a": "b"}}', "file holds weights, which no tab shows"),
        ("# Title\n\n```sh\ntorchrun train.py\n```\n", "file is a page of Markdown; open the"),
        ("name,age\nAnn,7\nBo,8\n", "file is a table, which serried does not read; serried opens"),
        ("// a\nimport { x } from './x.js';\nexport const y = x;\n", "file is a program, which"),
    ],
)
def test_what_another_command_reads_is_refused_with_it(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        kind_of(of(text.encode()))
    assert str(refused.value).startswith(sentence)


def test_events_of_tensorboard_are_refused_with_what_shows_them() -> None:
    data = (
        b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\x80\x11\x1a\x8c\xd9\x41\x1a\rbrain.Event:2\0"
    )
    with pytest.raises(InputError, match=r"file holds events of TensorBoard.*tensorboard --logdir"):
        kind_of(of(data))


@pytest.mark.parametrize(
    "line", ['{"step": 1, "loss": 2.5}', '{"level": "ERROR", "message": "CUDA error"}']
)
def test_a_log_of_json_lines_is_a_log(line: str) -> None:
    assert kind_of(of(f"{line}\n{line}\n".encode(), "run.jsonl")) is Kind.LOG
    assert kind_of(of(f"{line}\n".encode(), "run.jsonl")) is Kind.LOG


def test_words_of_mpirun_in_a_log_make_it_no_launch_file() -> None:
    log = (
        b"Primary job  terminated normally, but 1 process returned\n"
        b"a non-zero exit code. Per user-direction, the job has been aborted.\n"
        b"mpirun detected that one or more processes exited with non-zero status\n"
    )
    assert kind_of(of(log), is_alone=False) is Kind.LOG


WRITTEN = sorted({*(ROOT.parents[1] / "docs").glob("*.md"), *ROOT.rglob("*.toml")})


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_what_people_write_of_errors_is_no_log_beside_others(path: Path) -> None:
    with pytest.raises(InputError):
        kind_of(sample_of(path), is_alone=False)


def test_a_program_that_speaks_of_errors_is_no_log() -> None:
    program = b"import os\n\n\ndef main():\n    raise RuntimeError('CUDA out of memory')\n" * 3
    with pytest.raises(InputError):
        kind_of(of(program), is_alone=False)
    assert kind_of(of(LOG * 20), is_alone=False) is Kind.LOG
