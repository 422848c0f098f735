"""A page for each command, made of its own help, in both languages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from inspect import cleandoc

import click

from serried.views.cli.help import SpokenFormatter, about, meaning_in, said, term_in, usage_words
from serried.views.cli.main import serried


class PageFormatter(SpokenFormatter):
    """Writes help as Markdown: paragraphs, examples as code, options as tables."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Writes the line of usage as code."""
        self.write(f"```text\n{prog} {' '.join(usage_words(args, self.lang))}\n```\n\n")

    def write_heading(self, heading: str) -> None:
        """Writes a heading below that of the page."""
        self.write(f"## {said(heading, self.lang)}\n\n")

    def write_text(self, text: str) -> None:
        """Writes paragraphs; one that begins with a backspace holds commands."""
        for paragraph in cleandoc(text).split("\n\n"):
            if paragraph.startswith("\b\n"):
                self.write(f"```sh\n{cleandoc(paragraph[2:])}\n```\n\n")
            else:
                self.write(plain(said(" ".join(paragraph.split()), self.lang)) + "\n\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Writes options and what they do as a table."""
        head = ("选项", "作用") if self.lang == "zh" else ("option", "what it does")
        self.write(f"| {head[0]} | {head[1]} |\n|---|---|\n")
        for term, text in rows:
            # A stroke within code ends no cell for the generator, which would show a backslash.
            meaning = plain(meaning_in(text, self.lang)).replace("|", "\\|")
            self.write(f"| `{term_in(term, self.lang)}` | {meaning} |\n")
        self.write("\n")


def plain(text: str) -> str:
    """Returns a text in which Markdown finds nothing to mark up.

    >>> plain("a *b* [c]")
    'a \\\\*b\\\\* \\\\[c\\\\]'
    """
    return "".join(f"\\{each}" if each in "\\`*_[]<>#" else each for each in text)


def commands() -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yields every command with the words that name it, those of groups behind their group.

    >>> [" ".join(words) for words, _ in commands()][:2]
    ['groups', 'schedule']
    """
    yield from _below(serried, ())


def _below(
    group: click.Group, words: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*words, name), command
        if isinstance(command, click.Group):
            yield from _below(command, (*words, name))


def page(words: tuple[str, ...], command: click.Command, lang: str) -> str:
    """Returns the page of a command, in Markdown."""
    formatter = PageFormatter(width=100, max_width=100, lang=lang)
    with command.context_class(command, info_name=" ".join(("serried", *words))) as context:
        context.obj = lang
        formatter.write(f"# serried {' '.join(words)}\n\n")
        # click writes the usage first; a reader wants to know first what the command is for.
        command.format_help(context, formatter)
    return formatter.getvalue()


@cache
def pages(lang: str) -> dict[str, str]:
    """Returns the pages of all commands by their paths, first the one that lists them."""
    told = {f"commands/{'-'.join(words)}.md": page(words, each, lang) for words, each in commands()}
    return {"commands/index.md": _index(lang), **told}


def _index(lang: str) -> str:
    title = "命令" if lang == "zh" else "Commands"
    told = (
        "这些页由命令自己的 `--help` 生成。"
        if lang == "zh"
        else "These pages are made of what each command's own `--help` says."
    )
    links = (
        (f"[`serried {' '.join(words)}`]({'-'.join(words)}.md)", each) for words, each in commands()
    )
    rows = "".join(f"| {link} | {plain(said(about(each), lang))} |\n" for link, each in links)
    head = "| 命令 | 作用 |" if lang == "zh" else "| command | what it does |"
    return f"# {title}\n\n{told}\n\n{head}\n|---|---|\n{rows}"
