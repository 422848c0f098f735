"""A store merged piece by piece holds what a Trace holds, whatever the size of the pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.clocks.pings import ping_file, ping_line
from serried.trace.formats.reading import read_trace
from serried.trace.measure.analysis import analyse_findings
from serried.trace.measure.statistics import measure
from serried.trace.merge import clocks as merge_clocks
from serried.trace.merge import survey as merge_survey
from serried.trace.merge.in_memory import merge, side_by_side
from serried.trace.merge.run import gathered
from serried.trace.merge.store import Merged, merge_store
from serried.trace.model.record import HEADER_BYTES, file_name
from serried.trace.model.record_writer import RecordWriter
from serried.trace.model.trace import Trace
from serried.trace.store import table as store_table
from serried.trace.store.folder import read_store
from tests.trace.recorded_run import Clock, Run, record

pytest.importorskip("pyarrow")
RUN = Run(pp=4, dp=2, num_microbatches=8, num_steps=4)
RUN4 = Run(pp=4, num_microbatches=4)
CLOCKS = [
    Clock(host, ahead_ns=ahead, late_ns=late)
    for host, ahead, late in (("a", 5, 0), ("b", 10**12, 7_000_000), ("c", 77, -9_000_000))
    for _ in range(3)
]
ABOUT = ("run", "job", "base_ns", "hosts", "clocks", "ranks", "torn", "missing", "names")


def same(ours: Trace, theirs: Trace) -> None:
    """Asserts that two traces hold the same, as said in the same words."""
    for name, column in ours.spans.columns().items():
        np.testing.assert_array_equal(column, getattr(theirs.spans, name), err_msg=name)
    for name in ABOUT:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert [str(each) for each in ours.warnings] == [str(each) for each in theirs.warnings]


def files(store: Path) -> dict[str, bytes]:
    paths = sorted(path for path in store.rglob("*") if path.is_file())
    return {str(path.relative_to(store)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three hosts' folders, whose clocks are apart, without rank 6 and with rank 5 torn."""
    place = tmp_path_factory.mktemp("hosts")
    for host, ranks in (("a", (0, 1, 2)), ("b", (3, 4, 5)), ("c", (7,))):
        RUN.write(place / host, only=ranks, clocks=CLOCKS)
    path = place / "b" / file_name(5)
    path.write_bytes(path.read_bytes()[: HEADER_BYTES + 50 * 40 + 17])
    (place / "a" / "rank-notes.spans").write_text("mine")
    (place / "c" / file_name(6)).touch()
    return [place / "a", place / "b", place / "c"]


def test_a_store_merged_piece_by_piece_is_the_trace(folders: list[Path], tmp_path: Path) -> None:
    merged = merge_store(folders, tmp_path / "run.store")

    trace, again = read_trace(folders), read_store(tmp_path / "run.store")
    same(trace, again)
    assert merged.num_spans == len(trace.spans)
    assert merged.alignment == measure(trace).alignment
    assert [str(each) for each in again.warnings] == [
        f"{folders[1]}/rank-00005.spans has no proper end: rank 5 was killed or still runs; "
        "its 50 complete spans are kept; if it runs, merge again later",
        f"{folders[0]}/rank-notes.spans is not a recording of serried; left out",
        f"{folders[2]}/rank-00006.spans ends within its header: its rank stopped before it "
        "recorded a span",
        "1 of 8 ranks have no file here: 6; give the folders of all nodes at once",
    ]
    assert [host.name for host in again.hosts] == ["a", "b", "c"]


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes blocks, row groups and windows of steps so small that these runs have many."""
    monkeypatch.setattr(merge_survey, "BLOCK_RECORDS", 64)
    monkeypatch.setattr(merge_clocks, "COUNTED_SPANS", 50)
    monkeypatch.setattr(store_table, "ROWS_A_GROUP", 40)
    yield


@pytest.mark.usefixtures("small_pieces")
def test_the_size_of_the_pieces_changes_nothing(folders: list[Path], tmp_path: Path) -> None:
    merged = merge_store(folders, tmp_path / "run.store")

    trace = read_trace(folders)
    same(trace, read_store(tmp_path / "run.store"))
    assert merged.alignment == measure(trace).alignment
    assert merged.messages.pairs == merged.alignment.checked > 0
    assert merged.messages.spans == int(
        np.isin(trace.spans.kind, [each for each in ActionKind if "_" in each.name]).sum()
    )


def test_the_order_of_the_folders_changes_no_byte(folders: list[Path], tmp_path: Path) -> None:
    for folder in folders:
        (folder / "clock-00007.jsonl").write_text("no ping\n")
    for name, given in (("one", folders), ("other", [folders[2], folders[0], folders[1]])):
        merge_store(given, tmp_path / name)
    assert files(tmp_path / "one") == files(tmp_path / "other")
    for folder in folders:
        (folder / "clock-00007.jsonl").unlink()


def test_rows_stand_by_rank_and_start(folders: list[Path], tmp_path: Path) -> None:
    merge_store(folders, tmp_path / "run.store")
    table = store_table.read_spans(tmp_path / "run.store" / "node=0" / "spans.parquet")
    order = np.lexsort((table.start_ns, table.rank))
    np.testing.assert_array_equal(order, np.arange(len(table)))


# ----------------------------------------------------------------------- clocks


@pytest.mark.usefixtures("small_pieces")
def test_a_sample_of_whole_steps_from_first_to_last_aligns_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(pp=2, num_microbatches=8, num_steps=12)
    clocks = [Clock("a"), Clock("b", late_ns=4_000_000)]
    folder = run.write(tmp_path / "run", clocks=clocks)
    monkeypatch.setattr(merge_clocks, "SAMPLED_SPANS", 100)  # of 32 in each of 12 steps

    merged = merge_store([folder], tmp_path / "run.store")

    (_, clock), (_, whole) = merged.trace.clocks, read_trace([folder]).clocks
    assert clock.source == "messages"
    assert clock.offset_ns == pytest.approx(-4_000_000, abs=20_000)
    assert clock.offset_ns == pytest.approx(whole.offset_ns, abs=20_000)
    assert (merged.alignment.checked, merged.alignment.causality_violations) == (192, 0)


@pytest.mark.usefixtures("small_pieces")
def test_every_message_is_counted_that_arrived_before_it_left(tmp_path: Path) -> None:
    run = Run(pp=2, num_microbatches=8, num_steps=3)
    early = range(4, 6)
    for rank, kind, moved_ns in ((0, ActionKind.SEND_F, 0), (1, ActionKind.RECV_F, 10**9)):
        recorder = RecordWriter(tmp_path, Clock("a").header(run.name, rank, run.job))
        for span in run.spans():
            if span.rank == rank:
                is_early = span.action.kind == kind and span.action.microbatch in early
                record(recorder, span, 2 * 10**9 - (moved_ns if is_early else 0))
        recorder.close()

    merged = merge_store([tmp_path], tmp_path / "run.store")

    assert merged.alignment.causality_violations == len(early) * run.num_steps
    assert merged.alignment == measure(read_trace([tmp_path])).alignment


def test_order_aligns_hosts_that_no_message_joins(tmp_path: Path) -> None:
    clocks = [Clock("a")] * 2 + [Clock("b", late_ns=2_000_000)] * 2
    messages = (ActionKind.SEND_F, ActionKind.SEND_B, ActionKind.RECV_F, ActionKind.RECV_B)
    folder = RUN4.write(
        tmp_path / "run", clocks=clocks, keep=lambda span: span.action.kind not in messages
    )
    merged = merge_store([folder], tmp_path / "run.store")
    assert [clock.source for clock in merged.trace.clocks] == ["own", "order"]
    same(read_trace([folder]), read_store(tmp_path / "run.store"))
    assert merged.alignment.checked == 0


def test_pings_align_hosts_and_what_is_no_ping_is_said(tmp_path: Path) -> None:
    clocks = [Clock("a")] * 2 + [Clock("b", late_ns=2_000_000)] * 2
    folder = RUN4.write(tmp_path / "run", clocks=clocks)
    pings = [ping_line(3, (at, at + 50_000, at + 50_001, at + 100_001)) for at in range(0, 900, 9)]
    (folder / ping_file(0)).write_text("".join([*pings, "no ping\n"]))
    merged = merge_store([folder], tmp_path / "run.store")
    assert merged.trace.clocks[1].source == "pings+messages"
    same(read_trace([folder]), read_store(tmp_path / "run.store"))
    assert any("are no pings" in str(each) for each in merged.trace.warnings)


# ----------------------------------------------------------------------- names


def test_named_spans_keep_their_names_across_ranks(tmp_path: Path) -> None:
    run = Run(pp=1, dp=2)
    for rank, names in ((0, ("load", "augment")), (1, ("augment", "save"))):
        recorder = RecordWriter(tmp_path, Clock("a").header(run.name, rank, run.job))
        for at, name in enumerate(names):
            number = recorder.number_of(name)
            recorder.add(ActionKind.SPAN, 10 * at, 10 * at + 5, step=0, name=number)
        recorder.close()
    merge_store([tmp_path], tmp_path / "run.store")
    trace = read_store(tmp_path / "run.store")
    assert trace.names == ("load", "augment", "save")
    assert [trace.names[peer] for peer in trace.spans.peer] == [
        *("load", "augment"),
        *("augment", "save"),
    ]


def test_spans_whose_names_lie_elsewhere_have_none(tmp_path: Path) -> None:
    run = Run(pp=1, dp=2)
    for rank in range(2):
        recorder = RecordWriter(tmp_path, Clock("a").header(run.name, rank, run.job))
        number = recorder.number_of("load")
        recorder.add(ActionKind.SPAN, 0, 5, step=0, name=number)
        recorder.add(ActionKind.F, 10_000, 20_000, step=0, stage=0, microbatch=0)
        recorder.close()
    (tmp_path / "rank-00000.names").unlink()
    trace = merge([tmp_path])
    assert [
        trace.called(peer) for peer in trace.spans.peer[trace.spans.kind == ActionKind.SPAN]
    ] == ["", "load"]
    (tmp_path / "rank-00001.names").unlink()
    analyse_findings(merge([tmp_path]))


# ----------------------------------------------------------------------- places


def test_a_store_beside_the_recordings_is_in_nobodys_way(tmp_path: Path) -> None:
    folder = RUN4.write(tmp_path / "run")
    for _ in range(2):
        merge_store([folder], folder / "run.store")
    same(read_trace([folder]), read_store(folder / "run.store"))


def test_a_store_is_not_replaced_over_the_recordings_in_it(tmp_path: Path) -> None:
    merge_store([RUN4.write(tmp_path / "run")], tmp_path / "run.store")
    inside = RUN4.write(tmp_path / "run.store" / "more")
    with pytest.raises(InputError) as caught:
        merge_store([inside], tmp_path / "run.store")
    assert str(caught.value) == (
        f"{inside} lies in the store {tmp_path}/run.store, which would be replaced; "
        "give another name"
    )
    assert (inside / file_name(0)).exists()


def test_recordings_are_not_replaced_by_their_store(tmp_path: Path) -> None:
    folder = RUN4.write(tmp_path / "run")
    with pytest.raises(InputError, match="is there and is no store of serried"):
        merge_store([folder], folder)
    assert len(list(folder.iterdir())) == 4


def test_a_refusal_leaves_an_earlier_store_as_it_was(tmp_path: Path) -> None:
    merge_store([RUN4.write(tmp_path / "run")], tmp_path / "run.store")
    before = files(tmp_path / "run.store")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"holds no rank-\*.spans files"):
        merge_store([tmp_path / "empty"], tmp_path / "run.store")
    assert files(tmp_path / "run.store") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "run", "run.store"]


def test_a_file_that_changes_while_it_is_merged_is_said(tmp_path: Path) -> None:
    folder = RUN4.write(tmp_path / "run")
    run = gathered([folder], side_by_side)
    path = folder / file_name(2)
    path.write_bytes(path.read_bytes()[: HEADER_BYTES + 3 * 40])
    with pytest.raises(InputError) as caught:
        list(run.parts[2].blocks())
    assert str(caught.value) == f"{path} changed while it was read; merge again"


def test_what_was_merged_is_counted(folders: list[Path], tmp_path: Path) -> None:
    merged: Merged = merge_store(folders, tmp_path / "run.store")
    about = json.loads((tmp_path / "run.store" / "_serried.json").read_text())
    assert about["num_spans"] == merged.num_spans > 0
    assert about["missing"] == [6]
