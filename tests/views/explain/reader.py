"""What the tests of the texts look for in them: Chinese, stray English, acts of communication."""

from __future__ import annotations

import re

CHINESE = re.compile(r"[\u4e00-\u9fff]")
ENGLISH_SENTENCE = re.compile(r"[A-Za-z][a-z]+(?: [A-Za-z][a-z]+){4,}")
"""Five plain words in a row: a sentence that nobody translated, not a name or a term."""

COMMUNICATION = re.compile(
    r"all-reduce|all-gather|reduce-scatter|all-to-all|broadcast"
    r"|\bsen[dt]s?\b|point[- ]to[- ]point|点对点"
)


def has_chinese(text: str) -> bool:
    return CHINESE.search(text) is not None


def stray_english(text: str) -> list[str]:
    return ENGLISH_SENTENCE.findall(text)


def names_communication(text: str) -> bool:
    return COMMUNICATION.search(text) is not None
