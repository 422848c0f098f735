"""Examples in README and docs are run: what a page prints is what the command prints.

A ``console`` block holds ``$ serried …`` commands and their output, where a line of ``…``
stands for any lines; a ``pycon`` block is a doctest. A block of ``bash`` or ``text`` that begins
with ``# name`` is a file that commands of its page read. ``test_printed`` runs ``sh`` blocks.
"""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.screenshots import DRAWN, SHOTS
from tests.conftest import Call
from tests.trace.recorded_run import Run

ROOT = Path(__file__).parent.parent
MOST_WORDS = 1600
"""Words of a page outside its blocks of code; a longer one wants to be two."""
WHOLE = ("accuracy.md",)
"""Pages that are one table of claims, whatever their length."""
ENTRANCES = [
    ROOT / name for name in ("README.md", "README.zh.md", "CONTRIBUTING.md", "SECURITY.md")
]
PAGES = [*ENTRANCES, *sorted((ROOT / "docs").glob("**/*.md"))]
COMMAND = re.compile(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", re.DOTALL)
"""A command, which a backslash may lead over lines, and what it prints."""
BLOCK = re.compile(r"^```(?P<kind>\w+)[^\n]*\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)


class Example(NamedTuple):
    """One command of a page, and the output shown below it."""

    page: str
    line: int
    command: str
    shown: str


def blocks(kind: str) -> Iterator[tuple[Path, int, str]]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if match["kind"] == kind:
                yield page, text.count("\n", 0, match.start()) + 2, match["body"]


def examples() -> Iterator[Example]:
    for page, line, body in blocks("console"):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            command, shown = COMMAND.match(part).groups()  # type: ignore[union-attr]
            yield Example(page.name, line, command.replace("\\\n", " "), shown)


EXAMPLES = list(examples())
FILE = re.compile(r"# (\w+\.(?:sh|log))\n")


def files_of(page: str) -> Iterator[tuple[str, str]]:
    """Yields the files that a page shows, by their names."""
    for kind in ("bash", "text"):
        for own, _, body in blocks(kind):
            if own.name == page and (named := FILE.match(body)):
                yield named[1], body


def test_the_tests_that_make_names_are_there() -> None:
    named = re.findall(r"\btests/[\w/.]+", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert len(named) > 10
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_readme_shows_commands_that_are_run() -> None:
    assert any(example.page == "README.md" for example in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"{each.page}:{each.line}")
def test_a_command_prints_what_the_page_shows(
    example: Example, serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("tests", "benchmarks", "examples"):  # examples read files of the repository
        (tmp_path / folder).symlink_to(ROOT / folder)
    for name, body in files_of(example.page):
        (tmp_path / name).write_text(body, encoding="utf-8")
    if "runs/pp4" in example.command:
        Run(num_steps=6).write(tmp_path / "runs" / "pp4")
    name, *words = shlex.split(example.command)
    assert name == "serried", "console blocks hold serried commands; use a sh block for others"
    answer = serried(*words)
    assert shown_matches(example.shown, answer.out + answer.err), answer.out + answer.err


def shown_matches(shown: str, printed: str) -> bool:
    """Tells whether the lines shown stand in ``printed``, ``…`` lines matching any lines."""
    parts = [re.escape(line.rstrip()) for line in shown.strip("\n").split("\n")]
    pattern = "\n".join(".*?" if part.strip() in ("…", re.escape("…")) else part for part in parts)
    clean = "\n".join(line.rstrip() for line in printed.strip("\n").split("\n"))
    return re.fullmatch(pattern, clean, re.DOTALL) is not None


@pytest.mark.parametrize(
    ("page", "line", "body"),
    [pytest.param(*each, id=f"{each[0].name}:{each[1]}") for each in blocks("pycon")],
)
def test_a_python_example_gives_what_the_page_shows(page: Path, line: int, body: str) -> None:
    test = doctest.DocTestParser().get_doctest(body, {}, page.name, str(page), line)
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_links_only_to_files_that_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?://|#|mailto:)([^)#\s]+)", text)
    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_every_picture_is_made_by_a_command_and_shown_on_a_page() -> None:
    made = {f"{shot.name}.png" for shot in SHOTS} | set(DRAWN) | {"film.webp", "film.zh.webp"}
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    shown = {name for text in texts for name in re.findall(r"\]\([\w./]*images/([\w.-]+)\)", text)}
    assert made == shown == {path.name for path in (ROOT / "docs" / "images").iterdir()}


@pytest.mark.parametrize(
    "page", [each for each in PAGES if each.name not in WHOLE], ids=lambda page: page.name
)
def test_a_page_is_read_in_one_sitting(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(text.split()) <= MOST_WORDS


@pytest.mark.parametrize(
    "page", [each for each in PAGES if ".zh." in each.name], ids=lambda page: page.name
)
def test_a_chinese_paragraph_is_one_line(page: Path) -> None:
    """Browsers draw the end of a line as a gap, which between Chinese words is an error."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    wide = "\u3001-\u3011\u4e00-\u9fff\uff01-\uff1f“”"
    assert re.findall(rf"^(?![#|]).*[{wide}]\n *(?=[{wide}])", text, re.M) == []


@pytest.mark.parametrize("index", ["index.md", "index.zh.md"])
def test_the_index_names_every_page_of_its_language(index: str) -> None:
    text = (ROOT / "docs" / index).read_text(encoding="utf-8")
    chinese = index.endswith(".zh.md")
    docs = ROOT / "docs"
    names = {str(each.relative_to(docs)) for each in docs.rglob("*.md")}
    own = {name for name in names if name.endswith(".zh.md") == chinese}
    assert own - set(re.findall(r"\]\(([\w./-]+)\)", text)) == {index}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_link_to_a_place_finds_its_heading(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([\w./-]*)#([^)\s]+)\)", page.read_text(encoding="utf-8"))
    wrong = [
        f"{target}#{place}"
        for target, place in links
        if place not in headings(page.parent / target if target else page)
    ]
    assert wrong == []


def headings(page: Path) -> set[str]:
    """Returns the addresses that GitHub gives the headings of a page."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    bare = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.replace(" ", "-") for title in bare}


@pytest.mark.parametrize("name", ["architecture.md", "architecture.zh.md"])
def test_every_path_that_the_map_of_the_code_names_is_there(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    paths = re.findall(r"`([\w./]+(?:\.(?:py|js|json|toml)|/))`", text)
    assert len(paths) > 40
    roots = (ROOT / "src/serried", ROOT)
    assert [path for path in paths if not any((root / path).exists() for root in roots)] == []


def test_both_readmes_have_the_same_sections_blocks_and_links() -> None:
    english, chinese = (
        (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md")
    )
    for mark in (r"^## ", r"^```", r"^\| ", r"^\*\*"):
        assert len(re.findall(mark, english, re.M)) == len(re.findall(mark, chinese, re.M)), mark
    pages = [
        set(re.findall(r"docs/[\w/-]+\.md", text))
        for text in (english, chinese.replace(".zh.md", ".md"))
    ]
    assert pages[0] == pages[1]
