r"""A module of the page without the spaces and line ends that mean nothing to a browser.

    const total = parts            const total=parts.reduce(sum,0);
      .reduce(sum, 0);       ──>

What stands in strings, templates and regular expressions stays as it is. A line end stays where
the grammar might need it. It relies on what Prettier does to the source: statements end in ; or },
and a division has spaces around it. A test compares what a parser makes of both.
"""

from __future__ import annotations

import re

_STRING = r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'"
_PLAIN = r"`(?:[^`\\]|\\.)*`"
_TEMPLATE = rf"`(?:[^`\\$]|\\.|\$(?!\{{)|\$\{{(?:[^{{}}`]|\{{[^{{}}]*\}}|{_PLAIN})*\}})*`"
"""A template, in whose places others may stand."""
_REGEX = r"(?<=[(,=:\[!&|?{};\s])/(?![/* ])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/"
_COMMENT = r"//[^\n]*|/\*(?:(?!\*/)[\s\S])*\*/"
_GAP = rf"(?P<gap>(?:\s|{_COMMENT})+)"
# Most letters begin none of these, which one look ahead tells.
_PIECE = re.compile(f"(?=[\"'`/\\s])(?:{_STRING}|{_TEMPLATE}|{_REGEX}|{_GAP})")
_ENDS = frozenset(";{(,[=?:&|<>")
"""Marks behind which a line end means nothing."""
_BEGINS = frozenset("})].?:&|=,<>")
"""Marks before which a line end means nothing."""


def tightened(text: str) -> str:
    """Returns the module with the least space between its tokens.

    >>> tightened("const a = b / 2; // half\\nreturn /a  b/.test(`x  ${ a + 1 }`);\\n")
    'const a=b/2;return/a  b/.test(`x  ${ a + 1 }`);'
    >>> tightened("say(`${a ? `, and ${ b }` : ''} .`, c + d);\\n")
    "say(`${a ? `, and ${ b }` : ''} .`,c+d);"
    """

    def piece(match: re.Match[str]) -> str:
        gap = match["gap"]
        if gap is None:
            return match[0]
        start, end = match.span()
        if not start or end == len(text):
            return ""
        return _kept(gap, text[start - 1], text[end])

    return _PIECE.sub(piece, text)


def _kept(gap: str, before: str, after: str) -> str:
    """Returns what must stay between two tokens that end and begin so."""
    if "\n" in gap and before not in _ENDS and after not in _BEGINS:
        return "\n"
    # a + +b and a - --b are not a ++b and a ---b.
    clash = before == after and before in "+-/"
    return " " if clash or (_is_word(before) and _is_word(after)) else ""


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter in "_$#"
