"""Help: every word of it in the language asked for, within the terminal's width."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from rich.cells import cell_len

from serried.views.cli.help import SpokenOption, about, catalogue, said
from serried.views.cli.main import COMMANDS
from serried.views.cli.main import serried as root
from serried.views.cli.trace.command import COMMANDS as TRACE
from serried.views.cli.trace.command import trace
from tests.conftest import Call
from tests.views.explain.reader import has_chinese

HIDDEN_FROM_WORDS = re.compile(
    r"--?[\w-]+|\S*[/.=@*_]\S*|\[[^\]]*\]|[A-Z][\w-]*(?:, [IW])*|\b(?:reduce-scatter|all-to-all|"
    r"all-reduce|all-gather|serried \w+(?: \w+)?|tp x cp x dp|hidden size|flight recorder dump)\b"
)
"""Options, paths, choices, names and terms, which stay in Latin letters in Chinese."""

ENGLISH = re.compile(r"(?<![\w-])[a-z]{2,}(?: [a-z]{2,})+(?![\w-])")


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yields the words of each command, groups of them first."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


def found(path: tuple[str, ...]) -> click.Command:
    command: click.Command = root
    for name in path:
        assert isinstance(command, click.Group)
        under = command.get_command(click.Context(command), name)
        assert under is not None
        command = under
    return command


PATHS = list(commands(root, ()))
EVERY = pytest.mark.parametrize("path", PATHS, ids=[" ".join(path) or "serried" for path in PATHS])


def prose(text: str) -> list[str]:
    """Returns the lines of help that are no examples of a command line."""
    lines = text.splitlines()
    return [each for each in lines if not re.match(r"  (serried|torchrun|srun|ssh) ", each)]


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("lang", ["en", "zh"])
@EVERY
def test_help_fits_the_terminal(
    serried: Call, monkeypatch: pytest.MonkeyPatch, path: tuple[str, ...], lang: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = prose(serried(*path, "--lang", lang, "--help").out)
    assert lines
    assert [line for line in lines if cell_len(line) > width] == []


@EVERY
def test_help_asked_for_in_chinese_is_chinese(serried: Call, path: tuple[str, ...]) -> None:
    text = serried(*path, "--help", "--lang", "zh").out
    assert text.startswith(f"用法：{' '.join(['serried', *path])} [选项]")
    joined = re.sub(r"\n +", " ", "\n".join(prose(text)))
    assert ENGLISH.findall(HIDDEN_FROM_WORDS.sub("·", joined)) == []


def test_a_chinese_locale_turns_help_as_it_turns_answers(
    serried: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert serried("--help").out.startswith("用法：serried [选项] 命令 [参数]...")
    assert serried("--lang", "en", "--help").out.startswith("Usage: serried [OPTIONS] COMMAND")


@EVERY
def test_every_help_text_says_what_is_meant(path: tuple[str, ...]) -> None:
    command = found(path)
    for param in command.get_params(click.Context(command)):
        if isinstance(param, click.Option):
            assert param.help, f"{param.opts[0]} has no help"
            words = param.help.split()
            assert len(words) > 1, param.help
            assert not param.help.startswith(("Of ", "Its ", "It ", "Write by")), param.help


def texts() -> set[str]:
    """Returns every text, heading and value's name that help can hold, in English."""
    held = {"Usage: ", "Options", "Commands", "[OPTIONS]", "COMMAND [ARGS]...", "required"}
    for path in PATHS:
        command = found(path)
        context = click.Context(command)
        paragraphs = (command.help or "").split("\n\n")
        held |= {" ".join(each.split()) for each in paragraphs if "\b" not in each} | {
            about(command)
        }
        for param in command.get_params(context):
            held.add(param.make_metavar(context))
            if isinstance(param, click.Option) and not isinstance(param, SpokenOption):
                held.add(param.help or "")
    from serried.views.cli.plan.tune import TuneCommand
    from serried.views.cli.train.options import SECTIONS

    return {*held, *SECTIONS, *TuneCommand.own_sections, "Help"}


def test_everything_that_help_says_has_its_chinese() -> None:
    latin = re.compile(r"\[[\w|.-]+\]|A \[B\]|0,1,…|[a-z0-9]+(?:\|[a-z0-9]+)+|BOOLEAN|")
    missing = {each for each in texts() - set(catalogue("zh")) if not latin.fullmatch(each)}
    assert missing == set()


def test_no_chinese_is_of_something_that_help_never_says() -> None:
    assert set(catalogue("zh")) - texts() == set()


def test_help_says_of_a_command_what_the_command_says_of_itself() -> None:
    for group, commands in ((root, COMMANDS), (trace, TRACE)):
        for name, listed in commands.items():
            command = group.get_command(click.Context(group), name)
            assert command is not None
            assert listed.about == about(command)


@pytest.mark.parametrize("english", [each for each in catalogue("zh") if " " in each])
def test_what_help_says_in_chinese_is_chinese(english: str) -> None:
    chinese = said(english, "zh")
    assert has_chinese(chinese), english
    is_sentence = english[-1] == "." and english[-2] != "."
    assert (chinese[-1] == "。") == is_sentence or "node1" in english


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("groups", "--no-such"), "没有 --no-such 这个选项"),
        (("nothing",), "没有 nothing 这个命令"),
        (("groups", "--tp"), "选项 --tp 后面要写一个值"),
        (("export",), "缺少参数 CHECKPOINT"),
        (("trace", "paddle"), "缺少选项 --log_dir"),
        (("groups", "a", "b"), "多了一个参数 b"),
        (("groups", "--format", "xml"), "--format 的值不对：没有 xml，可以是 table、json、csv"),
        (("trace", "stats", "x", "--tokens", "0"), "--tokens 的值不对：0 超出范围，要求 x>=1"),
        (("train", "--lr", "x"), "--lr 的值不对：x 不是数"),
    ],
)
def test_click_s_own_refusals_are_chinese(serried: Call, words: tuple[str, ...], told: str) -> None:
    assert told in serried("--lang", "zh", *words).err
