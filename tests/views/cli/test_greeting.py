from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Call


def test_serried_alone_says_which_command_answers_which_question(serried: Call) -> None:
    answer = serried()
    assert (answer.code, answer.err) == (0, "")
    assert "  serried diagnose logs/ " in answer.out
    assert max(map(len, answer.out.splitlines())) <= 100


def test_serried_alone_greets_in_the_chosen_language(serried: Call) -> None:
    assert "哪个 rank 卡住或变慢，为什么" in serried("--lang", "zh").out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("schedul",), "there is no command 'schedul'; did you mean 'schedule'?"),
        (("trace", "sats"), "there is no command 'sats'; did you mean 'stats'?"),
        (("schedul", "--lang", "zh"), "没有 schedul 这个命令；是不是想写 schedule？"),
    ],
)
def test_a_misspelt_command_is_answered_by_the_nearest(
    serried: Call, words: tuple[str, ...], sentence: str
) -> None:
    answer = serried(*words)
    assert (answer.code, answer.err) == (2, f"serried: {sentence}\n")


def test_a_word_near_no_command_is_answered_by_all_of_them(serried: Call) -> None:
    answer = serried("xyzzy")
    assert answer.err.startswith("serried: there is no command 'xyzzy'; there are groups, ")
    assert "demo" in answer.err


def test_a_file_without_a_command_is_answered_by_the_command_that_reads_it(
    serried: Call, tmp_path: Path
) -> None:
    script = tmp_path / "train.sh"
    script.write_text("torchrun train.py\n")
    assert f"'serried groups {script}' shows its groups" in serried(str(script)).err
