"""Every module says what it holds, and what starts quickly loads no heavy package.

Which room may import which is checked by the contracts in ``pyproject.toml`` (``lint-imports``).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from grimp import build_graph

import serried

ROOT = Path(serried.__file__).parent
MODULES = sorted(
    path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.stem != "__init__"
)


def test_no_module_imports_itself_by_way_of_others() -> None:
    # The contracts compare modules of one folder; here a folder's own ``__init__`` counts too.
    graph = build_graph("serried", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, naming the circle


def test_a_module_opens_with_a_sentence_saying_what_it_holds() -> None:
    opened = {
        path: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        for path in MODULES
    }
    first = {path: text.split("\n\n")[0].rstrip() for path, text in opened.items()}
    assert [path for path, sentence in first.items() if not sentence.endswith((".", ":"))] == []


EXTRAS = {"torch", "starlette", "uvicorn", "playwright", "pyarrow"}
READERS = {"yaml", "rich.console", "rich.table", "serried.launch.read", "serried.launch.write"}
OTHERS = {"serried.pipeline", "serried.trace", "serried.runtime", "serried.views.web"}
UNUSED = {"csv", "numpy.typing", "shutil", "tomllib"}
"""What an answer to options in a table has no use for, though Python has it."""
RARE = {"serried.frameworks.megatron.join", "serried.frameworks.megatron.old"} | {
    *("serried.mesh.compare", "serried.mesh.rank", "serried.mesh.sweep"),
    *("serried.frameworks.deepspeed", "serried.views.explain.explanation"),
}
LAID_OUT = READERS | OTHERS | UNUSED | RARE
ABSENT = {
    "groups --world-size 16 --tp 2 --pp 4": EXTRAS | LAID_OUT,
    "groups --world-size 16 --tp 2 --format json": EXTRAS | LAID_OUT,
    "groups --world-size 16 --tp 2 --lang zh": EXTRAS | LAID_OUT,
    "groups tests/launch/files/megatron_gpt_175b.sh": EXTRAS
    | OTHERS
    | {"rich.table", "shutil", "tomllib"},
    "schedule 1f1b --stages 4 --microbatches 8 --format json": EXTRAS
    | {"serried.trace", "yaml", "serried.views.schedule.png", "serried.views.schedule.svg"},
    "trace stats tests/goldens/traces/megatronapp": {"torch", "starlette", "yaml", "sqlite3"}
    | {"concurrent.futures", "serried.views.cli.trace.compare", "serried.trace.formats.perfetto"},
    "--help": EXTRAS | READERS | OTHERS | {"numpy"},
    "serve --help": EXTRAS | READERS | OTHERS | {"numpy"},
    "train --help": EXTRAS
    | {"yaml", "rich.console", "serried.plan", "serried.trace.merge", "serried.views.web"},
    "demo --help": EXTRAS | {"yaml", "serried.trace.merge", "serried.trace.formats"},
}
"""Commands, each with what it has no use for."""


@pytest.mark.parametrize("words", ABSENT)
def test_a_command_loads_nothing_that_it_does_not_use(words: str) -> None:
    code = (
        "import sys; from serried.views.cli.main import run; run(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=True
    )
    assert ABSENT[words] & {*done.stderr.split()} == set()


MADE = (
    "import sys; from serried.views.cli.main import run; run(sys.argv[1:]); "
    "ours = [each for name, each in sys.modules.items() if name.startswith('serried')]; "
    "made = {id(each) for module in ours for each in vars(module).values() "
    "if '__dataclass_fields__' in getattr(each, '__dict__', ())}; "
    "print(len(ours), len(made), file=sys.stderr)"
)


def test_a_short_command_loads_few_modules_and_makes_few_dataclasses() -> None:
    # Every module costs a search and a read, every dataclass a compilation: half a millisecond.
    words = ["groups", "--world-size", "16", "--tp", "2", "--pp", "4"]
    done = subprocess.run(
        [sys.executable, "-c", MADE, *words], capture_output=True, text=True, check=True
    )
    modules, dataclasses = map(int, done.stderr.split())
    assert modules <= 61, modules
    assert dataclasses <= 20, dataclasses


def test_tests_that_need_no_browser_do_not_import_one() -> None:
    code = "import sys, tests.conftest; print('playwright' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
