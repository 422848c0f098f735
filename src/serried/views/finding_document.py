"""A finding as JSON values: what was seen and what would help, in each language."""

from __future__ import annotations

from typing import Any

from serried.finding import Finding
from serried.views.sentences import LANGUAGES, say


def told(finding: Finding, lang: str) -> dict[str, Any]:
    """Returns a finding's sentences in ``lang``; ``cure`` is None where nothing is known."""
    return {
        "evidence": [say(sentence, lang) for sentence in finding.evidence],
        "cure": say(finding.cure, lang) if finding.cure else None,
    }


def told_in_each(finding: Finding) -> dict[str, dict[str, Any]]:
    """Returns a finding's sentences by language, for readers who may change it."""
    return {lang: told(finding, lang) for lang in LANGUAGES}
