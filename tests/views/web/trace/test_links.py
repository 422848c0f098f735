"""What belongs to a span: its microbatch, the arrows of its hand-overs, its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.merge.in_memory import merge
from serried.trace.model.trace import Trace
from serried.views.web.trace.answers import TraceAnswers
from serried.views.web.trace.links import links_payload, span_payload
from serried.views.web.trace.shown import ShownTrace
from tests.trace.recorded_run import Run
from tests.views.web.reader import Message, read

RUN = Run(pp=3, dp=2, num_microbatches=4)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> ShownTrace:
    trace: Trace = merge([RUN.write(tmp_path_factory.mktemp("runs") / "small")])
    return ShownTrace(trace, TraceAnswers(trace))


def span_id(shown: ShownTrace, name: str, rank: int, step: int = 0) -> int:
    """Returns the id of the first span of an action on a rank."""
    spans = shown.table.spans(np.arange(len(shown.table)))
    found = (
        i for i, s in enumerate(spans) if (str(s.action), s.rank, s.step) == (name, rank, step)
    )
    return next(found)


def named(shown: ShownTrace, ids: list[int]) -> list[tuple[str, int]]:
    return [(str(span.action), span.rank) for span in shown.table.spans(np.array(ids))]


def asked(shown: ShownTrace, **words: object) -> Message:
    return read(span_payload(shown, {name: [str(value)] for name, value in words.items()}))


def test_a_span_comes_with_its_microbatch_on_its_own_pipeline_only(shown: ShownTrace) -> None:
    span = span_id(shown, "1F2", 2, step=1)
    columns = read(links_payload(shown, {"slice": [str(span)]})).columns
    assert columns["id"][0] == span
    assert set(columns["microbatch"].tolist()) == {2}
    assert set(columns["step"].tolist()) == {1}
    assert set(columns["rank"].tolist()) == {0, 2, 4}


def test_arrows_lead_from_who_made_a_result_to_who_used_it(shown: ShownTrace) -> None:
    span = span_id(shown, "1F2", 2)
    columns = read(links_payload(shown, {"slice": [str(span)]})).columns
    ends = [named(shown, columns[f"arrow:{end}"].tolist()) for end in ("from", "to")]
    arrows = list(zip(*ends, strict=True))
    assert (("0F2", 0), ("1F2", 2)) in arrows
    assert (("1F2", 2), ("2F2", 4)) in arrows
    assert (("1B2", 2), ("0B2", 0)) in arrows
    assert (("0SEND_F2", 0), ("1RECV_F2", 2)) in arrows
    assert len(arrows) == 8


def test_a_span_of_no_microbatch_stands_alone(shown: ShownTrace) -> None:
    span = span_id(shown, "OPTIMIZER", 2)
    columns = read(links_payload(shown, {"slice": [str(span)]})).columns
    assert columns["id"].tolist() == [span]
    assert columns["arrow:from"].tolist() == []


def test_the_next_span_of_a_rank_is_the_one_that_starts_next_on_any_lane(
    shown: ShownTrace,
) -> None:
    spans = shown.trace.spans
    mine = np.flatnonzero(spans.rank == 2)
    at = int(asked(shown, slice=shown.table.ids(mine[:1])[0], by=-1).columns["id"][0])
    walked = [at]
    for _ in mine:
        at = int(asked(shown, slice=at, by=1).columns["id"][0])
        walked.append(at)
    assert walked[: len(mine)] == shown.table.ids(mine).tolist()
    assert walked[-1] == walked[-2], "at the end it stays where it is"


def test_a_span_is_found_by_its_rank_and_begin_and_of_those_that_begin_alike_by_its_place(
    shown: ShownTrace,
) -> None:
    table = shown.table
    for span in range(0, len(table), 7):
        track = int(np.searchsorted(table.bounds, span, "right")) - 1
        name = f"{table.rank[track]}.{table.start_ns[span]}"
        alike = [asked(shown, named=f"{name}.{n}").columns["id"].tolist() for n in range(3)]
        assert [span] in alike
        assert asked(shown, named=name).columns["id"].tolist() == alike[0]
    assert asked(shown, named="2.1").columns["id"].tolist() == []


def test_at_a_point_lies_the_longest_span_of_its_pixel_or_else_the_nearest(
    shown: ShownTrace,
) -> None:
    span = span_id(shown, "1F2", 2)
    start, end = float(shown.table.start_ns[span]), float(shown.table.end_ns[span])
    track = int(np.searchsorted(shown.table.bounds, span, "right")) - 1
    for time, slack in (((start + end) / 2, 0), (start + 1, 6_000_000)):
        (found,) = asked(shown, track=track, time=int(time), slack=slack).columns["id"].tolist()
        assert shown.table.end_ns[found] - shown.table.start_ns[found] >= end - start
    last = int(shown.table.bounds[track + 1]) - 1
    after = float(shown.table.end_ns[last]) + 5_000
    assert asked(shown, track=track, time=int(after), slack=6_000).columns["id"].tolist() == [last]
    assert asked(shown, track=track, time=int(after), slack=600).columns["id"].tolist() == []
    assert asked(shown, track=track, time=int(after), slack=0).columns["id"].tolist() == [last]


def test_every_row_of_the_trace_has_an_id_and_back(shown: ShownTrace) -> None:
    rows = np.arange(len(shown.trace.spans))
    ids = shown.table.ids(rows)
    assert sorted(ids.tolist()) == rows.tolist()
    assert shown.table.rows(ids).tolist() == rows.tolist()
    assert shown.table.order is not None, "its sends lie in a lane of their own"
    assert (shown.trace.spans.kind == ActionKind.SEND_F).any()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"slice": "x"}, "slice=x is not there; they are numbered from 0 to "),
        ({"slice": "99999999"}, "slice=99999999 is not there; they are numbered from 0 to "),
        ({"slice": "0", "by": "7"}, "by=7 is no way to go; 1 is onwards, -1 back"),
        (
            {"named": "rank 3"},
            "slice=rank 3 names no span; a name is a rank and when the span begins",
        ),
        ({"track": "9999"}, "track=9999 is not there; they are numbered from 0 to "),
        (
            {"track": "0", "time": "noon"},
            "time=noon is not a moment; one reads in whole nanoseconds, ",
        ),
    ],
)
def test_a_span_that_is_not_there_is_a_sentence(
    shown: ShownTrace, words: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InputError) as caught:
        asked(shown, **words)
    assert str(caught.value).startswith(sentence)
