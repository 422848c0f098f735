"""``serried trace stats`` lays what kinds of groups reached beside a check and a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from serried.plan.busbw import BusbwRow, BusbwTable, to_document
from tests.conftest import Call
from tests.trace.carried import write_carried
from tests.trace.gpu.samples import FOLDER
from tests.views.explain.reader import has_chinese


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_carried(tmp_path_factory.mktemp("carried"))


@pytest.fixture
def busbw(tmp_path: Path) -> Path:
    rows = (BusbwRow("all_reduce", 2, 1, 2, 4_000_000, 100_000.0),)
    path = tmp_path / "busbw.json"
    path.write_text(json.dumps(to_document(BusbwTable("a", rows))))
    return path


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_slowest_kind_beside_check_and_plan_stands_first(
    serried: Call, run: Path, busbw: Path, lang: str
) -> None:
    references = ["--busbw", str(busbw), "--network", "ethernet"]
    lines = serried("trace", "stats", str(run), *references, "--lang", lang).out.splitlines()
    (at,) = (at for at, line in enumerate(lines) if "busbw" in line)
    assert has_chinese(lines[at]) == (lang == "zh")
    tp, dp = (line.split() for line in lines[at + 1 : at + 3])
    assert (tp[0], dp[0]) == ("tp", "dp")
    assert " ".join(tp[-6:]) == "5.33 GB/s 40 GB/s 20.3 GB/s"
    assert " ".join(dp[-6:-2]) == "30 GB/s 40 GB/s"


def test_json_holds_all_three(serried: Call, run: Path, busbw: Path) -> None:
    options = ["--busbw", str(busbw), "--network", "h100", "--format", "json"]
    tp, dp = json.loads(serried("trace", "stats", str(run), *options).out)["traffic"]
    assert (tp["group"], tp["num_ranks"], tp["count"], dp["is_whole"]) == ("tp", 2, 4, True)
    assert tp["checked_busbw_bytes_per_s"] == 4e10
    assert tp["planned_busbw_bytes_per_s"] > tp["busbw_bytes_per_s"]
    plain = json.loads(serried("trace", "stats", str(run), "--format", "json").out)["traffic"]
    assert plain[0]["checked_busbw_bytes_per_s"] is plain[0]["planned_busbw_bytes_per_s"] is None


def test_a_profile_of_gpus_is_laid_beside_them_too(serried: Call) -> None:
    sampled = [str(FOLDER / f"sampled_rank-{rank}.json.gz") for rank in (0, 1)]
    options = ["--network", "a100", "--format", "json"]
    rows = json.loads(serried("trace", "stats", *sampled, *options).out)["traffic"]
    assert all("planned_busbw_bytes_per_s" in row for row in rows)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--network", "carrier-pigeon"], "there is no network 'carrier-pigeon'; those there are:"),
        (["--busbw", "nowhere.json"], "nowhere.json"),
    ],
)
def test_a_reference_that_is_none_is_refused_in_a_sentence(
    serried: Call, run: Path, options: list[str], sentence: str
) -> None:
    done = serried("trace", "stats", str(run), *options)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err and len(done.err.splitlines()) == 1
