"""The public names of serried: those that are documented, whatever is imported first."""

from __future__ import annotations

import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import serried
from serried.errors import InputError
from serried.launch.read import read_path
from serried.pipeline import simulate
from serried.pipeline.schedules.one_f_one_b import one_f_one_b
from tests.conftest import Call

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "tests/launch/files/megatron_gpt_175b.sh"


@pytest.mark.parametrize("page", ["python.md", "python.zh.md"])
def test_every_public_name_is_documented_and_no_other(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(("| [`", "| `"))]
    assert sorted(re.findall(r"`([A-Za-z_]+)`", "".join(rows))) == sorted(serried.__all__)
    assert len(serried.__all__) <= 16


@pytest.mark.parametrize("name", serried.__all__)
def test_a_public_name_is_there_and_listed(name: str) -> None:
    assert getattr(serried, name).__name__ == name
    assert name in dir(serried)


def test_no_module_has_the_name_of_a_function() -> None:
    modules = {each.name for each in pkgutil.iter_modules(serried.__path__)}
    assert modules & set(serried.__all__) == set()


MODULES = "import serried.pipeline.schedule, serried.launch, serried.action"
NAMES = "a = serried.schedule, serried.layout"


@pytest.mark.parametrize("lines", [(MODULES, NAMES), (NAMES, MODULES)], ids=["after", "before"])
def test_a_function_stays_one_whether_modules_are_imported_before_or_after(
    lines: tuple[str, str],
) -> None:
    check = "print(all(map(callable, (serried.schedule, serried.layout))))"
    code = "\n".join(("import serried", *lines, check, "from serried.pipeline import schedule"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_importing_serried_loads_nothing_heavy() -> None:
    code = "import sys, serried; print({'torch', 'numpy', 'click', 'rich'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.parametrize("name", ["guard", "record", "record_steps", "span"])
def test_what_hooks_into_torch_says_so_where_there_is_none(name: str) -> None:
    # None in the place of a module is how Python says that it cannot be imported.
    code = f"import sys; sys.modules['torch'] = None; import serried; serried.{name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    said = f"serried.errors.EnvironmentProblem: serried.{name} hooks into PyTorch, which is not"
    assert done.stderr.splitlines()[-1].startswith(said)


@pytest.fixture(name="command")
def serried_command(serried: Call) -> Call:
    return serried


def test_a_layout_is_the_one_that_the_command_prints(command: Call) -> None:
    layout = serried.layout(SCRIPT, tp=4)
    printed = command("groups", str(SCRIPT), "--tp", "4", "--kind", "tp", "--format", "json")
    assert json.loads(printed.out)["groups"]["tp"] == layout.groups("tp").lists()
    assert serried.layout(read_path(SCRIPT), tp=4).kinds == layout.kinds


def test_a_size_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="'tpp' is not a size; sizes that are: world_size, tp"):
        serried.layout(world_size=8, tpp=2)


def test_a_schedule_is_simulated_with_the_costs_given() -> None:
    costs = serried.Costs(forward=3, links=serried.Links(latency=1))
    found = serried.schedule("1F1B", stages=4, microbatches=8, costs=costs)
    assert found.simulation.makespan == simulate(one_f_one_b(4, 8), costs).makespan


def test_a_schedule_without_sizes_says_what_is_missing() -> None:
    with pytest.raises(serried.SerriedError, match="the number of microbatches is missing"):
        serried.schedule("1f1b", stages=4)


def test_a_schedule_is_read_from_a_file_of_actions(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("0F0,0B0\n1F0,1B0\n", encoding="utf-8")
    assert serried.schedule(str(path)).schedule.texts(1) == ["1F0", "1B0"]
    with pytest.raises(serried.SerriedError, match="has stages=2, and --stages is 3"):
        serried.schedule(str(path), stages=3)


def test_a_trace_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(serried.SerriedError):
        serried.read_trace(tmp_path)
