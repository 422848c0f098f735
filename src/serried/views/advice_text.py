"""Findings as lines for the terminal: what was seen, why it matters, what would cure it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from serried.finding import Finding
from serried.mesh.advice import is_important
from serried.views.sentences import say

CURE = {"en": "cure", "zh": "解法"}
WARNING = {"en": "warning", "zh": "注意"}
NOTE = {"en": "note", "zh": "提示"}
MORE = {
    "en": "{count} more, on communicators and sizes: --advice shows them",
    "zh": "另有 {count} 条，关于通信组和大小：加 --advice 查看",
}


def advice_lines(findings: Sequence[Finding], *, width: int, lang: str = "en") -> list[str]:
    """Returns findings as lines of at most ``width`` columns, each with its cure below it."""
    lines: list[str] = []
    for finding in findings:
        word = (WARNING if is_important(finding) else NOTE)[lang]
        stop = "；" if lang == "zh" else "; "
        seen = stop.join(say(sentence, lang) for sentence in finding.evidence)
        lines += _wrapped(f"{word}: {seen}", width)
        if finding.cure:
            lines += _wrapped(f"  {CURE[lang]}: {say(finding.cure, lang)}", width)
    return lines


def important_lines(findings: Sequence[Finding], *, width: int, lang: str = "en") -> list[str]:
    """Returns the important findings as lines, and how many others there are."""
    important = [finding for finding in findings if is_important(finding)]
    lines = advice_lines(important, width=width, lang=lang)
    others = len(findings) - len(important)
    return [*lines, MORE[lang].format(count=others)] if lines and others else lines


def one_line(finding: Finding, *, lang: str = "en") -> str:
    """Returns a finding as one line, as it is told beside JSON."""
    stop = "；" if lang == "zh" else "; "
    return stop.join(line.strip() for line in advice_lines([finding], width=10_000, lang=lang))


def _wrapped(text: str, width: int) -> list[str]:
    """Returns ``text`` in lines of at most ``width`` columns; a Chinese character takes two."""
    body = text.lstrip()
    start = " " * (len(text) - len(body))
    lines = Text(body).wrap(Console(width=width), max(width - len(start) - 2, 1))
    plain = [line.plain.rstrip() for line in lines]
    return [start + plain[0], *(f"{start}  {line}" for line in plain[1:])]
