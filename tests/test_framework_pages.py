"""The pages on frameworks: each shows its launch file as it stands, in both languages alike."""

from __future__ import annotations

import re

import pytest

from tests.test_docs import BLOCK, ROOT

PAGES = ROOT / "docs" / "frameworks"
LAUNCH = ROOT / "examples" / "launch"
NAMES = (
    *("megatron", "internevo", "deepspeed", "torchtitan"),
    *("accelerate", "colossalai", "paddle", "nanotron"),
)
BESIDE = {"hosts", "zero3.json"}
"""Files that deepspeed.sh names."""


def text_of(name: str, lang: str) -> str:
    page = PAGES / (f"{name}.zh.md" if lang == "zh" else f"{name}.md")
    return page.read_text(encoding="utf-8")


def blocks_of(text: str) -> list[tuple[str, str]]:
    return [(match["kind"], match["body"]) for match in BLOCK.finditer(text)]


def test_every_page_is_of_a_framework_and_in_both_languages() -> None:
    wanted = {f"{name}{ending}" for name in NAMES for ending in (".md", ".zh.md")}
    assert {path.name for path in PAGES.iterdir()} == wanted


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_its_launch_files_as_they_stand(name: str, lang: str) -> None:
    shown = [body for _, body in blocks_of(text_of(name, lang))]
    files = sorted(LAUNCH.glob(f"{name}.*"))
    assert files
    assert [path.name for path in files if path.read_text(encoding="utf-8") not in shown] == []


def test_every_launch_file_belongs_to_a_page() -> None:
    assert {path.name for path in LAUNCH.iterdir() if path.stem not in NAMES} == BESIDE


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_have_the_same_parts_commands_and_programs(name: str) -> None:
    english, chinese = (text_of(name, lang) for lang in ("en", "zh"))
    parts = [re.findall(r"^#+", each, re.MULTILINE) for each in (english, chinese)]
    assert parts[0] == parts[1]
    assert commands(english) == commands(chinese)
    assert programs(english) == programs(chinese)


def commands(text: str) -> list[str]:
    run = "\n".join(body for kind, body in blocks_of(text) if kind in ("console", "sh"))
    found = re.findall(r"^(?:\$ )?(serried [^:\n].*)$", run, re.MULTILINE)
    return [each.replace(" --lang zh", "") for each in found]


def programs(text: str) -> list[str]:
    return [re.sub(r" *#.*", "", body) for kind, body in blocks_of(text) if kind == "python"]


@pytest.mark.parametrize("name", NAMES)
def test_a_program_on_a_page_compiles(name: str) -> None:
    for kind, body in blocks_of(text_of(name, "en")):
        if kind == "python":
            compile(body, name, "exec")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_leads_to_the_others(name: str) -> None:
    linked = set(re.findall(r"\]\((\w+)\.md\)", text_of(name, "en")))
    assert linked == set(NAMES) - {name}
