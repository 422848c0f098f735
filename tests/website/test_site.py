"""The documentation's site: a place for every page, a page for every command and public name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import serried
from serried.schemas import json_schema, schema_names
from website import commands, reference, schemas
from website.built import main
from website.links import faults
from website.prepare import ROOT, generated, nav, prepare, written
from website.reading import site_markdown
from website.searching import CHINESE, search_in_chinese

OTHER = r"\[(?:中文|English)\]\("
BOTH = pytest.mark.parametrize("lang", ["en", "zh"])


def entries(listed: object) -> Iterator[str]:
    """Yields the paths of a navigation, in their order."""
    if isinstance(listed, str):
        yield listed
    elif isinstance(listed, dict):
        for each in listed.values():
            yield from entries(each)
    elif isinstance(listed, list):
        for each in listed:
            yield from entries(each)


@BOTH
def test_every_page_has_one_place_in_the_navigation(lang: str) -> None:
    places = list(entries(nav(lang)))
    assert sorted(places) == sorted({*written(lang), *generated(lang)})


def test_both_languages_have_the_same_pages_in_the_same_order() -> None:
    assert list(entries(nav("en"))) == list(entries(nav("zh")))


@BOTH
def test_every_command_has_a_page_that_names_its_options(lang: str) -> None:
    pages = commands.pages(lang)
    for words, command in commands.commands():
        page = pages[f"commands/{'-'.join(words)}.md"]
        assert page.startswith(f"# serried {' '.join(words)}\n")
        options = [each.opts[-1] for each in command.params if each.opts[0].startswith("-")]
        assert [each for each in options if each not in page] == []


def test_every_public_name_has_its_signature_and_docstring() -> None:
    assert reference.names("serried") == serried.__all__
    for room in reference.ROOMS:
        page = reference.pages("en")[reference.path_of(room)]
        for name in reference.names(room):
            assert f"\n## {name}\n" in page
            item = reference.found(f"{room}.{name}")
            assert item.is_attribute or reference.told(item), f"{room}.{name}"


def test_a_link_names_the_page_and_not_its_language() -> None:
    text = "看[布局](layout.zh.md#轴)，[规则](../CONTRIBUTING.md)。（[English](index.md)）"
    told = site_markdown(text, "index.md", ["layout.md"])
    assert told == "看[布局](layout.md#轴)，规则 (`CONTRIBUTING.md`)。"


@BOTH
def test_no_page_of_the_site_offers_itself_as_its_other_language(lang: str) -> None:
    # The link stands alone in its parentheses, where the site leaves it out.
    assert [name for name, text in written(lang).items() if re.search(OTHER, text)] == []


@BOTH
def test_every_schema_lies_beside_the_page_that_lists_them(lang: str, tmp_path: Path) -> None:
    prepare(tmp_path, lang)
    listed = schemas.pages(lang)[schemas.PAGE]
    for name in schema_names():
        path = re.search(rf"\[`{re.escape(name)}`\]\((schemas/[\w-]+\.json)\)", listed)
        assert path is not None
        assert json.loads((tmp_path / "docs" / path[1]).read_text("utf-8")) == json_schema(name)
    assert "(schemas.md)" in written(lang)["stable.md"]


def test_a_list_behind_a_sentence_is_a_list() -> None:
    assert site_markdown("why:\n- one\n- two\n", "a.md", ()) == "why:\n\n- one\n- two\n"


def test_the_search_of_chinese_pages_speaks_chinese_or_it_is_said(tmp_path: Path) -> None:
    script = tmp_path / "assets" / "javascripts" / "bundle.0.min.js"
    script.parent.mkdir(parents=True)
    script.write_text(",".join(CHINESE), encoding="utf-8")
    assert search_in_chinese(tmp_path) == []
    assert script.read_text(encoding="utf-8") == ",".join(CHINESE.values())
    assert 'bundle.0.min.js says no "No results"' in search_in_chinese(tmp_path)


def test_a_stroke_in_the_code_of_a_table_is_shown_without_a_backslash() -> None:
    told = site_markdown("| `a \\| b` | c \\| d |\n", "a.md", ())
    assert told == "| `a | b` | c \\| d |\n"
    assert "`--cluster NAME|FILE`" in commands.pages("en")["commands/plan.md"]


def test_code_stays_as_it_is() -> None:
    text = "```sh\n# not a heading\ncat [a](b.md)\n```\n"
    assert site_markdown(text, "a.md", ()) == text


def test_a_page_that_asks_another_machine_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<script src="https://cdn.example/x.js"></script><link rel="stylesheet" href="a.css">'
        '<a href="https://example.org">told, not loaded</a><a href="b.html">gone</a><a href="#no">'
    )
    (tmp_path / "a.css").write_text("@import url(//fonts.example/x.css);")
    assert faults(tmp_path) == [
        "a.html loads https://cdn.example/x.js",
        "a.html links to b.html, which is not there",
        "a.html links to #no, a place that a.html has not",
        "a.css loads //fonts.example/x.css",
    ]


@BOTH
def test_a_language_is_laid_out_without_the_generator(lang: str, tmp_path: Path) -> None:
    prepare(tmp_path / lang, lang)
    pages = {str(each.relative_to(tmp_path / lang / "docs")) for each in tmp_path.rglob("*.md")}
    assert pages == {*written(lang), *generated(lang)}
    assert (tmp_path / lang / "mkdocs.yml").is_file()


@pytest.mark.soak
@pytest.mark.skipif(not find_spec("zensical"), reason="make docs installs the generator")
@pytest.mark.skipif(not shutil.which("unshare"), reason="unshare takes the network away")
def test_the_site_is_built_without_a_network(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "website.built", str(tmp_path / "site")]
    alone = ["unshare", "--map-root-user", "--net", *build]
    done = subprocess.run(alone, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in two languages" in done.stdout


def test_a_missing_generator_is_named_with_what_installs_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['zensical'] = None; sys.argv[1:] = [sys.argv[1]]\n"
        "from website import built\n"
        "built.find_spec = lambda name: None\n"
        "built.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        "the site cannot be built: the generator zensical is missing; make docs installs it, once\n"
    )


@BOTH
def test_the_first_page_begins_with_a_film_of_the_tool(lang: str) -> None:
    film = ROOT / "docs" / "images" / ("film.zh.webp" if lang == "zh" else "film.webp")
    assert f"](images/{film.name})" in written(lang)["index.md"].split("\n\n")[1]
    assert b"ANIM" in film.read_bytes()[:64]
    assert film.stat().st_size < 1_500_000


def test_a_folder_that_holds_something_else_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thesis.tex").write_text("all of it")
    monkeypatch.setattr(sys, "argv", ["built", str(tmp_path)])
    with pytest.raises(SystemExit, match="holds something else than a site"):
        main()
    assert (tmp_path / "thesis.tex").is_file()
