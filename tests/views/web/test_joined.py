"""Modules joined into one do what they do apart; what cannot be joined is refused."""

from __future__ import annotations

import shutil
import subprocess
from graphlib import CycleError
from pathlib import Path

import pytest

from serried.views.web.edition import STATIC, icon_address, whole_document
from serried.views.web.joined import (
    UnjoinableModule,
    joined_document,
    joined_modules,
    joined_styles,
)

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
    joined = joined_modules(APART, "app.js")["app.js"]
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


LATER = {
    "base/all.js": "let made = 0;\nexport function counted() {\n  return ++made;\n}\n",
    "base/both.js": 'export const both = "both";\n',
    "one/own.js": "export const own = 3;\n",
    "one/later.js": (
        'import { counted } from "../base/all.js";\n'
        'import { both } from "../base/both.js";\n'
        'import { own as mine } from "./own.js";\n'
        "export const one = () => [mine, both, counted()];\n"
    ),
    "two/later.js": ('export { both } from "../base/both.js";\nexport const two = () => "two";\n'),
    "desk/door.js": (
        '/** @typedef {import("../one/own.js").own} Own */\n'
        'export const first = () => import("../one/later.js");\n'
        'export const second = () => import("../two/later.js");\n'
    ),
    "app.js": (
        'import { counted } from "./base/all.js";\n'
        'import { first, second } from "./desk/door.js";\n'
        "const { one } = await first();\n"
        "const { both, two } = await second();\n"
        "console.log(counted(), ...one(), both, two(), one === (await first()).one);\n"
    ),
}


def test_what_is_imported_later_is_a_module_of_its_own(tmp_path: Path) -> None:
    joined = joined_modules(LATER, "app.js")
    assert list(joined) == ["app.js", "one/later.js", "two/later.js"]
    for name, texts in (("apart", LATER), ("joined", joined)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "package.json").write_text('{"type": "module"}')
        for path, text in texts.items():
            (tmp_path / name / path).parent.mkdir(exist_ok=True)
            (tmp_path / name / path).write_text(text)
    assert run(tmp_path / "joined" / "app.js") == run(tmp_path / "apart" / "app.js")
    assert run(tmp_path / "joined" / "app.js").split() == [
        "1",
        "3",
        "both",
        "2",
        "both",
        "two",
        "true",
    ]


def test_a_module_is_in_one_file_only_and_in_the_first_where_several_need_it() -> None:
    joined = joined_modules(LATER, "app.js")
    where = {
        path: [file for file, text in joined.items() if f"// {path}\n" in text] for path in LATER
    }
    assert where["one/own.js"] == where["one/later.js"] == ["one/later.js"]
    assert where["base/both.js"] == where["base/all.js"] == ["app.js"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ('import { one } from "./one/later.js";\n', "one/later.js: it is imported at once as well"),
        ('const three = await import("./three.js");\n', "three.js: it is fetched later itself"),
    ],
)
def test_what_cannot_be_fetched_later_is_refused(more: str, sentence: str) -> None:
    texts = {
        **LATER,
        "three.js": 'export const own = () => import("./one/own.js");\n',
        "app.js": LATER["app.js"] + more,
    }
    with pytest.raises(UnjoinableModule, match=sentence):
        joined_modules(texts, "app.js")


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


def test_a_part_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"document/map\.html"):
        joined_document({"index.html": "<!-- document/map.html -->\n"}, "index.html")


def test_every_part_of_the_document_stands_in_it_once() -> None:
    whole = whole_document()
    parts = [
        path.read_text("utf-8").replace("static/icon.svg", icon_address())
        for path in (STATIC / "document").glob("*.html")
    ]
    assert parts and [whole.count(part) for part in parts] == [1] * len(parts)
    assert "<!--" not in whole
