"""``serried collective`` prints steps and their price, or refuses in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Call

RING = ("collective", "all-reduce", "--ranks", "8", "--algorithm", "ring", "--bytes", "1GiB")


def test_the_verdict_comes_first(serried: Call) -> None:
    first, second, *_ = serried(*RING).out.splitlines()
    assert first == (
        "all-reduce by ring, 8 ranks on one node, 1.00 GiB: 5.12 ms in 14 steps; "
        "a rank sends 1.75 GiB at most"
    )
    assert second == "busbw 367 GB/s, algbw 210 GB/s; 100% of the time waits for NVLink 4"


def test_a_step_says_who_sends_which_block_to_whom(serried: Call) -> None:
    out = serried("collective", "all-gather", "--ranks", "3", "--algorithm", "ring").out
    assert "0>1: 0  1>2: 1  2>0: 2" in out
    assert "0>1: 2  1>2: 0  2>0: 1" in out


def test_long_collectives_are_cut_by_the_rule_that_is_printed(serried: Call) -> None:
    out = serried("collective", "all-reduce", "--ranks", "16", "--algorithm", "ring").out
    rows = [line.split()[0] for line in out.splitlines() if line[:4].strip().isdecimal()]
    assert rows == [*map(str, range(8)), *map(str, range(26, 30))]
    assert "… 18 more steps" in out
    assert "of more than 16 steps the first 8 and the last 4 are printed" in " ".join(out.split())


def test_steps_that_are_asked_for_are_all_printed(serried: Call) -> None:
    out = serried(*RING, "--ranks", "32", "--steps", "20:40").out
    rows = [line.split()[0] for line in out.splitlines() if line[:4].strip().isdecimal()]
    assert rows == [*map(str, range(20, 40))]


def test_the_document_has_every_move(serried: Call) -> None:
    document = json.loads(serried(*RING, "--format", "json").out)
    assert document["schema"] == "serried.collective/1"
    assert document["ranks"] == list(range(8))
    assert len(document["steps"]) == len(document["step_times"]) == 14
    move = document["steps"][0][0]
    assert move == {"from": 0, "to": 1, "block": 7, "count": 1, "bytes": 1 << 27, "reduce": True}
    assert document["time"] == pytest.approx(document["launch_time"] + sum(document["step_times"]))


def test_blocks_that_do_not_divide_are_whole_bytes_that_add_up(serried: Call) -> None:
    words = ("collective", "all-gather", "--ranks", "7", "--algorithm", "ring", "--bytes", "100")
    document = json.loads(serried(*words, "--format", "json").out)
    assert [sum(move["bytes"] for move in step) for step in document["steps"]] == [100] * 6


def test_one_rank_sends_nothing(serried: Call) -> None:
    done = serried("collective", "all-reduce", "--ranks", "1")
    assert done.code == 0
    assert done.out.strip() == (
        "all-reduce of one rank: nothing travels, for it has all that it would be sent"
    )
    document = json.loads(
        serried("collective", "all-reduce", "--ranks", "1", "--format", "json").out
    )
    assert (document["steps"], document["time"]) == ([], 0.0)


def test_a_prime_number_of_ranks_on_unequal_nodes_is_fine(serried: Call) -> None:
    done = serried("collective", "all-reduce", "--ranks", "13", "--gpus-per-node", "8,4,1")
    assert done.code == 0
    assert "13 ranks on 3 nodes" in done.out


def test_16384_ranks_are_priced(serried: Call) -> None:
    done = serried("collective", "all-reduce", "--ranks", "16384", "--algorithm", "ring")
    assert "16,384 ranks on 2,048 nodes, 1.00 GiB" in done.out
    assert "… 32,754 more steps" in done.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("all-reduce", "--bytes", "0"),
            "bytes=0 leaves nothing to send; give a size such as 1GiB",
        ),
        (("all-reduce", "--bytes", "1furlong"), "bytes=1furlong is not a size in bytes"),
        (("all-reduce", "--ranks", "0"), "ranks=0 cannot be; a group has 1 to 131072"),
        (("all-reduce", "--ranks", "many"), "ranks=many is not a whole number"),
        (
            ("all-reduce", "--algorithm", "rings"),
            "all-reduce has no algorithm 'rings'; it has ring",
        ),
        (("all-reduc",), "there is no collective 'all-reduc'; those there are: all-reduce"),
        (("all-reduce", "--network", "x"), "there is no network 'x'; those there are: a100"),
        (("all-reduce", "--bandwidth", "0"), "a bandwidth of 0 GB/s moves nothing"),
        (("all-reduce", "--latency", "1,2,3"), "--latency takes one number, or two"),
        (("all-reduce", "--root", "9"), "rank 9 is not in the group, so it cannot be the root"),
        (("all-reduce", "--nics-per-node", "0"), "a node with 0 NICs reaches no other"),
        (("all-reduce", "--steps", "5"), "--steps takes a range such as 0:10; it got '5'"),
        (("all-reduce", "--steps", "20:30"), "steps 20:30 are none; there are steps 0 to 13"),
        (("all-reduce", "--busbw", "no.json"), "no.json"),
        (
            ("all-reduce", "--ranks", "4096", "--algorithm", "ring", "--format", "json"),
            "have more than 200,000 moves, which is more than a document holds",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(
    serried: Call, words: tuple[str, ...], told: str
) -> None:
    extra = () if "--algorithm" in words else ("--algorithm", "ring")
    done = serried("collective", *words, *extra)
    assert done.code == 2
    assert told in done.err
    assert done.err.startswith("serried: ") and done.err.count("\n") == 1


def test_times_come_from_a_table_that_was_measured(serried: Call, tmp_path: Path) -> None:
    row = {"operation": "all_reduce", "ranks": 4, "nodes": 1, "groups": 1}
    rows = [row | {"size_bytes": size, "time_ns": size * 2.0} for size in (1 << 20, 1 << 22)]
    file = tmp_path / "busbw.json"
    file.write_text(json.dumps({"schema": "serried.busbw/1", "source": "monday", "rows": rows}))
    out = serried(*RING, "--bytes", "2MiB", "--busbw", str(file)).out
    assert "2.00 MiB: 4.89 ms in 14 steps" in out
    assert "measured: all_reduce over 4 ranks on one node, 1.00 MiB: 2.10 ms" in out
    assert "NVLink" not in out  # a table tells of no link
    assert "(monday)" in out


def test_without_a_name_every_algorithm_is_listed(serried: Call) -> None:
    out = serried("collective").out
    assert "all-reduce" in out and "Patarasuk" in out


def test_it_speaks_chinese(serried: Call) -> None:
    first = serried(*RING, "--lang", "zh").out.splitlines()[0]
    assert first.startswith("all-reduce（ring），8 个 rank 在同一个节点上，1.00 GiB：用时 5.12 ms")


def test_algorithms_are_compared_by_size(serried: Call) -> None:
    out = serried("collective", "all-reduce", "--ranks", "64", "--compare").out
    assert out == serried("collective", "all-reduce", "--ranks", "64", "--algorithm", "all").out
    assert " ".join(out.split()).startswith(
        "quickest all-reduce over 64 ranks on 8 nodes: recursive below "
    )
    assert "is quicker than recursive" in out
    document = json.loads(
        serried("collective", "all-reduce", "--ranks", "64", "--compare", "--format", "json").out
    )
    assert document["schema"] == "serried.collective-comparison/1"
    assert len(document["times"]["ring"]) == len(document["sizes"]) == len(document["best"])
    assert document["crossings"][0]["before"] == document["best"][0]


def test_a_group_of_a_layout_is_shown_on_its_nodes(serried: Call) -> None:
    job = ("groups", "--world-size", "16", "--tp", "2")
    words = (*job, "--kind", "dp", "--rank", "3", "--collective", "all-gather")
    document = json.loads(serried(*words, "--algorithm", "ring", "--format", "json").out)
    assert document["ranks"] == [1, 3, 5, 7, 9, 11, 13, 15]
    assert document["nodes"] == [0, 0, 0, 0, 1, 1, 1, 1]
    first = serried(*job, "--collective").out.splitlines()[0]
    assert first.startswith("all-reduce by ")


def test_a_group_of_unequal_nodes_is_shown(serried: Call) -> None:
    words = ("groups", "--world-size", "12", "--gpus-per-node", "8,4", "--collective")
    document = json.loads(serried(*words, "--algorithm", "ring", "--format", "json").out)
    assert document["nodes"] == [0] * 8 + [1] * 4


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--collective", "--kind", "tp", "--kind", "dp"), "--collective shows one group, and 2"),
        (("--bytes", "1GiB"), "--bytes is of a collective; add --collective"),
        (("--collective", "--rank", "99"), "99"),
        (("--collective", "--advice"), "--advice and --collective are two questions"),
    ],
)
def test_a_group_that_cannot_be_shown_is_refused(
    serried: Call, words: tuple[str, ...], told: str
) -> None:
    done = serried("groups", "--world-size", "16", "--tp", "2", *words)
    assert done.code == 2
    assert told in done.err


@pytest.mark.parametrize("extra", [(), ("--compare",)], ids=["steps", "compare"])
@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_pictures_are_written(
    serried: Call, tmp_path: Path, extra: tuple[str, ...], ending: str, start: bytes
) -> None:
    file = tmp_path / f"picture.{ending}"
    words = ("collective", "all-reduce", "--ranks", "4", *extra, "-o", str(file))
    assert serried(*words).code == 0
    assert file.read_bytes().startswith(start)


def test_attention_says_how_many_pairs_of_blocks_ranks_compute_in_each_step(serried: Call) -> None:
    ring = ("collective", "attention", "--ranks", "4", "--algorithm", "ring")
    for split, pairs in (("zig-zag", ["2"] * 4), ("contiguous", ["2", "0-4", "0-4", "0-4"])):
        told = json.loads(serried(*ring, "--split", split, "--format", "json").out)
        ends = [dict.fromkeys((min(row), max(row))) for row in told["pairs"]]
        assert ["-".join(f"{each:g}" for each in row) for row in ends] == pairs
        printed = serried(*ring, "--split", split).out.split()
        assert printed.count("0-4") == pairs.count("0-4")


def test_without_a_mask_attention_computes_all_pairs(serried: Call) -> None:
    words = ("collective", "attention", "--ranks", "3", "--algorithm", "ring", "--mask", "none")
    told = json.loads(serried(*words, "--format", "json").out)
    assert told["pairs"] == [[4.0, 4.0, 4.0]] * 3


def test_a_mask_or_a_split_that_there_is_not_is_answered_with_those_there_are(
    serried: Call,
) -> None:
    refused = serried("collective", "attention", "--mask", "window")
    assert (refused.code, refused.err) == (
        2,
        "serried: mask=window is not known; it is causal or none\n",
    )
    refused = serried("collective", "attention", "--split", "striped")
    assert "a sequence is not split 'striped'; it is split zig-zag or contiguous" in refused.err
    refused = serried("collective", "all-reduce", "--algorithm", "ring", "--split", "zig-zag")
    assert "all-reduce by ring takes no split" in refused.err


def test_an_explanation_is_text_and_no_document(serried: Call) -> None:
    answer = serried("collective", "all-gather", "--explain", "--format", "json")
    assert answer.code == 2
    assert answer.err.startswith("serried: --explain is text")
