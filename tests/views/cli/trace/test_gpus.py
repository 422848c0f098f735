"""``serried trace stats`` of a profile of GPUs: the verdict first, short, in both languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.cells import cell_len

from serried.trace.formats.reading import read_trace
from tests.conftest import Call
from tests.schemas.conform import conform
from tests.trace.gpu.samples import FOLDER
from tests.views.explain.reader import has_chinese

SAMPLED = [str(FOLDER / f"sampled_rank-{rank}.json.gz") for rank in (0, 1)]


def test_the_verdict_names_rank_cost_and_cause_before_all_else(serried: Call) -> None:
    lines = serried("trace", "stats", str(FOLDER / "alexnet.json.gz")).out.splitlines()
    assert lines[0].startswith("the GPU of rank 0 is idle for 99.5% of 12.9 s")
    assert "for a late launch" in lines[0]


def test_the_idlest_rank_stands_first(serried: Call) -> None:
    lines = serried("trace", "stats", *SAMPLED).out.splitlines()
    assert lines[0] == "the GPU of rank 1 is idle for 54.7% of 601 ms"
    assert lines[1].startswith("rank 0 communicates for 28.7% of it")
    first, second = (
        line.split()[0] for line in lines if "601 ms" in line[:12] or "600 ms" in line[:12]
    )
    assert (first, second) == ("1", "0")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("files", [SAMPLED, [str(FOLDER / "alexnet.json.gz")]], ids=["2", "1"])
def test_the_answer_fits_a_screen(serried: Call, files: list[str], lang: str) -> None:
    lines = serried("trace", "stats", *files, "--lang", lang).out.splitlines()
    assert len(lines) <= 40
    assert max(map(cell_len, lines)) <= 100
    assert has_chinese(lines[0]) == (lang == "zh")


def test_json_has_every_figure_in_microseconds(serried: Call) -> None:
    document = json.loads(serried("trace", "stats", *SAMPLED, "--format", "json").out)
    conform(document, "serried.gpu-stats/1")
    first, second = document["ranks"]
    assert first["time"]["idle_us"] == 321378
    assert second["time"]["overlap"] == pytest.approx(0.2005, abs=1e-4)
    assert len(first["kernels"]) == 199
    assert document["world_size"] == 128


def test_a_profile_without_gpus_ends_with_one_sentence(serried: Call) -> None:
    done = serried("trace", "stats", str(FOLDER / "cpu_only.json.gz"))
    assert done.code == 2
    assert "ProfilerActivity.CUDA" in done.err and not done.out


# ----------------------------------------------------------------------- two profiles


def test_two_profiles_are_compared_by_name_the_verdict_first(serried: Call) -> None:
    lines = serried("trace", "compare", *SAMPLED).out.splitlines()
    assert lines[0].startswith("a step of A keeps its GPU busy for 302 ms, of B for 306 ms")
    assert lines[1].startswith("most in ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t: +")
    assert len(lines) <= 40 and max(map(len, lines[:-2])) <= 100


def test_a_comparison_as_json_has_every_name(serried: Call) -> None:
    document = json.loads(serried("trace", "compare", *SAMPLED, "--format", "json").out)
    conform(document, "serried.gpu-comparison/1")
    assert document["first"]["steps"] == [551]
    assert {row["where"] for row in document["rows"]} == {"gpu", "host"}


def test_a_profile_has_no_plan_and_no_pipelines_run_to_be_compared_with(serried: Call) -> None:
    refused = serried("trace", "compare", SAMPLED[0], "--plan")
    assert refused.code == 2 and "has no plan" in refused.err
    other = str(FOLDER.parent / "kineto")
    refused = serried("trace", "compare", SAMPLED[0], other)
    assert refused.code == 2 and "give two of a kind" in refused.err


def test_a_timeline_of_all_ranks_is_written_and_reads_back(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    done = serried("trace", "merge", *SAMPLED, "-o", str(path))
    assert done.code == 0 and done.out.startswith("the GPU of rank 1 is idle")
    assert len(read_trace([path]).spans) == 2358


def test_the_workbench_offers_a_profile_as_a_timeline(serried: Call) -> None:
    done = serried("serve", "--trace", SAMPLED[0], "--ask", "traces")
    (offered,) = json.loads(done.out)["traces"]
    assert offered["num_spans"] == 1204


def test_sizes_of_another_number_of_ranks_are_refused(serried: Call) -> None:
    done = serried("trace", "stats", *SAMPLED, "--tp", "3")
    assert done.code == 2 and "does not divide" in done.err
