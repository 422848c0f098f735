"""A collective for the page: over the group that is asked for, with the command that prints it."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.plan.traffic.transfers import step_transfers
from serried.views.web.collective.payload import OFFERS, collective_payload
from serried.views.web.collective.query import read_collective_query
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.query import read_query
from tests.views.web.reader import Message, read


def asked(**words: object) -> Message:
    return read(collective_payload({name: [str(value)] for name, value in words.items()}, "en"))


def test_a_group_of_a_layout_is_asked_for_by_kind_and_rank() -> None:
    words = {"world_size": 16, "tp": 2, "kind": "dp", "rank": 3}
    header = asked(name="all-gather", algorithm="ring", **words).header
    ranks = [each for each in header["places"] if each["rank"] >= 0]
    assert [each["rank"] for each in ranks] == [1, 3, 5, 7, 9, 11, 13, 15]
    assert [each["node"] for each in ranks] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert header["command"] == (
        "serried groups --world-size 16 --tp 2 --kind dp --rank 3 --collective all-gather "
        "--algorithm ring --bytes 1073741824"
    )


def test_ranks_without_a_layout_are_those_of_the_command_of_its_own() -> None:
    header = asked(name="all-reduce", ranks=12, algorithm="tree", bytes="1MiB").header
    assert header["command"] == (
        "serried collective all-reduce --ranks 12 --algorithm tree --bytes 1MiB"
    )


def test_the_command_says_how_attention_is_split_and_masked() -> None:
    asked_for = {"world_size": 8, "cp": 4, "kind": "cp", "split": "contiguous", "mask": "none"}
    header = asked(name="attention", algorithm="ring", bytes="1MiB", **asked_for).header
    assert header["command"] == (
        "serried groups --world-size 8 --cp 4 --kind cp --rank 0 --collective attention "
        "--algorithm ring --bytes 1MiB --split contiguous --mask none"
    )
    assert OFFERS["attention"]["ring"] == ["split", "mask"]
    assert OFFERS["attention"]["ulysses"] == ["mask"]
    assert OFFERS["all-reduce"]["ring"] == []


def test_what_is_left_out_is_the_quickest_algorithm_by_its_name() -> None:
    found = asked(ranks=8, bytes="1GiB")
    assert found.header["algorithm"] in OFFERS["all-reduce"]
    others = [
        asked(ranks=8, bytes="1GiB", algorithm=name).header["time"] for name in OFFERS["all-reduce"]
    ]
    assert found.header["time"] == min(others)
    assert found.header["launch_time"] + found.columns["seconds"].sum() == pytest.approx(
        found.header["time"]
    )


def test_dimensions_are_shown_with_collectives_that_there_are() -> None:
    assert {"all-reduce", "all-to-all", "send-receive", "attention"} <= set(OFFERS)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"kind": "dp", "world_size": "8", "rank": "99"}, "99"),
        ({"kind": "none", "world_size": "8"}, "none"),
        ({"bytes": "x"}, "bytes=x is not a size"),
        ({"bytes": "0"}, "bytes=0 leaves nothing to send"),
    ],
)
def test_a_question_that_cannot_be_is_refused(words: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_collective_query({name: [text] for name, text in words.items()})


def test_the_plan_of_the_job_says_bytes_and_network_where_it_is_asked_for() -> None:
    job = {"world_size": 64, "tp": 8, "pp": 4, "rank": 0}
    plan = {
        **{"model": "llama3-70b", "cluster": "dgx-a100", "sequence": 8192, "micro_batch": 1},
        **{"global_batch": 128, "priced": "plan"},
    }
    words = {name: [str(value)] for name, value in (job | plan).items()}
    transfers = step_transfers(read_plan_request(read_query(words), words))
    of_dp = {each.collective: each for each in transfers if each.kind == "dp"}

    header = asked(**job, **plan, kind="dp", name="all-gather").header
    assert header["size_bytes"] == round(of_dp["all_gather"].size_bytes)
    assert [each["collective"] for each in header["planned"]["uses"]] == [
        "reduce-scatter",
        "all-gather",
    ]
    assert header["command"].endswith("--network a100")
    on_h100 = asked(**job, **{**plan, "cluster": "dgx-h100"}, kind="dp", name="all-gather").header
    assert on_h100["size_bytes"] == header["size_bytes"]
    assert on_h100["time"] < header["time"]

    own = asked(**job, **plan, kind="dp", name="all-gather", bytes="1MiB").header
    assert own["size_bytes"] == 1 << 20, "what is asked for comes first"
    assert asked(**job, **plan, kind="cp", name="all-gather").header["planned"]["uses"] == []
    assert asked(**job, kind="dp", name="all-gather").header["planned"] is None
