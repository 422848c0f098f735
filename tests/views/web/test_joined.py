"""Modules joined into one do what they do apart; what cannot be joined is refused."""

from __future__ import annotations

import shutil
import subprocess
from graphlib import CycleError
from pathlib import Path

import pytest

from serried.views.web.joined import UnjoinableModule, joined_modules, joined_styles

APART = {
    "base/all.js": (
        "/** A number. @type {number} */\n"
        "export const two = 2;\n"
        "export class Box {\n  /* Holds it. */\n  held = /** @type {number} */ (two);\n}\n"
        "export async function later() {\n  return new Box().held;\n}\n"
        "export function* counted() {\n  yield* [1, two];\n}\n"
        "function hidden() {\n  return `of ${two} // no comment`;\n}\n"
        "export { hidden };\n"
    ),
    "base/door.js": 'export { Box, counted } from "./all.js";\n',
    "app.js": (
        'import { later, hidden as shown } from "./base/all.js";\n'
        'import {\n  Box,\n  counted,\n} from "./base/door.js";\n'
        "const two = 5;\n"
        "console.log(await later(), shown(), new Box().held, [...counted()].join(), two);\n"
    ),
}


def run(module: Path) -> str:
    node = shutil.which("node")
    assert node, "node runs the page's modules; make modules installs it"
    return subprocess.run([node, module], capture_output=True, text=True, check=True).stdout


def test_one_module_does_what_they_do_apart(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for path, text in APART.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    joined = joined_modules(APART, "app.js")
    (tmp_path / "joined.js").write_text(joined)
    assert run(tmp_path / "joined.js") == run(tmp_path / "app.js")
    assert run(tmp_path / "app.js").split() == [
        "2",
        "of",
        "2",
        "//",
        "no",
        "comment",
        "2",
        "1,2",
        "5",
    ]
    assert "/*" not in joined


@pytest.mark.parametrize(
    "text",
    [
        'import * as all from "./a.js";\n',
        'import { a } from "elsewhere";\n',
        "export default 3;\n",
        "export let changing = 3;\n",
        "const a = 1;\nexport { a as b };\n",
        "const text = `one\n  two`;\n",
    ],
)
def test_what_one_file_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(UnjoinableModule, match=r"a\.js"):
        joined_modules({"a.js": text, "app.js": 'import { a } from "./a.js";\n'}, "app.js")


def test_modules_that_import_each_other_are_refused() -> None:
    texts = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    with pytest.raises(CycleError):
        joined_modules(texts, "a.js")


def test_styles_stand_in_the_order_in_which_they_are_imported() -> None:
    texts = {
        "app.css": '/* All. */\n@import "style/b.css";\n@import "style/a.css";\n',
        "style/a.css": "a {\n  /* Red. */\n  color: red;\n}\n",
        "style/b.css": "b {\n}\n",
    }
    assert joined_styles(texts, "app.css") == "b {\n}\na {\n  color: red;\n}\n"
