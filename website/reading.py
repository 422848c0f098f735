"""What a page of docs is in the site: its language, its place in the navigation, its links."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection

BLOCK = re.compile(r"^( *)(`{3,}).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
SWITCH = re.compile(r"[ \n]?[(（]\[(?:中文|English)\]\([\w./-]+\.md\)[)）]")
"""The link to a page's other language, which the site has on top of every page."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")
INSIDE = {"../src/serried/schemas": "schemas.md"}
"""Folders of the repository that have a page in the site."""
ITEM = re.compile(r"([-*]|\d+\.) ")
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
ROW = re.compile(r"^\|.*$", re.MULTILINE)

Entry = str | dict[str, "str | list[Entry]"]


def language_of(path: str) -> str:
    """Returns the language of a page or picture by its name.

    >>> language_of("layout.zh.md"), language_of("layout.md")
    ('zh', 'en')
    """
    return "zh" if ".zh." in posixpath.basename(path) else "en"


def bare(path: str) -> str:
    """Returns the name of a page without its language.

    >>> bare("tutorials/groups.zh.md")
    'tutorials/groups.md'
    """
    return re.sub(r"\.zh\.md$", ".md", path)


def navigation(index: str) -> list[Entry]:
    """Returns the navigation: what a row of the index's table wants, and the pages it names.

    >>> navigation("| you want to | read |\\n|---|---|\\n| see groups | [layouts](layout.md) |\\n")
    [{'See groups': [{'Layouts': 'layout.md'}]}]
    """
    rows = [line.strip("| ").split(" | ", 1) for line in index.splitlines() if line[:2] == "| "]
    return [
        {
            _capital(want): [
                {_label(*m.groups()[1:]): bare(m[3])} for m in LINK.finditer(pages) if _own(m[3])
            ]
        }
        for want, pages in rows[1:]
    ]


def _label(text: str, target: str) -> str:
    # The names of frameworks are written as their makers write them.
    return text if target.startswith("frameworks/") else _capital(text)


def _own(target: str) -> bool:
    return not target.startswith("../")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def site_markdown(text: str, path: str, pages: Collection[str]) -> str:
    """Returns the Markdown of a page as the site's generator needs it.

    Links name pages without their language; what lies outside docs is told by its path, as a site
    has no repository around it; a list has an empty line before it, which GitHub does without.
    A stroke within code needs no backslash in a table.
    """
    parts, last = [], 0
    for block in BLOCK.finditer(text):
        parts += [_prose(text[last : block.start()], path, pages), block[0]]
        last = block.end()
    return "".join([*parts, _prose(text[last:], path, pages)])


def _prose(text: str, path: str, pages: Collection[str]) -> str:
    def linked(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        name, _, place = target.partition("#")
        found = bare(posixpath.normpath(posixpath.join(posixpath.dirname(path), name)))
        if found in INSIDE:
            there = posixpath.relpath(INSIDE[found], posixpath.dirname(path) or ".")
            return f"{mark}[{label}]({there})"
        if name and found not in pages:
            inside = found.removeprefix("../")
            return label if f"`{inside}`" == label or inside in label else f"{label} (`{inside}`)"
        return f"{mark}[{label}]({bare(name)}{'#' + place if place else ''})"

    told = HEADING.sub(_addressed, LINK.sub(linked, SWITCH.sub("", text)))
    return _spaced(ROW.sub(_unescaped, told))


def _unescaped(row: re.Match[str]) -> str:
    return re.sub(r"`[^`]*`", lambda code: code[0].replace(r"\|", "|"), row[0])


def _addressed(heading: re.Match[str]) -> str:
    return f"{heading[0]} {{ #{address_of(heading[2])} }}"


def _spaced(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        begins = (
            ITEM.match(line) and not ITEM.match(before.lstrip()) and before[:1] not in ("", " ")
        )
        lines += ["", line] if begins else [line]
    return "\n".join(lines)


def address_of(title: str) -> str:
    """Returns the address of a heading, as GitHub makes it, which the pages' links expect.

    >>> address_of("Which came first, and why?"), address_of("看 GPU")
    ('which-came-first-and-why', '看-gpu')
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
