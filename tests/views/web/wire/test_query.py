"""The page's questions: read word by word, and each bad word gets its one sentence."""

from __future__ import annotations

import shlex

import pytest

from serried.errors import InputError
from serried.views.cli.main import run
from serried.views.web.wire.query import (
    MAX_WORLD_SIZE,
    Shown,
    read_language,
    read_query,
    read_rank,
    request_of,
)


def words(**each: str) -> dict[str, list[str]]:
    return {name: value.split("\n") for name, value in each.items()}


def test_what_no_word_says_is_as_on_the_command_line() -> None:
    query = read_query(words(world_size="16"))
    assert (query.request.framework_at, query.layout.sizes["tp"]) == ("megatron", 1)
    assert (query.placement.gpus_per_node, query.dims, query.kinds) == (8, (), ())


def test_a_question_without_ranks_asks_for_them() -> None:
    with pytest.raises(InputError) as caught:
        read_query({})
    told = "the number of ranks is missing; give it, such as --world-size 16"
    assert str(caught.value) == told


def test_every_word_reaches_its_size() -> None:
    asked = words(
        framework="internlm",
        world_size="64",
        tp="2",
        pp="4",
        dp="8",
        zero1="4",
        nettest="5",
        gpus_per_node="4",
        gpus_per_rank="2",
        set="num_experts=4\nzero1.fsdp = true",
    )
    request = request_of(asked)
    sizes, placement = request.sizes(), request.placement(64)
    assert (request.framework_at, sizes.world_size) == ("internlm", 64)
    assert (sizes.tp, sizes.pp, sizes.dp) == (2, 4, 8)
    assert (sizes.zero1, sizes.nettest, sizes.ep, sizes.etp) == (4, 5, 1, None)
    assert sizes.options == {"num_experts": "4", "zero1.fsdp": "true"}
    assert (placement.gpus_per_node, placement.gpus_per_rank) == (4, 2)


def test_dimensions_and_kinds_in_view_stand_once() -> None:
    query = read_query(words(world_size="16", tp="2", dims="tp,dp,tp", kind="mp"))
    assert (query.dims, query.kinds) == (("tp", "dp"), ("mp",))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"world_size": "abc"}, "world_size=abc is not a whole number; one such as 16 is"),
        ({"world_size": "1.5"}, "world_size=1.5 is not a whole number; one such as 16 is"),
        ({"tp": "٣"}, "tp=٣ is not a whole number; one such as 16 is"),
        ({"tp": "9" * 20}, f"tp={'9' * 20} is too large; it is at most {2**63 - 1}"),
        ({"dp": "1" * 5000}, f"dp={'1' * 40}… is too large; it is at most {2**63 - 1}"),
        ({"world_size": "9" * 20}, f"world_size={'9' * 20} is too large; it is at most {1 << 24}"),
        ({"world_size": "99999999"}, "world size 99999999 is more than serried lays out; at most"),
        (
            {"gpus_per_node": "2000000"},
            "gpus_per_node=2000000 is more than a node has; it is at most",
        ),
        ({"world_size": "0"}, "world size 0 cannot be; it is at least 1 rank"),
        ({"world_size": "-8"}, "world size -8 cannot be; it is at least 1 rank"),
        ({"tp": "-2"}, "tp=-2; a size is at least 1"),
        (
            {"world_size": "131073"},
            "a world of 131073 ranks is more than this page draws, which is 131072; "
            "'serried groups' has no such bound",
        ),
        (
            {"set": "experts"},
            "'experts' is not a setting; one reads KEY=VALUE, such as num_experts=4",
        ),
        ({"gpus_per_rank": "3"}, "gpus_per_rank=3 does not divide 8 GPUs of a node; "),
    ],
)
def test_a_bad_word_gets_one_sentence(asked: dict[str, str], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_query(words(**{"world_size": "16", **asked}))
    assert str(caught.value).startswith(sentence)


def test_the_largest_world_is_allowed() -> None:
    assert read_query(words(world_size=str(MAX_WORLD_SIZE))).layout.world_size == MAX_WORLD_SIZE


def test_a_rank_and_a_language_are_words_like_others() -> None:
    assert (read_rank(words(rank="5")), read_language(words(lang="zh"))) == (5, "zh")
    with pytest.raises(InputError, match="rank=x is not a whole number"):
        read_rank(words(rank="x"))
    with pytest.raises(InputError, match="language 'fr' is not known"):
        read_language(words(lang="fr"))


def test_data_groups_have_context_folded_in_when_context_is_in_view() -> None:
    query = read_query(words(world_size="16", cp="2", dims="dp,cp"))
    assert query.shown() == [Shown("dp", "dp_cp"), Shown("cp", "cp")]
    alone = read_query(words(world_size="16", cp="2", dims="dp"))
    assert alone.shown() == [Shown("dp", "dp")]


def test_a_framework_without_a_dimension_says_which_it_has() -> None:
    query = read_query(words(world_size="16", framework="internlm", pp="2", dims="cp"))
    with pytest.raises(
        InputError, match="internlm has no cp groups; its dimensions are dp, tp, pp"
    ):
        query.shown()


def test_a_kind_that_is_not_made_is_named() -> None:
    query = read_query(words(world_size="16", kind="nettest"))
    with pytest.raises(InputError, match="megatron makes no group kind 'nettest' here"):
        query.shown()


@pytest.mark.parametrize(
    ("asked", "command"),
    [
        ({"tp": "2", "pp": "4", "dims": "tp"}, "--world-size 16 --tp 2 --pp 4 --kind tp"),
        (
            {"cp": "2", "dims": "dp,cp", "kind": "mp"},
            "--world-size 16 --cp 2 --kind dp_cp --kind cp --kind mp",
        ),
        (
            {"framework": "internlm", "zero1": "4", "dims": "dp"},
            "--world-size 16 --zero1-size 4 --framework internlm --kind data",
        ),
        (
            {"order": "tp-cp-ep-pp-dp", "gpus_per_node": "4", "gpus_per_rank": "2", "dims": "pp"},
            "--world-size 16 --order tp-cp-ep-pp-dp --gpus-per-node 4 --gpus-per-rank 2 --kind pp",
        ),
        (
            {"cp": "4", "set": "hierarchical_context_parallel_sizes=2 2", "dims": "cp"},
            "--world-size 16 --cp 4 --set 'hierarchical_context_parallel_sizes=2 2' --kind cp",
        ),
    ],
)
def test_the_command_says_the_same_and_runs(
    asked: dict[str, str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    query = read_query(words(world_size="16", **asked))
    shown = query.shown()
    assert query.command(shown) == f"serried groups {command}"
    assert run(["groups", *shlex.split(command)]) == 0
    printed = capsys.readouterr().out
    assert all(f"{each.kind} group" in printed for each in shown)
