"""``serried trace merge`` writes what its output's name says, from folders or URLs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from serried.views.cli.trace import merge as trace_merge
from tests.conftest import Call
from tests.schemas.conform import conform
from tests.trace.recorded_run import Clock, Run

pytest.importorskip("pyarrow")
RUN = Run(pp=4, tp=1, dp=2, num_microbatches=8, num_steps=2)
TWO_HOSTS = [Clock("a")] * 4 + [Clock("b", late_ns=3_000_000)] * 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return RUN.write(tmp_path / "run", clocks=TWO_HOSTS)


def test_a_store_is_measured_as_the_recordings_are(
    serried: Call, folder: Path, tmp_path: Path
) -> None:
    store = tmp_path / "run.store"
    merged = serried("trace", "merge", str(folder), "-o", str(store))
    assert (merged.code, merged.out) == (0, serried("trace", "stats", str(folder)).out)
    assert re.fullmatch(f"wrote {store}, .* of Parquet; every trace command .*\n", merged.err)


def test_of_a_store_too_large_to_measure_merging_says_what_it_counted(
    serried: Call, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_merge, "MEASURED_SPANS", 100)
    (folder / "rank-00006.spans").unlink()
    store = str(tmp_path / "run.store")

    table = serried("trace", "merge", str(folder), "-o", store)

    first, paired, clocks, *_, further = table.out.splitlines()
    assert first == "run run-a: 7 ranks on 2 hosts, 590 spans"
    assert paired == (
        "sends and receives pair: 320 of 384; 16 sends and 16 receives without a partner"
    )
    assert re.fullmatch(
        "clocks of 2 hosts: aligned to .*; 0 of 160 messages received before sent", clocks
    )
    assert further == f"serried trace stats {store} measures them"
    assert table.err.startswith("warning: 1 of 8 ranks have no file here: 6")

    document = json.loads(
        serried("trace", "merge", str(folder), "-o", store, "--format", "json").out
    )
    conform(document, "serried.trace-merge/1")
    assert (document["num_spans"], document["missing"]) == (590, [6])
    assert document["alignment"]["checked"] == document["messages"]["pairs"] == 160

    chinese = serried("trace", "merge", str(folder), "-o", store, "--lang", "zh")
    assert chinese.out.splitlines()[0] == "运行 run-a：7 个 rank，在 2 台主机上，590 个 span"


def test_a_url_is_merged_and_measured(serried: Call, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    url, store = f"file://{folder}", str(tmp_path / "run.store")
    measured = serried("trace", "stats", str(folder)).out
    assert serried("trace", "merge", url, "-o", store).out == measured
    assert serried("trace", "stats", url).out == measured


def test_a_url_needs_a_name_to_write_to(serried: Call, folder: Path) -> None:
    answer = serried("trace", "merge", f"file://{folder}")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        f"serried: file://{folder} is only read; say by -o where the timeline is to be written\n"
    )


def test_ray_writes_stores_only(serried: Call, folder: Path) -> None:
    answer = serried("trace", "merge", str(folder), "--engine", "ray")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "serried: --engine ray merges recordings of serried into a store; give those, and -o a "
        "name that does not end in .json or .pftrace\n"
    )


def test_perfetto_s_file_of_a_run_is_measured_and_merged_as_the_run_is(
    serried: Call, folder: Path, tmp_path: Path
) -> None:
    one, other = str(tmp_path / "one.pftrace"), str(tmp_path / "other.pftrace")
    serried("trace", "merge", str(folder), "-o", one)
    for form in ("table", "json"):
        asked = ("--format", form)
        told, theirs = (serried("trace", "stats", each, *asked) for each in (one, str(folder)))
        # The next command names the file that was given.
        assert (told.code, told.out.replace(one, str(folder))) == (0, theirs.out)
    assert serried("trace", "merge", one, "-o", other).code == 0
    assert Path(one).read_bytes() == Path(other).read_bytes()
