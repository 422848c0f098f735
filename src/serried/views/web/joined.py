"""The page's modules joined into one, and its styles into one: a browser asks for two files.

    base/dom.js   export function byId() {…}      const m0 = (() => {
                                                    function byId() {…}
                                                    return { byId };
    app.js        import { byId } from            })();
                    "./base/dom.js";              const { byId } = m0;
                  byId("map");                    byId("map");

The modules stay as they are written: no build step, nothing to install. Comments and indentation
are left out, a third of what would travel. What does not follow the pattern is an error, found by
the tests: only named imports of modules of the page, exports that never change, texts of one line.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from graphlib import TopologicalSorter

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";\n', re.M)
_PASSED_ON = re.compile(r'^export \{([^}]*)\} from "(\.[^"]+)";\n', re.M)
_LISTED = re.compile(r"^export \{([^}]*)\};\n", re.M)
_MADE = re.compile(r"^export ((?:async )?function\*?|class|const) (\w+)", re.M)
_STYLE = re.compile(r'^@import "([^"]+)";\n', re.M)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.M)
_BLOCK = r"/\*(?:(?!\*/).)*\*/"
_COMMENTS = re.compile(rf"^[ \t]*(?://[^\n]*|{_BLOCK})[ \t]*\n|{_BLOCK} ?", re.M | re.S)


class UnjoinableModule(ValueError):
    """Says that a module of the page holds what one file of all modules cannot."""


def joined_modules(texts: Mapping[str, str], entry: str) -> str:
    """Returns one module that does what ``entry`` does with all that it imports.

    ``texts`` holds each module by its path. Raises UnjoinableModule for a form of import or export
    that is not joined, KeyError for a module that is not there and graphlib.CycleError where
    modules import each other.

    >>> texts = {"a.js": "export const two = 2;\\n",
    ...          "b.js": 'import { two as x } from "./a.js";\\n// Says it.\\nalert(x);\\n'}
    >>> print(joined_modules(texts, "b.js"), end="")
    // a.js
    const m0 = (() => {
    const two = 2;
    return { two };
    })();
    // b.js
    const { two: x } = m0;
    alert(x);
    """
    order = list(TopologicalSorter(_imports(texts, entry)).static_order())
    names = {path: f"m{number}" for number, path in enumerate(order)}
    return "".join(_module(path, texts[path], names, path == entry) for path in order)


def joined_styles(texts: Mapping[str, str], entry: str) -> str:
    """Returns a style sheet with those that it imports in their places, without comments.

    >>> texts = {"app.css": '@import "a.css";\\ni {\\n}\\n', "a.css": "/* Red. */\\nb {\\n}\\n"}
    >>> joined_styles(texts, "app.css")
    'b {\\n}\\ni {\\n}\\n'

    Raises KeyError for one that is not there.
    """
    whole = _STYLE.sub(lambda match: joined_styles(texts, _resolved(entry, match[1])), texts[entry])
    return re.sub(rf"[ \t]*{_BLOCK}\n?", "", whole, flags=re.S)


def _imports(texts: Mapping[str, str], entry: str) -> dict[str, list[str]]:
    """Returns what each module imports, for the modules that ``entry`` needs."""
    found: dict[str, list[str]] = {}
    open_ = [entry]
    while open_:
        path = open_.pop()
        if path not in found:
            taken = [*_IMPORT.findall(texts[path]), *_PASSED_ON.findall(texts[path])]
            found[path] = [_resolved(path, target) for _, target in taken]
            open_ += found[path]
    return found


def _resolved(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _module(path: str, text: str, names: Mapping[str, str], is_entry: bool) -> str:
    """Returns one module's part of the file: the entry as it is, others as what they export."""

    def taken(match: re.Match[str]) -> str:
        return f"const {{{_pairs(match[1], ' as ', ': ')}}} = {names[_resolved(path, match[2])]};\n"

    exported = [name for _, name in _MADE.findall(text)]
    for listed in _LISTED.findall(text):
        exported += [part.strip() for part in listed.split(",") if part.strip()]
    for passed, target in _PASSED_ON.findall(text):
        module = names[_resolved(path, target)]
        exported += [f"{part.strip()}: {module}.{part.strip()}" for part in passed.split(",")]
    body = _IMPORT.sub(taken, text)
    for pattern in (_PASSED_ON, _LISTED):
        body = pattern.sub("", body)
    body = _COMMENTS.sub("", _MADE.sub(r"\1 \2", body))
    body = re.sub(r"\n\s+", "\n", body).lstrip("\n")
    if left := _LEFT.search(body):
        raise UnjoinableModule(f"{path}: {left[0]}")
    if cut := next((line for line in body.splitlines() if line.count("`") % 2), None):
        raise UnjoinableModule(f"{path}: a text of several lines: {cut}")
    if any(" as " in part for part in exported):
        raise UnjoinableModule(f"{path}: it exports under another name")
    if is_entry:
        return f"// {path}\n{body}"
    return (
        f"// {path}\nconst {names[path]} = (() => {{\n{body}"
        f"return {{ {', '.join(exported)} }};\n}})();\n"
    )


def _pairs(listed: str, old: str, new: str) -> str:
    """Returns names of an import as those of a destructuring."""
    return listed.rstrip().rstrip(",").replace(old, new) + " "
