"""Windows of a trace: exact spans where they are few, shares elsewhere, groups added up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.merge.in_memory import merge
from serried.trace.model.trace import Trace
from serried.views.web.trace import window as trace_window
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.trace.shown import ShownTrace
from serried.views.web.trace.window import window_payload
from tests.trace.recorded_run import Run
from tests.views.web.reader import Message, read

RUN = Run(pp=2, tp=2, dp=2, num_microbatches=4)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return merge([RUN.write(tmp_path_factory.mktemp("runs") / "small")])


@pytest.fixture(scope="module")
def shown(trace: Trace) -> ShownTrace:
    return ShownTrace(trace, TraceAnswers(trace))


def window(shown: ShownTrace, **words: object) -> Message:
    usual = {"bucket": 1 << 16, "first": 0, "last": 600, "tracks": "0-7"}
    asked = {name: [str(value)] for name, value in (usual | words).items()}
    return read(window_payload(shown, asked))


def spans_in(message: Message) -> set[tuple[int, ...]]:
    names = ("rank", "kind", "stage", "microbatch", "step", "start_ns", "end_ns")
    return set(zip(*(message.columns[name].tolist() for name in names), strict=True))


def test_few_spans_are_sent_one_by_one_with_the_ids_they_have_in_the_whole(
    shown: ShownTrace,
) -> None:
    message = window(shown, first=50, last=200)
    columns, table = message.columns, shown.table
    assert columns["exact:track"].tolist() == list(range(8))
    for i, (first, last) in enumerate(pairwise(columns["exact:bounds"].tolist())):
        ids = np.arange(last - first) + columns["exact:first"][i]
        assert columns["start_ns"][first:last].tolist() == table.start_ns[ids].tolist()
        assert set(columns["rank"][first:last].tolist()) <= {int(table.rank[i])}
    low, high = 50 << 16, 200 << 16
    spans = shown.trace.spans
    on_lanes = np.isin(shown.table.rank, columns["rank"]) & (np.arange(shown.table.num_tracks) < 8)
    assert on_lanes.any()
    meets = (columns["end_ns"] >= low) & (columns["start_ns"] < high)
    assert meets.all()
    assert 0 < len(columns["rank"]) < len(spans)


def test_all_windows_together_hold_every_span(shown: ShownTrace) -> None:
    everything = f"0-{shown.table.num_tracks - 1}"
    last = (shown.table.total_ns >> 16) + 1
    sent = set()
    for first in range(0, last, 100):
        sent |= spans_in(window(shown, first=first, last=first + 100, tracks=everything))
    assert len(sent) == len(shown.trace.spans)


def test_many_spans_are_sent_as_shares_that_add_up_to_their_time(
    shown: ShownTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_window, "FEWEST", 0)
    message = window(shown, bucket=1 << 22, first=0, last=15, tracks="0")
    assert message.columns["exact:track"].tolist() == []
    shares = message.columns["track:shares"].reshape(15, -1)
    assert shares.shape[1] == len(shown.colours)
    spans = shown.trace.spans
    mine = (spans.rank == 0) & (spans.kind == ActionKind.F)
    took = int((spans.end_ns - spans.start_ns)[mine].sum())
    place = shown.colours.index("#5093c2")
    assert shares[:, place].sum() / 255 * (1 << 22) == pytest.approx(took, rel=0.01)


def test_a_group_is_the_mean_of_its_ranks(
    shown: ShownTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_window, "FEWEST", 0)
    where = {"bucket": 1 << 22, "first": 0, "last": 15}
    message = window(shown, **where, tracks="", by="stage", groups="1")
    assert message.columns["group:number"].tolist() == [1]
    of_group = message.columns["group:shares"].reshape(15, -1).astype(float)
    tracks = np.flatnonzero(np.isin(shown.table.rank, [4, 5, 6, 7]))
    one = window(shown, **where, tracks=",".join(map(str, tracks)))
    of_each = one.columns["track:shares"].reshape(len(tracks), 15, -1).astype(float)
    assert np.abs(of_each.sum(axis=0) / 4 - of_group).max() <= 2


def test_values_come_with_the_spans_when_colours_stand_for_them(shown: ShownTrace) -> None:
    message = window(shown, colour="lateness")
    late = message.columns["value:lateness"]
    assert len(late) == len(message.columns["rank"])
    computes = message.columns["kind"] == ActionKind.F
    assert (np.abs(late[computes]) < 1e6).all()
    assert np.isnan(late[message.columns["kind"] == ActionKind.OPTIMIZER]).all()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"bucket": 3000}, "bucket=3000 is not a power of two, in nanoseconds; 4096 is one"),
        ({"bucket": "x"}, "bucket=x is not a whole number; one such as 16 is"),
        ({"bucket": "1" * 16}, f"bucket={'1' * 16} is too large; it is at most {10**15 - 1}"),
        ({"last": 0}, "buckets 0 to 0 are no window; one holds 1 to 16384"),
        ({"last": 99999}, "buckets 0 to 99999 are no window; one holds 1 to 16384"),
        ({"tracks": "0-99999"}, "tracks=0-99999 are no numbers below "),
        ({"tracks": "a"}, "tracks=a are no numbers below "),
        ({"by": "nemo"}, "rows cannot stand under 'nemo'; they can under node, stage, "),
        ({"groups": "0"}, "groups=0 are no numbers below 0; some read 0-3,7"),
        (
            {"colour": "mood"},
            "this trace cannot be coloured by 'mood'; it can by microbatch, step, lateness",
        ),
    ],
)
def test_a_window_that_cannot_be_is_a_sentence(
    shown: ShownTrace, words: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        window(shown, **words)
    assert str(caught.value).startswith(sentence)


def test_an_answer_that_would_be_too_large_is_refused(
    shown: ShownTrace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_window, "MOST_CELLS", 4000)
    with pytest.raises(InputError, match="8 rows of 600 buckets are more than one answer holds"):
        window(shown)
