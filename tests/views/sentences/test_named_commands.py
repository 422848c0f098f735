"""Commands that sentences name: each is one of ours, and takes the options that stand there."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.test_docs import ROOT
from website.commands import commands

CATALOGUE = ROOT / "src" / "serried" / "views" / "sentences" / "zh.toml"
SENTENCES = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
OPTIONS = {
    " ".join(words): {option for each in command.params for option in each.opts}
    for words, command in commands()
}
NAMED = re.compile(r"\bserried ([a-z]+(?: [a-z]+)?)((?: (?:--[a-z0-9-]+|[A-Z{][\w{}]*|[a-z]\w*))*)")


def named(text: str) -> list[tuple[str, set[str]]]:
    """Returns the commands that a sentence names, each with its options.

    Behind serried may stand a verb, too: what is no command counts where options follow it.

    >>> named("run serried schedule NAME --pp N, then serried trace stats RUN")
    [('schedule', {'--pp'}), ('trace stats', set())]
    """
    found = []
    for match in NAMED.finditer(text):
        first, _, _ = match[1].partition(" ")
        command = match[1] if match[1] in OPTIONS else first
        options = set(re.findall(r"--[a-z0-9-]+", match[2]))
        if options or command in OPTIONS:
            found.append((command, options))
    return found


def test_sentences_name_commands() -> None:
    assert sum(bool(named(text)) for text in SENTENCES) > 20


@pytest.mark.parametrize("which", ["english", "chinese"])
def test_every_command_that_a_sentence_names_is_there_with_its_options(which: str) -> None:
    texts = SENTENCES if which == "english" else SENTENCES.values()
    wrong = [
        (text, command, options - OPTIONS.get(command, set()))
        for text in texts
        for command, options in named(text)
        if command not in OPTIONS or not options <= OPTIONS[command]
    ]
    assert wrong == []
