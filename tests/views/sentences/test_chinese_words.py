"""One idea has one word in Chinese, wherever serried says it: page, command line, cards, docs."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "serried"
OTHERS = {
    "微批次": r"微批(?!次)|小批|(?<![\w\-_{.\"=$])[Mm]icro-?batch(?:es)?(?![\w\-_}=:])",
    "归约": r"规约|规并",
    "集合通信": r"集体通信|集群通信",
    "预热": r"热身",
    "气泡": r"空泡",
    "延迟": r"时延",
    "词表": r"词汇表",
    "流水线": r"管线",
    "吞吐": r"吞吐量",
    "训练作业": r"训练任务",
}
"""The word that is used, and those that stand for the same idea elsewhere."""
CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)", re.M | re.S)


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings(each)


def said() -> Iterator[tuple[str, str]]:
    """Yields every Chinese text with the file that holds it, without code and links."""
    for path in PACKAGE.rglob("*zh.toml"):
        for text in strings(tomllib.loads(path.read_text(encoding="utf-8"))):
            yield path.name, text
    page = PACKAGE / "views" / "web" / "static" / "i18n" / "zh.json"
    for text in json.loads(page.read_text(encoding="utf-8")).values():
        yield page.name, text
    for path in PACKAGE.rglob("*.py"):
        for text in re.findall(r"\"[^\"\n]*[\u4e00-\u9fff][^\"\n]*\"", path.read_text("utf-8")):
            yield path.name, text
    for path in [*(ROOT / "docs").glob("*.zh.md"), *ROOT.glob("*.zh.md")]:
        for line in CODE.sub("", path.read_text(encoding="utf-8")).splitlines():
            yield path.name, line


SAID = [(name, text) for name, text in said() if re.search("[\u4e00-\u9fff]", text)]


def test_chinese_is_looked_for_where_it_stands() -> None:
    names = {name for name, _ in SAID}
    assert {"zh.toml", "zh.json", "cards.zh.toml", "help.zh.toml", "workbench.zh.md"} <= names


@pytest.mark.parametrize("word", OTHERS)
def test_an_idea_is_called_by_its_one_word(word: str) -> None:
    assert any(word in text for _, text in SAID)
    other = re.compile(OTHERS[word])
    assert [(name, text) for name, text in SAID if other.search(CODE.sub("", text))] == []
