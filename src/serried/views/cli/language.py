"""Which language a command line is answered in: the one asked for, else the environment's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import click

from serried.views.sentences import LANGUAGES, environment_language

Command = TypeVar("Command", bound=Callable[..., object])

HELP = "Language of the answer and of this help; by default that of the environment (LANG)."
ASKED = "serried.language"
"""Where a running command keeps its language."""


def language_of(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> str:
    """Returns the language that a command line asks for, which errors are said in as well.

    >>> language_of(["groups", "--lang", "zh"]), language_of(["groups"], {"LANG": "zh_CN.UTF-8"})
    ('zh', 'zh')
    >>> language_of(["groups", "--lang=en"], {"LANG": "zh_CN.UTF-8"})
    'en'
    """
    # Read here and not by click: the language is needed even for a line that click refuses.
    for name, following in zip(words, [*words[1:], ""], strict=False):
        option, equals, value = name.partition("=")
        asked = value if equals else following
        if option == "--lang" and asked in LANGUAGES:
            return asked
    return environment_language(environment)


def lang_option(command: Command) -> Command:
    """Adds ``--lang``, which goes before the environment, as the argument ``lang``."""
    return click.option(
        "--lang",
        type=click.Choice(LANGUAGES),
        default=current_language,
        callback=remember,
        help=HELP,
    )(command)


def current_language() -> str:
    """Returns the language that the command now running answers in."""
    context = click.get_current_context(silent=True)
    return language_in(context) if context else environment_language()


def language_in(context: click.Context) -> str:
    """Returns the language a command answers in: its own option's, the line's, the locale's."""
    told = context.meta.get(ASKED) or context.find_root().obj
    return told if told in LANGUAGES else environment_language()


def remember(context: click.Context, _: click.Parameter, lang: str) -> str:
    """Keeps the language that an option asks for, and returns it."""
    context.meta[ASKED] = lang
    return lang
