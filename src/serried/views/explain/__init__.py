"""Explanations of parallel training in English and Chinese, kept as text in TOML files."""

from serried.views.explain.explanation import Explanation, Link, Section, explanation
from serried.views.explain.plain import as_text
from serried.views.explain.words import Basic, Term, basics, kind_note, terms

__all__ = [
    "Basic",
    "Explanation",
    "Link",
    "Section",
    "Term",
    "as_text",
    "basics",
    "explanation",
    "kind_note",
    "terms",
]
