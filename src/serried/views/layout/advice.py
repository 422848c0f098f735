"""Findings as lines for the terminal: what was seen, why it matters, what would cure it."""

from __future__ import annotations

from collections.abc import Sequence

from serried.finding import Finding
from serried.mesh.advice import is_important
from serried.views.explain.plain import wrap
from serried.views.sentences import say

CURE = {"en": "cure: ", "zh": "解决办法："}
WARNING = {"en": "warning: ", "zh": "注意："}
NOTE = {"en": "note: ", "zh": "提示："}
STOP = {"en": "; ", "zh": "；"}
MORE = {
    "en": "{count} more, on communicators and sizes: --advice shows them",
    "zh": "另有 {count} 条，关于通信组和大小：加 --advice 查看",
}


def advice_lines(findings: Sequence[Finding], *, width: int, lang: str = "en") -> list[str]:
    """Returns findings as lines of at most ``width`` columns, each with its cure below it."""
    lines: list[str] = []
    for finding in findings:
        word = (WARNING if is_important(finding) else NOTE)[lang]
        seen = STOP[lang].join(say(sentence, lang) for sentence in finding.evidence)
        lines += _wrapped(word + seen, width)
        if finding.cure:
            lines += _wrapped(f"  {CURE[lang]}{say(finding.cure, lang)}", width)
    return lines


def important_lines(findings: Sequence[Finding], *, width: int, lang: str = "en") -> list[str]:
    """Returns the important findings as lines, and how many others there are."""
    important = [finding for finding in findings if is_important(finding)]
    lines = advice_lines(important, width=width, lang=lang)
    others = len(findings) - len(important)
    # Without an important finding nothing is told, the count of the others included.
    return [*lines, MORE[lang].format(count=others)] if lines and others else lines


def one_line(finding: Finding, *, lang: str = "en") -> str:
    """Returns a finding as one line, as it is told beside JSON."""
    return STOP[lang].join(
        line.strip() for line in advice_lines([finding], width=10_000, lang=lang)
    )


def warned(finding: Finding, *, lang: str = "en") -> str:
    """Returns a finding as a warning in one line: what was seen, and the cure."""
    sentences = (*finding.evidence, *((finding.cure,) if finding.cure else ()))
    return WARNING[lang] + STOP[lang].join(say(sentence, lang) for sentence in sentences)


def _wrapped(text: str, width: int) -> list[str]:
    """Returns ``text`` in lines of at most ``width`` columns; a Chinese character takes two."""
    body = text.lstrip()
    start = " " * (len(text) - len(body))
    first, *rest = wrap(body, max(width - len(start) - 2, 1))
    return [start + first, *(f"{start}  {line}" for line in rest)]
