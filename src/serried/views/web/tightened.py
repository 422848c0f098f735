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
# Most letters begin none of these, which one look ahead tells.
_WHOLE = re.compile(
    f"(?=[\"'`/])(?:{_STRING}|{_TEMPLATE}|(?P<regex>{_REGEX})|(?P<comment>{_COMMENT}))"
)
_HELD, _HELD_REGEX = "\0", "/\1/"
"""What stands for a string or template, and for a regular expression, while gaps are judged."""
_PLACES = re.compile(f"{_HELD}|{_HELD_REGEX}")
_WORD, _SIGN = r"\w$#", r"+\-/"
_STEPS = (
    (re.compile(r"[^\S\n]{2,}"), " "),
    (re.compile(r" ?\n\s*"), "\n"),
    # A line end means nothing behind the first of these marks, and before the second.
    (re.compile(r"\n(?:(?<=[;{(,\[=?:&|<>]\n)|(?=[})\].?:&|=,<>]))"), ""),
    # A space means nothing but between two words, or two equal signs: a + +b is not a ++b.
    (re.compile(rf" (?:(?![{_WORD}{_SIGN}])|(?<![{_WORD}{_SIGN}] ))"), ""),
    (re.compile(rf" (?:(?<=[{_SIGN}] )(?=[{_WORD}])|(?<=[{_WORD}] )(?=[{_SIGN}]))"), ""),
    (re.compile(r" (?:(?<=\+ )(?=[-/])|(?<=- )(?=[+/])|(?<=/ )(?=[+-]))"), ""),
)


def tightened(text: str) -> str:
    """Returns the module with the least space between its tokens.

    >>> tightened("const a = b / 2; // half\\nreturn /a  b/.test(`x  ${ a + 1 }`);\\n")
    'const a=b/2;return/a  b/.test(`x  ${ a + 1 }`);'
    >>> tightened("say(`${a ? `, and ${ b }` : ''} .`, c + d);\\n")
    "say(`${a ? `, and ${ b }` : ''} .`,c+d);"
    """
    held: list[str] = []

    def place(match: re.Match[str]) -> str:
        if match["comment"]:
            return "\n" if "\n" in match[0] else " "
        held.append(match[0])
        return _HELD_REGEX if match["regex"] else _HELD

    plain = _WHOLE.sub(place, text).strip()
    for pattern, instead in _STEPS:
        plain = pattern.sub(instead, plain)
    back = iter(held)
    return _PLACES.sub(lambda _: next(back), plain)
