"""Event files give what can be read of them, and odd values of any type are no crash."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from serried.errors import InputError
from serried.limits import Limit
from serried.trace.formats import event_file
from serried.trace.formats.event_file import read_event_file, whole
from serried.trace.formats.kineto import of_kineto
from serried.trace.formats.reading import read_trace
from serried.trace.measure.replay_spans import replay_of_trace
from serried.trace.measure.statistics import measure
from serried.trace.measure.what_if import what_if

ODD: list[Any] = [
    *(None, True, -1, 0, 2, 1.5, 1e308, 2**31 - 1, 2**63, 10**30, 9e15),
    *("", "x", "--5", "-3", "9" * 30, [], [1], {}, {"a": 1}, "PP:0F0", "PP:99999999999F1"),
]


def event(name: str, at: float, length: float = 4, **more: object) -> dict[str, Any]:
    return {"name": name, "ph": "X", "ts": at, "dur": length, **more}


def kineto(rank: int) -> dict[str, Any]:
    names = (f"PP:{rank}F0", f"PP:{rank}F1", f"PP:{rank}B0", f"PP:{rank}B1")
    events = [event(name, 10 * at) for at, name in enumerate(names)]
    about = {"distributedInfo": {"rank": rank, "world_size": 2}, "host_name": "a"}
    base = {"baseTimeNanoseconds": 1_700_000_000_000_000_000}
    return {**about, **base, "traceEvents": [*events, event("ProfilerStep#3", 0, 100)]}


def ndtimeline() -> list[dict[str, Any]]:
    names = ("forward-compute", "forward-send-backward-recv", "backward-compute")
    return [
        event(name, 10 * at, args={"rank": rank, "step": 1, "pp": rank})
        for rank in (0, 1)
        for at, name in enumerate(names)
    ]


def megatronapp() -> list[dict[str, Any]]:
    numbers = {"iteration": 1, "microbatch": 0, "model_chunk": 0}
    return [
        {"name": name, "ph": phase, "ts": ts, "pid": r, "tid": 0, "args": {**numbers, "pp_rank": r}}
        for r in (0, 1)
        for at, name in enumerate(("forward", "backward"))
        for phase, ts in (("B", 10 * at), ("E", 10 * at + 5))
    ]


def paddle() -> list[dict[str, Any]]:
    place = {"cat": "pipeline timeline", "pid": 0}
    return [
        {**place, "name": name, "ph": phase, "tid": rank + 1, "ts": 10 * at + (phase == "E")}
        for rank in (0, 1)
        for at, name in enumerate(("F0", "B0"))
        for phase in "BE"
    ]


DOCUMENTS = {
    "torch.profiler": kineto(0),
    "ndtimeline": ndtimeline(),
    "MegatronApp": megatronapp(),
    "Paddle": paddle(),
}


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = document if isinstance(document, dict) else range(len(document))
    for key in keys:
        yield (*path, key)
        if isinstance(document[key], dict | list):
            yield from places(document[key], (*path, key))


def spoilt(document: Any, rng: random.Random) -> Any:
    """Returns a copy in which a few values are of another type or size."""
    changed = deepcopy(document)
    for path in rng.sample(list(places(document)), rng.choice([1, 1, 3])):
        try:
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = rng.choice(ODD)
        except (TypeError, IndexError, KeyError):
            continue  # an earlier change took the place away
    return changed


@pytest.mark.parametrize("tool", DOCUMENTS)
def test_odd_values_give_a_trace_or_one_sentence(tool: str, tmp_path: Path) -> None:
    rng = random.Random(tool)
    path = tmp_path / "x.json"
    outcomes = set()
    for _ in range(60):
        path.write_text(json.dumps(spoilt(DOCUMENTS[tool], rng)))
        try:
            trace = read_trace([path])
            measure(trace)
            if replay := replay_of_trace(trace):
                what_if(replay)
            outcomes.add("trace")
        except InputError as error:
            assert "\n" not in str(error)
            outcomes.add("sentence")
    assert "trace" in outcomes


@pytest.mark.parametrize("tool", DOCUMENTS)
def test_every_length_of_a_file_gives_a_trace_or_one_sentence(tool: str, tmp_path: Path) -> None:
    text = json.dumps(DOCUMENTS[tool])
    path = tmp_path / "x.json"
    for length in range(0, len(text), 29):
        path.write_text(text[:length])
        try:
            assert len(read_trace([path]).spans)
        except InputError as error:
            assert str(path) in str(error)


def test_a_cut_off_profile_keeps_its_rank_and_the_base_of_its_times(tmp_path: Path) -> None:
    for rank in (0, 1):
        text = json.dumps(kineto(rank))
        (tmp_path / f"{1 - rank}.json").write_text(text[:-90] if rank else text)
    trace = read_trace([tmp_path])
    assert trace.ranks == (0, 1)
    assert sorted(set(trace.spans.stage[trace.spans.rank == 1].tolist())) == [1]
    assert int(trace.spans.end_ns.max()) == 34_000


def test_a_number_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'[{{"ts": {"9" * 5000}}}]')
    with pytest.raises(InputError, match="not usable JSON: a number is too long"):
        read_event_file(path)


def test_text_that_only_looks_like_a_number_is_none() -> None:
    assert [whole(text) for text in ("--5", "-", "²", "9" * 5000, " 7 ", "-3")] == [
        *(None,) * 4,
        *(7, -3),
    ]


def test_a_metric_of_no_length_keeps_its_turn(tmp_path: Path) -> None:
    metrics = [
        event("forward-compute", 10 * at, length, args={"rank": 0, "step": 1, "pp": 0})
        for at, length in enumerate((4, 0, 4))
    ]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(metrics))
    assert read_trace([path]).spans.microbatch.tolist() == [0, 1, 2]


def test_what_lies_outside_every_profiled_step_is_left_out(tmp_path: Path) -> None:
    document = kineto(0)
    document["traceEvents"] += [event("PP:0F7", 500), event("PP:0F8", -50)]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    spans = read_trace([path]).spans
    assert set(spans.microbatch.tolist()) == {0, 1}
    assert set(spans.step.tolist()) == {3}


# ----------------------------------------------------------------------- gzipped, and hostile


def test_a_gzipped_file_that_was_cut_off_gives_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json.gz"
    # Random lengths do not pack well, so half of the bytes hold about half of the events.
    drawn = random.Random(0)
    events = [event(f"PP:0F{n}", 10 * n, drawn.random()) for n in range(2000)]
    packed = gzip.compress(json.dumps({"traceEvents": events}).encode())
    path.write_bytes(packed[: len(packed) // 2])
    file = read_event_file(path)
    assert file.cut_off
    assert 500 < len(file.events) < 1500
    assert file.events == events[: len(file.events)]


def test_a_file_that_grows_without_measure_is_refused_before_it_fills_the_memory(
    tmp_path: Path,
) -> None:
    path = tmp_path / "bomb.json.gz"
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.write(b'{"traceEvents": [' + b" " * 40_000_000)
    with pytest.raises(InputError, match="grows more than 200 times when it is unpacked"):
        read_event_file(path)


def test_a_file_beyond_the_largest_is_refused_when_so_much_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_text("[" + "0, " * 1_000_000 + "0]")
    monkeypatch.setattr(event_file, "EVENT_FILE_BYTES", Limit(1 << 20, "bytes", "a small file"))
    with pytest.raises(InputError, match="is larger than 0 GiB; give files of a rank each"):
        read_event_file(path)


def test_events_of_a_pipeline_have_a_limit_and_others_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([event(name, 1) for name in ("PP:0F0", *["x"] * 9, "PP:0F1")]))
    monkeypatch.setattr(event_file, "EVENTS", Limit(2, "events", "a small file"))
    assert len(read_event_file(path, of_kineto).events) == 2
    with pytest.raises(InputError, match="holds more than 2 events of a pipeline"):
        read_event_file(path)


def test_a_value_without_end_is_refused_and_events_before_it_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_file, "EVENT_LETTERS", Limit(1 << 20, "letters", "a short value"))
    path = tmp_path / "x.json"
    path.write_text('{"note": "' + "x" * 4_000_000 + '", "traceEvents": [{}]}')
    with pytest.raises(InputError, match="a value in it is longer than 1 MB"):
        read_event_file(path)
    path.write_text('[{"name": "PP:0F0"}, {"name": "' + "x" * 4_000_000 + '"}]')
    found = read_event_file(path)
    assert (found.cut_off, found.events) == (True, [{"name": "PP:0F0"}])


def test_the_same_file_twice_counts_once_and_packed_or_not(tmp_path: Path) -> None:
    text = json.dumps(kineto(0))
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(text.encode()))
    trace = read_trace([tmp_path])
    assert len(trace.spans) == 4
    assert [each.kind for each in trace.warnings][:1] == ["copied"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 200_000, "nested too deeply"),
        ('{"traceEvents": [' + '{"a":' * 200_000, "is not usable JSON"),
        ('[{"ts": NaN}]', "NaN is no number"),
        ('[{"ts": -Infinity}]', "-Infinity is no number"),
        ('[{"ts": ' + "9" * 10_000 + "}]", "a number is too long"),
        ("", "is not usable JSON"),
        ("\x00\x00", "is not usable JSON"),
        ("3", "holds no events"),
        ('{"traceEvents": 3}', "holds no events"),
    ],
    ids=range(9),
)
def test_hostile_json_is_refused_in_one_sentence(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=reason) as refused:
        read_event_file(path)
    assert len(str(refused.value)) < 300


def test_a_host_that_cannot_be_printed_is_named_as_far_as_it_can(tmp_path: Path) -> None:
    about = kineto(0)
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**about, "host_name": "a\ud800\n" + "b" * 9999}))
    (host,) = read_trace([path]).hosts
    assert host.name == "a??" + "b" * 252


def test_a_string_of_many_megabytes_is_read_past(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"note": "x" * 20_000_000, **kineto(0)}))
    assert len(read_trace([path]).spans) == 4
