"""A rank has the number that its files give it, wherever it is named, whatever lies between."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serried.trace.formats.chrome import write_chrome
from serried.trace.formats.perfetto import write_perfetto
from serried.trace.formats.reading import read_trace
from serried.trace.measure.analysis import analyse
from serried.trace.measure.compare import compare_traces, planned_trace
from serried.trace.measure.measured_step import measured_step
from serried.trace.model.trace import Trace
from serried.views.web.trace.payload import NamedTrace
from tests.conftest import Call
from tests.trace.alike import differences
from tests.trace.straggler_jobs import Job

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

JOB = Job(pp=2, dp=3, m=4, slow_rank=4)
NUMBERS = {
    "every other rank": [0, 2, 4, 6, 8, 10],
    "from the third on": [3, 7, 11, 15, 19, 23],
    "in no order": [9, 2, 30, 4, 5, 17],
}


def table(folder: Path, numbers: list[int], *, seed: int = 1) -> Path:
    """Writes the job's table, its ranks called by ``numbers`` and its rows in any order."""
    rows = [{**row, "rank": numbers[row["rank"]]} for row in JOB.rows()]
    random.Random(seed).shuffle(rows)
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "job.parquet")
    return folder / "job.parquet"


def renumbered(value: Any, numbers: list[int]) -> Any:
    """Returns figures by rank with their ranks called by ``numbers``, by rank."""
    return sorted(((numbers[rank], figure) for rank, figure in value), key=lambda each: each[0])


def figures(trace: Trace) -> dict[str, list[tuple[int, Any]]]:
    found = analyse(trace)
    assert found.path is not None and found.replayed is not None
    ranks = found.statistics.ranks
    return {
        "compute": [(each.rank, each.compute_ns) for each in ranks],
        "idle": [(each.rank, each.idle_ns) for each in ranks],
        "gain": sorted((each.rank, each.shorter) for each in found.replayed.ranks),
        "path": list(found.path.by_rank.items()),
    }


@pytest.mark.parametrize("name", NUMBERS)
def test_figures_are_those_of_ranks_without_gaps_under_their_own_numbers(
    tmp_path: Path, name: str
) -> None:
    numbers = NUMBERS[name]
    found = figures(read_trace([table(tmp_path, numbers)]))
    plain = figures(read_trace([table(tmp_path, [*range(6)], seed=2)]))
    assert found["compute"] == renumbered(plain["compute"], numbers)
    assert found["idle"] == renumbered(plain["idle"], numbers)
    for name in ("gain", "path"):
        expected = dict(renumbered(plain[name], numbers))
        assert dict(found[name]) == pytest.approx(expected, abs=1e-9)


@given(st.permutations(range(18)), st.integers(0, 9))
@settings(max_examples=15)
def test_any_numbers_and_any_order_of_rows_give_the_same_run(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[int], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("any")
    one, other = (read_trace([table(folder, numbers[:6], seed=each)]) for each in (seed, seed + 1))
    assert differences(one, other) == []
    assert one.ranks == tuple(sorted(numbers[:6]))
    # The slow rank is the second replica's last stage.
    assert analyse(one).replayed.ranks[0].rank == numbers[4]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_way_to_write_a_run_names_the_ranks_of_its_files(
    tmp_path: Path, name: str, serried: Call
) -> None:
    numbers = sorted(NUMBERS[name])
    path = table(tmp_path, NUMBERS[name])
    answer = serried("trace", "stats", str(path), "--format", "json")
    stats = json.loads(answer.out)
    assert [each["rank"] for each in stats["ranks"]] == numbers
    assert sorted(each["rank"] for each in stats["what_if"]["without_rank"]) == numbers
    assert {each["rank"] for each in stats["critical_path"]["by_rank"]} <= {*numbers}
    assert stats["missing"] == []
    trace = read_trace([path])
    write_chrome(trace, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sorted({each["pid"] for each in events}) == numbers
    write_perfetto(trace, tmp_path / "trace.pftrace")
    raw = (tmp_path / "trace.pftrace").read_bytes()
    assert sorted({int(each) for each in re.findall(rb"rank (\d+) ", raw)}) == numbers
    compared = compare_traces(trace, planned_trace(trace))
    assert sorted({each.rank for each in compared.changes}) == numbers
    assert (compared.only_first, compared.only_second, compared.orders) == (0, 0, ())


def test_the_page_is_answered_by_the_ranks_of_the_files(tmp_path: Path) -> None:
    numbers = sorted(NUMBERS["in no order"])
    trace = read_trace([table(tmp_path, NUMBERS["in no order"])])
    named = NamedTrace("job", trace)
    assert named.shown.ranks.tolist() == numbers
    assert [each.rank for each in named.answers.statistics.ranks] == numbers
    grouping = named.shown.grouping("pp")
    assert grouping.of.tolist() == [1, 0, 1, 0, 2, 2]
    overlay = named.answers.overlay
    assert [int(overlay.place[rank]) for rank in NUMBERS["in no order"]] == [0, 0, 0, 1, 1, 1]
    step = measured_step(trace, int(trace.spans.step.min()))
    assert step.ranks.tolist() == [9, 4]
    for figure in named.answers.figures.values():
        assert [rank for rank in range(trace.job.world_size) if figure[rank] == figure[rank]] == (
            numbers
        )
