"""Explanations of parallel training in English and Chinese, kept as text in TOML files."""

from serried.views.explain.explanation import Explanation, ReadingLink, Section, explanation
from serried.views.explain.plain import as_text
from serried.views.explain.words import Basic, Term, about_in, basics, kind_note, note_in, terms

__all__ = [
    "Basic",
    "Explanation",
    "ReadingLink",
    "Section",
    "Term",
    "about_in",
    "as_text",
    "basics",
    "explanation",
    "kind_note",
    "note_in",
    "terms",
]
