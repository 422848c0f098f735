from __future__ import annotations

from pathlib import Path

import pytest

from serried.views.cli.greeting import QUESTIONS
from tests.conftest import Call

TRAIN = b"""torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2 \\
  --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 \\
  --max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 --vocab-size 512
"""


def test_serried_alone_says_which_command_answers_which_question(serried: Call) -> None:
    answer = serried()
    assert (answer.code, answer.err) == (0, "")
    assert "  serried diagnose logs/ " in answer.out
    assert max(map(len, answer.out.splitlines())) <= 100


def test_serried_alone_greets_in_the_chosen_language(serried: Call) -> None:
    assert "哪个 rank 卡住或变慢，为什么" in serried("--lang", "zh").out


@pytest.mark.parametrize("command", [each for each, _ in QUESTIONS if "--" in each])
def test_a_command_that_the_greeting_shows_runs_as_it_stands(
    serried: Call, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.sh").write_bytes(TRAIN)
    answer = serried(*command.split())
    assert (answer.code, answer.err) == (0, "")


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
