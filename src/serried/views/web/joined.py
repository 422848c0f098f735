"""The page's modules joined into few, its styles and its document into one each.

    base/dom.js   export function byId() {…}      const m0 = (() => {
                                                    function byId() {…}
                                                    return { byId };
    app.js        import { byId } from            })();
                    "./base/dom.js";              const { byId } = m0;
                  byId("map");                    byId("map");

    app.js        import("./plan/later.js")       $later("./plan/later.js", [m0])

    plan/later.js …                               export const made = (m0) => {
                                                    const m1 = (() => {…})();
                                                    return m1; };

What a module imports as it runs, by import("…"), is joined apart and fetched only then. It is made
of what the page has already, so that no module is there twice.

The modules stay as they are written: no build step, nothing to install. Comments and indentation
are left out, a third of what would travel. The document's parts stand in ``static/document/``, each
where a comment in index.html names it. What does not follow the pattern is an error, found by
the tests: only named imports of modules of the page, exports that never change, texts of one line.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

# Letters come first, to which a search leaps; what is in front of them is looked at then.
_IMPORT = re.compile(r'import (?<=^import )\{([^}]*)\} from "(\.[^"]+)";\n', re.M)
_PASSED_ON = re.compile(r'export (?<=^export )\{([^}]*)\} from "(\.[^"]+)";\n', re.M)
_LISTED = re.compile(r"export (?<=^export )\{([^}]*)\};\n", re.M)
_MADE = re.compile(r"export (?<=^export )((?:async )?function\*?|class|const) (\w+)", re.M)
_LATER = re.compile(r'import\("(?<!\wimport\(")(\.[^"]+)"\)')
_STYLE = re.compile(r'^@import "([^"]+)";\n', re.M)
_PART = re.compile(r"^[ \t]*<!-- (\S+\.html) -->\n", re.M)
_LEFT = re.compile(r"port\b(?<=^import|^export).*", re.M)
_BLOCK = r"/\*(?:(?!\*/).)*\*/"
_COMMENTS = re.compile(rf"^[ \t]*(?://[^\n]*|{_BLOCK})[ \t]*\n|{_BLOCK} ?", re.M | re.S)


class UnjoinableModule(ValueError):
    """Says that a module of the page holds what one file of all modules cannot."""


def joined_modules(texts: Mapping[str, str], entry: str) -> dict[str, str]:
    """Returns what a browser asks for, by path: ``entry``, then each module that is fetched later.

    ``texts`` holds each module by its path. Raises UnjoinableModule for a form of import or export
    that is not joined, KeyError for a module that is not there and graphlib.CycleError where
    modules import each other.

    >>> texts = {"a.js": "export const two = 2;\\n",
    ...          "b.js": 'import { two as x } from "./a.js";\\n// Says it.\\nalert(x);\\n'}
    >>> print(joined_modules(texts, "b.js")["b.js"], end="")
    // a.js
    const m0 = (() => {
    const two = 2;
    return { two };
    })();
    // b.js
    const { two: x } = m0;
    alert(x);
    """
    joined = _Joined({path: _COMMENTS.sub("", text) for path, text in texts.items()}, entry)
    return {entry: joined.first_text(), **{path: joined.later_text(path) for path in joined.later}}


def one_module(texts: Mapping[str, str], entry: str) -> str:
    """Returns one module that does what ``entry`` does and fetches none; raises as above.

    >>> texts = {"a.js": "export const two = 2;\\n", "b.js": 'await import("./a.js");\\n'}
    >>> '"./a.js": () => {' in one_module(texts, "b.js")
    True
    """
    joined = _Joined({path: _COMMENTS.sub("", text) for path, text in texts.items()}, entry)
    made = "".join(f'"./{path}": {joined.later_made(path)},\n' for path in joined.later)
    return f"const $made = {{\n{made}}};\n{_HELD}{joined.modules()}"


_HELD = """\
const $fetched = {};
const $later = (path, modules) =>
($fetched[path] ??= Promise.resolve($made[path](...modules)));
"""
"""Makes a module once."""
_FETCH = """\
const $fetched = {};
const $later = (path, modules) =>
($fetched[path] ??= import(path).then(
({ made }) => made(...modules),
(error) => {
delete $fetched[path];
throw error;
},
));
"""
"""Fetches and makes a module once; tries again after a failure."""


def joined_styles(texts: Mapping[str, str], entry: str) -> str:
    """Returns a style sheet with those that it imports in their places, without comments.

    >>> texts = {"app.css": '@import "a.css";\\ni {\\n}\\n', "a.css": "/* Red. */\\nb {\\n}\\n"}
    >>> joined_styles(texts, "app.css")
    'b {\\n}\\ni {\\n}\\n'

    Raises KeyError for one that is not there.
    """
    whole = _STYLE.sub(lambda match: joined_styles(texts, _resolved(entry, match[1])), texts[entry])
    return re.sub(rf"[ \t]*{_BLOCK}\n?", "", whole, flags=re.S)


def joined_document(texts: Mapping[str, str], entry: str) -> str:
    """Returns a document with the parts that its comments name in their places.

    >>> texts = {"index.html": "<main>\\n  <!-- parts/map.html -->\\n</main>\\n",
    ...          "parts/map.html": "<i>map</i>\\n"}
    >>> joined_document(texts, "index.html")
    '<main>\\n<i>map</i>\\n</main>\\n'

    Raises KeyError for a part that is not there.
    """
    return _PART.sub(lambda match: joined_document(texts, _resolved(entry, match[1])), texts[entry])


class _Joined:
    """Holds which modules come first and which later, and the names that they go by."""

    def __init__(self, plain: Mapping[str, str], entry: str) -> None:
        self.plain = plain
        self.entry = entry
        self.needs = {
            path: [*_targets(_IMPORT, path, text), *_targets(_PASSED_ON, path, text)]
            for path, text in plain.items()
        }
        at_once = self._imports(entry)
        targets = {to for path in at_once for to in _targets(_LATER, path, plain[path])}
        if wrong := targets.intersection(at_once):
            raise UnjoinableModule(f"{min(wrong)}: it is imported at once as well as later")
        # What several need comes first, so that it is there once.
        counts = Counter(path for each in targets for path in self._imports(each))
        several = sorted(path for path, count in counts.items() if count > 1)
        imports = self._imports(entry, *several) | {entry: [*self.needs[entry], *several]}
        self.first = list(TopologicalSorter(imports).static_order())
        self.later = {target: self._beside(target) for target in sorted(targets)}
        order = [*self.first, *(path for share in self.later.values() for path in share)]
        self.names = {path: f"m{number}" for number, path in enumerate(order)}

    def first_text(self) -> str:
        """Returns the module that comes first."""
        return _FETCH + self.modules() if self.later else self.modules()

    def modules(self) -> str:
        """Returns the modules that come first."""
        return "".join(self._module(path) for path in self.first)

    def later_text(self, path: str) -> str:
        """Returns a module that is fetched later, as a function of those that it needs."""
        return f"export const made = {self.later_made(path)};\n"

    def later_made(self, path: str) -> str:
        """Returns a module that is made later, as a function of those that it needs."""
        whole = "".join(self._module(each) for each in self.later[path])
        taken = ", ".join(self._taken(path))
        return f"({taken}) => {{\n{whole}return {self.names[path]};\n}}"

    def _imports(self, *entries: str) -> dict[str, list[str]]:
        """Returns what each module imports at once, for the modules that ``entries`` need."""
        found: dict[str, list[str]] = {}
        open_ = list(entries)
        while open_:
            path = open_.pop()
            if path not in found:
                found[path] = self.needs[path]
                open_ += found[path]
        return found

    def _beside(self, target: str) -> list[str]:
        """Returns the modules that one needs beside those that came first, in their order."""
        order = TopologicalSorter(self._imports(target)).static_order()
        return [path for path in order if path not in self.first]

    def _taken(self, target: str) -> list[str]:
        """Returns the names of the modules that came first and that one needs."""
        imports = self._imports(target)
        needed = {to for path in self.later[target] for to in imports[path]}
        return [self.names[path] for path in self.first if path in needed]

    def _module(self, path: str) -> str:
        """Returns one module's part of a file: the entry as it is, others as what they export."""

        def taken(match: re.Match[str]) -> str:
            module = self.names[_resolved(path, match[2])]
            return f"const {{{_pairs(match[1], ' as ', ': ')}}} = {module};\n"

        def fetched(match: re.Match[str]) -> str:
            target = _resolved(path, match[1])
            if path not in self.first:
                raise UnjoinableModule(f"{path}: it is fetched later itself, and fetches {target}")
            return f'$later("./{target}", [{", ".join(self._taken(target))}])'

        body = _LATER.sub(fetched, _IMPORT.sub(taken, self.plain[path]))
        body = _LISTED.sub("", _PASSED_ON.sub("", _MADE.sub(r"\1 \2", body)))
        body = re.sub(r"\n\s+", "\n", body).lstrip("\n")
        exported = self._exported(path)
        _check(path, body, exported)
        if path == self.entry:
            return f"// {path}\n{body}"
        return (
            f"// {path}\nconst {self.names[path]} = (() => {{\n{body}"
            f"return {{ {', '.join(exported)} }};\n}})();\n"
        )

    def _exported(self, path: str) -> list[str]:
        """Returns what a module exports, as properties of what stands for it."""
        text = self.plain[path]
        exported = [name for _, name in _MADE.findall(text)]
        for listed in _LISTED.findall(text):
            exported += [part.strip() for part in listed.split(",") if part.strip()]
        for passed, target in _PASSED_ON.findall(text):
            module = self.names[_resolved(path, target)]
            exported += [f"{part.strip()}: {module}.{part.strip()}" for part in passed.split(",")]
        return exported


def _targets(pattern: re.Pattern[str], path: str, text: str) -> list[str]:
    """Returns the modules that one names in a form of import."""
    return [_resolved(path, match[pattern.groups]) for match in pattern.finditer(text)]


def _check(path: str, body: str, exported: Iterable[str]) -> None:
    """Raises UnjoinableModule for what does not follow the pattern."""
    if left := _LEFT.search(body):
        raise UnjoinableModule(f"{path}: {left[0]}")
    if cut := next((line for line in body.splitlines() if line.count("`") % 2), None):
        raise UnjoinableModule(f"{path}: a text of several lines: {cut}")
    if any(" as " in part for part in exported):
        raise UnjoinableModule(f"{path}: it exports under another name")


def _resolved(path: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def _pairs(listed: str, old: str, new: str) -> str:
    """Returns names of an import as those of a destructuring."""
    return listed.rstrip().rstrip(",").replace(old, new) + " "
