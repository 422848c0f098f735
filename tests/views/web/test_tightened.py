"""The page's module without its spaces is, to a parser, the same module."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from serried.views.web.edition import SCRIPT, STATIC, page_modules
from serried.views.web.joined import joined_modules
from serried.views.web.tightened import tightened

ROOT = Path(__file__).parents[3]
COMPARES = """
const ts = require("typescript");
const printer = ts.createPrinter({ removeComments: true });
const [before, after] = process.argv.slice(1).map((name) => {
  const text = require("fs").readFileSync(name, "utf8");
  const parsed = ts.createSourceFile("a.js", text, ts.ScriptTarget.Latest, true);
  const printed = printer.printFile(parsed).replace(/\\s+/g, "");
  return printed.replace(/,([}\\])])/g, "$1");
});
process.stdout.write(String(before === after && before.length > 1000));
"""


@pytest.mark.skipif(not shutil.which("node"), reason="node compares them")
def test_a_parser_makes_the_same_of_both(tmp_path: Path) -> None:
    texts = {
        path.relative_to(STATIC).as_posix(): path.read_text(encoding="utf-8")
        for path in STATIC.rglob("*.js")
    }
    joined = joined_modules(texts, SCRIPT)
    assert joined.keys() == page_modules().keys()
    marks = re.compile(r"\?v=[0-9a-f]{12}")
    (tmp_path / "before.mjs").write_text("".join(joined.values()))
    (tmp_path / "after.mjs").write_text(marks.sub("", "".join(page_modules().values())))
    command = ["node", "-e", COMPARES, str(tmp_path / "before.mjs"), str(tmp_path / "after.mjs")]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "true"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + +b - --c", "a+ +b- --c"),
        ("return\nfoo()", "return\nfoo()"),
        ("const x = 'a  b'  ;\nlet y", "const x='a  b';let y"),
        ("x = /[/ ]  \\//g.test(y) / 2", "x=/[/ ]  \\//g.test(y)/2"),
        ("`a  ${ b }  c` + d // e\n", "`a  ${ b }  c`+d"),
    ],
)
def test_only_spaces_that_mean_nothing_go(text: str, expected: str) -> None:
    assert tightened(text) == expected
