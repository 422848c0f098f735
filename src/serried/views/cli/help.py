"""Help in the language of the answer: what click lays out, said and wrapped by columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.cells import cell_len

from serried.errors import InputError, listed
from serried.views.cli.language import HELP, current_language, language_in, remember
from serried.views.explain.plain import wrap
from serried.views.sentences import LANGUAGES, read_catalogue

FIRST_COLUMN = 30
"""Columns of a term at most, beside which its meaning still begins."""

_EXTRAS = re.compile(r"(?:^|  )\[([^\[\]]*)\]$")
"""What click puts behind a help text: its default, its range, and whether it must be given."""


class SpokenFormatter(click.HelpFormatter):
    """Writes help in one language; Chinese takes two columns a character and has no spaces."""

    def __init__(self, *, width: int | None, max_width: int | None, lang: str) -> None:
        super().__init__(width=width, max_width=max_width)
        self.lang = lang

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Writes the line of usage."""
        start = f"{said(prefix or 'Usage: ', self.lang)}{prog} "
        words = " ".join(usage_words(args, self.lang))
        lines = wrap(words, max(20, self.width - cell_len(start)))
        gap = " " * cell_len(start)
        self.write("".join(f"{start if i == 0 else gap}{each}\n" for i, each in enumerate(lines)))

    def write_heading(self, heading: str) -> None:
        """Writes a heading."""
        colon = "：" if self.lang == "zh" else ":"
        self.write(f"{' ' * self.current_indent}{said(heading, self.lang)}{colon}\n")

    def write_text(self, text: str) -> None:
        """Writes paragraphs; one that begins with a backspace keeps its lines, as examples do."""
        indent = " " * self.current_indent
        blocks = []
        for paragraph in cleandoc(text).split("\n\n"):
            if paragraph.startswith("\b\n"):
                lines = paragraph.splitlines()[1:]
            else:
                told = said(" ".join(paragraph.split()), self.lang)
                lines = wrap(told, self.width - len(indent))
            blocks.append("".join(f"{indent}{each}\n" for each in lines))
        self.write("\n".join(blocks))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = FIRST_COLUMN, col_spacing: int = 2
    ) -> None:
        """Writes terms with their meanings in two columns."""
        told = [(term_in(term, self.lang), meaning_in(text, self.lang)) for term, text in rows]
        widest = max((cell_len(term) for term, _ in told), default=0)
        first = min(widest, col_max) + col_spacing
        indent = " " * self.current_indent
        for term, meaning in told:
            lines = wrap(meaning, max(20, self.width - len(indent) - first)) if meaning else [""]
            # A term wider than its column has a line of its own, and its meaning begins below it.
            if cell_len(term) > first - col_spacing:
                self.write(f"{indent}{term}\n")
                term = ""
            for line in lines:
                gap = " " * (first - cell_len(term))
                self.write(f"{indent}{term}{gap}{line}".rstrip() + "\n")
                term = ""


class SpokenOption(click.Option):
    """Holds its help in every language itself, instead of in the catalogue of texts."""

    def __init__(self, declarations: Sequence[str], *, spoken: Mapping[str, str], **rest: Any):
        super().__init__(declarations, help=spoken["en"], **rest)
        self.spoken = spoken

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Returns the option as it is written, and what it does."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        said_here = self.spoken[language_in(ctx)]
        return record[0], record[1].replace(self.spoken["en"], said_here, 1)


class SpokenContext(click.Context):
    """Gives help in the language of the answer."""

    def make_formatter(self) -> click.HelpFormatter:
        """Returns what lays the help out."""
        return SpokenFormatter(
            width=self.terminal_width, max_width=self.max_content_width, lang=language_in(self)
        )


class LazyCommand(NamedTuple):
    """Names a command's module, and says what it does, so that help need not import it."""

    module: str
    """Below this folder; the click command in it has the command's name."""
    about: str
    """The first sentence of its own help, or its short help."""


class LazyCommands(click.Group):
    """Loads a command's module when it is asked for, and lists what commands do without that."""

    def __init__(self, *given: Any, named: Mapping[str, LazyCommand], **rest: Any) -> None:
        super().__init__(*given, **rest)
        self.named = named

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of all commands, in their order."""
        return list(self.named)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Returns a command, or None when there is none of that name."""
        if cmd_name not in self.named:
            return None
        module = import_module(f"serried.views.cli.{self.named[cmd_name].module}")
        command: click.Command = getattr(module, cmd_name)
        return speaking(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Returns the command that the first word names, and the words behind it.

        Raises InputError for a name that no command has, with the nearest that one has.
        """
        name = args[0]
        if name in self.named or name.startswith("-"):
            return super().resolve_command(ctx, args)
        if Path(name).exists():
            raise InputError(
                "a command stands before the file; 'serried groups {name}' shows its groups",
                name=name,
            )
        from difflib import get_close_matches

        if near := get_close_matches(name, self.named, n=1):
            raise InputError(
                "there is no command '{name}'; did you mean '{near}'?", name=name, near=near[0]
            )
        known = listed(self.named, limit=len(self.named))
        raise InputError(
            "there is no command '{name}'; there are {known}", name=name[:40], known=known
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands in their order."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.about) for name, each in self.named.items()])


def about(command: click.Command) -> str:
    """Returns what a command does, in a sentence."""
    paragraph = cleandoc(command.help or "").split("\n\n")[0]
    return command.short_help or " ".join(paragraph.split())


def speaking(command: click.Command) -> click.Command:
    """Returns ``command`` with ``--lang`` and help in that language, where it has none."""
    command.context_class = SpokenContext
    if all(param.name != "lang" for param in command.params):
        command.params.append(
            click.Option(
                ["--lang"],
                type=click.Choice(LANGUAGES),
                default=current_language,
                callback=remember,
                expose_value=False,
                help=HELP,
            )
        )
    return command


@cache
def catalogue(lang: str) -> Mapping[str, str]:
    """Returns what help says in ``lang`` by its English; nothing for English itself."""
    if lang == "en":
        return {}
    return read_catalogue(Path(__file__).with_name(f"help.{lang}.toml"))


def said(text: str, lang: str) -> str:
    """Returns a text of the help in ``lang``; as it is where nothing is written.

    >>> said("Options", "zh"), said("Options", "en")
    ('选项', 'Options')
    """
    told = catalogue(lang).get(text, text)
    return told.replace("{frameworks}", _frameworks(lang)) if "{frameworks}" in told else told


def _frameworks(lang: str) -> str:
    from serried.frameworks import FRAMEWORKS

    return ("、" if lang == "zh" else ", ").join(FRAMEWORKS)


def usage_words(args: str, lang: str) -> list[str]:
    """Returns the words of a usage line, each said; ``COMMAND [ARGS]...`` is one.

    >>> usage_words("[OPTIONS] COMMAND [ARGS]...", "zh")
    ['[选项]', '命令 [参数]...']
    """
    # click writes a group's words as 'COMMAND [ARGS]...', which is said as one phrase.
    words = re.findall(r"COMMAND \[ARGS\]\.\.\.|A \[B\]|\S+", args)
    return [said(word, lang) for word in words]


def term_in(term: str, lang: str) -> str:
    """Returns an option with its value's name said, or an argument, or a command's name.

    >>> term_in("-o, --output PATH", "zh"), term_in("--lang [en|zh]", "zh")
    ('-o, --output 路径', '--lang [en|zh]')
    """
    names = re.match(r"((?:--?[\w-]+(?:, )?)+) ?(.*)", term)
    return f"{names[1]} {said(names[2], lang)}".rstrip() if names else term


def meaning_in(text: str, lang: str) -> str:
    """Returns a help text said, with its default, range and duty behind it.

    >>> meaning_in("Ranks to start on this machine.  [default: 8]", "zh")
    '在本机启动多少个 rank。[默认 8]'
    """
    extras = _EXTRAS.search(text)
    body = said(text[: extras.start()] if extras else text, lang)
    if extras is None:
        return body
    # click joins its remarks by '; ', as in '[default: 4; x>=1]'.
    parts = [_extra(part, lang) for part in extras[1].split("; ")]
    if lang == "en":
        return f"{body} [{'; '.join(parts)}]".strip()
    return f"{body}[{'，'.join(parts)}]"


def _extra(part: str, lang: str) -> str:
    """Returns one remark, such as ``default: 4`` or ``required``, said."""
    default = part.removeprefix("default: ")
    if default == part:
        return said(part, lang)
    # A list in one word is too wide for a column; with spaces it can be broken.
    shown = default.replace(",", ", ") if len(default) > FIRST_COLUMN else default
    return f"默认 {shown}" if lang == "zh" else f"default: {shown}"
