"""The language of the command line: asked for, or the environment's, and Chinese throughout."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from serried.views.cli.help import LazyCommands
from serried.views.cli.language import language_of
from serried.views.cli.main import COMMANDS
from serried.views.cli.main import serried as root
from serried.views.sentences import LOCALE, environment_language
from tests.conftest import Call, Outcome
from tests.trace.recorded_run import Run
from tests.views.explain.reader import has_chinese

FILES = Path(__file__).parents[2] / "launch" / "files"
SIXTEEN = ("--world-size", "16", "--tp", "2", "--pp", "4")

TERMS = re.compile(
    r"local rank|world size|serried groups|serried trace compare|all-to-all|all-gather"
    r"|reduce-scatter|all-reduce"
    r"|\S*[/\\.=_…$]\S*|--?[\w-]+(?: [A-Z_|]+)?|'[^']*'"
)
"""What stays in Latin letters in Chinese: terms, paths, settings, options, quoted words."""

ENGLISH = re.compile(r"(?<![\w-])[a-z]{2,}(?: [a-z]{2,})+(?![\w-])")
"""Two small Latin words in a row: what nobody translated."""


def english_in(answer: Outcome) -> list[str]:
    return ENGLISH.findall(TERMS.sub(" · ", answer.out + answer.err))


# ----------------------------------------------------------------------- which language


@pytest.mark.parametrize("words", [["groups", "--lang", "zh"], ["--lang=zh", "groups"]])
def test_the_language_asked_for_goes_before_the_environment(words: list[str]) -> None:
    assert language_of(words, {"LANG": "en_US.UTF-8"}) == "zh"
    assert language_of(["groups", "--lang", "en"], {"LANG": "zh_CN.UTF-8"}) == "en"


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh-CN", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({}, "en"),
    ],
)
def test_without_an_option_the_locale_decides(environment: dict[str, str], language: str) -> None:
    assert environment_language(environment) == language
    assert language_of(["groups"], environment) == language


def test_an_unknown_language_leaves_errors_to_the_environment() -> None:
    assert language_of(["groups", "--lang", "fr"], {"LANG": "zh_CN.UTF-8"}) == "zh"


def test_the_environment_turns_answers_and_errors(
    serried: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in LOCALE:
        monkeypatch.setenv(name, "zh_CN.UTF-8")
    assert "16 个 rank = pp 4 x dp 2 x tp 2" in serried("groups", *SIXTEEN).out
    assert "16 ranks = pp 4 x dp 2 x tp 2" in serried("groups", *SIXTEEN, "--lang", "en").out
    refused = serried("groups", "--world-size", "16", "--tp", "3")
    assert refused.err == "serried: tp=3 不能整除 16 个 rank；可用的取值：1、2、4、8、16\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_takes_a_language(name: str) -> None:
    assert isinstance(root, LazyCommands)
    command = root.get_command(click.Context(root), name)
    assert command is not None
    several: list[click.Command | None] = [command]
    if isinstance(command, LazyCommands):
        several += [command.get_command(click.Context(command), each) for each in command.named]
    for each in several:
        assert each and [param.name for param in each.params].count("lang") == 1


@pytest.mark.parametrize("place", [0, 1, 2, 4])
def test_the_option_may_stand_before_a_command(serried: Call, tmp_path: Path, place: int) -> None:
    Run(pp=2, tp=1, dp=1, num_microbatches=2, num_steps=1).write(tmp_path)
    words = ["trace", "stats", str(tmp_path), "--format=table"]
    words[place:place] = ["--lang", "zh"]
    assert "\n运行 run-a：2 个 rank" in serried(*words).out


# ----------------------------------------------------------------------- answers in Chinese


@pytest.mark.parametrize(
    "words",
    [
        ("groups", *SIXTEEN),
        ("groups", *SIXTEEN, "--kind", "dp"),
        ("groups", *SIXTEEN, "--rank", "5"),
        ("groups", *SIXTEEN, "--layers", "61"),
        ("groups", *SIXTEEN, "--layers", "64", "--rank", "5"),
        ("groups", *SIXTEEN, "--compare", "internlm"),
        ("groups", "--world-size", "16", "--compare", "megatron"),
        ("groups", "--world-size", "16", "--sources"),
        ("groups", "--world-size", "96,128,100", "--tp", "8", "--pp", "4"),
        ("groups", "--world-size", "64", "--tp", "4", "--cp", "4", "--ep", "8", "--advice"),
        ("groups", "--world-size", "80", "--framework", "internlm", "--advice"),
        ("groups", "--world-size", "32", "--tp", "8", "--nvlink-domain", "16"),
        ("groups", "--world-size", "2048"),
        ("groups", str(FILES / "megatron_gpt_175b.sh"), "--sources"),
        ("groups", str(FILES / "ds_train.sh")),
        ("groups", str(FILES / "megatron_mixtral.sbatch")),
        ("schedule",),
        ("schedule", "1f1b", "--stages", "4", "--microbatches", "8"),
        ("schedule", "zbv", "--stages", "4", "--microbatches", "8", "--latency", "0.1"),
        ("schedule", "1f1b,zb-h1,v-min", "--stages", "4", "--microbatches", "8"),
    ],
    ids=" ".join,
)
def test_an_answer_in_chinese_holds_no_english(serried: Call, words: tuple[str, ...]) -> None:
    answer = serried(*words, "--lang", "zh")
    assert answer.code in (0, 1)
    assert has_chinese(answer.out)
    assert english_in(answer) == []


def test_what_a_run_measured_is_told_in_chinese(serried: Call, tmp_path: Path) -> None:
    Run(pp=4, tp=1, dp=2, num_microbatches=8, num_steps=2).write(tmp_path)
    answer = serried("trace", "stats", str(tmp_path), "--lang", "zh")
    lines = answer.out.splitlines()
    assert lines[0] == "气泡占一步（33.0 ms）的 27.3%；1f1b 本身就有 27.3%"
    assert lines[4] == "运行 run-a：8 个 rank，在 1 台主机上，2 个完整的 step，656 个 span"
    assert lines[5].endswith("；1f1b，8 个微批次；计算是用固定时长模拟的")
    bubble = "1 - 忙碌 / (rank 数 x 窗口)，计算是模拟的；等待不算忙碌"
    assert f"实测气泡             27.3%   {bubble}" in lines
    assert "send 与 receive 配上对的：384 个里有 384 个" in lines
    assert english_in(answer) == []


# ----------------------------------------------------------------------- errors in Chinese

BROKEN = {
    "a.yaml": "parallelism:\n  tp: [1\n",
    "b.toml": "[parallelism]\ntensor_parallel_degree 1\n",
    "c.py": "parallel = dict(tensor=2\nmodel = dict()\n",
    "d.json": '{"zero_optimization": {"stage": }}',
    "e.sh": 'torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2 "abc',
    "f.sh": "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size $TP",
    "g.txt": "hello\n",
    "h.sh": "torchrun --nproc_per_node 8 t.py --tensor-model-parallel-size 2 "
    "--tensor-model-parallel-size 4",
    "i.yaml": "parallelism:\n\ttp: 1\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_read_is_refused_in_chinese(
    serried: Call, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text(BROKEN[name], encoding="utf-8")
    answer = serried("groups", str(tmp_path / name), "--lang", "zh")
    assert answer.code == 2
    assert has_chinese(answer.err)
    assert english_in(answer) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("groups", "--foo"), "没有 --foo 这个选项；是不是想写其中一个：--format、--root？"),
        (
            ("groups", "--format", "x"),
            "--format 的值不对：没有 x，可以是 table、json、csv、svg、png",
        ),
        (("groups", "--tp"), "选项 --tp 后面要写一个值"),
        (("groups", "a", "b"), "多了一个参数 b"),
        (("trace", "merge"), "缺少参数 DIR..."),
        (("trace", "nope"), "没有 nope 这个命令；有：compare、merge、paddle、stats"),
        (("train", "--lr", "x"), "--lr 的值不对：x 不是数"),
        (("groups", "--world-size", "x"), "world_size=x 不是整数；要写 16 这样的数"),
        (("check", "--nproc", "x"), "--nproc 要一个整数，例如 16；得到的是“x”"),
        (("groups", "none.sh"), "读不了 none.sh：没有这个文件或文件夹"),
        (("schedule", "none.csv"), "读不了 none.csv：没有这个文件或文件夹"),
        (
            ("schedule", "chimera", "--stages", "4", "--microbatches", "7"),
            "chimera 不能用 7 个微批次，要是 4 的倍数，例如 4 或 8",
        ),
        (
            ("groups", "--world-size", "24", "--set", "gtp_remat_size=2"),
            "megatron 0.16.1 没有“gtp_remat_size”这个设置；有它的版本：0.19 起",
        ),
        (
            ("groups", "--world-size", "24", "--dp", "5"),
            "dp=5 对不上：没有其他轴时，dp 就是 24",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_told_in_chinese(serried: Call, words: tuple[str, ...], sentence: str) -> None:
    answer = serried(words[0], "--lang", "zh", *words[1:])
    assert answer.code == 2
    assert answer.err == f"serried: {sentence}\n"


def test_a_note_beside_an_answer_is_told_in_chinese(serried: Call, tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    words = ("schedule", "1f1b", "--stages", "2", "--microbatches", "2", "--group", "2")
    answer = serried(*words, "-o", str(path), "--lang", "zh")
    assert answer.err == f"serried: 1f1b 不分组，--group 对它不起作用\n已写入 {path}\n"
