"""A hostile file for each limit of the launch readers, answered in one sentence, in two languages.

A file beyond a limit is refused, or what lies beyond stays open; either way ``serried groups``
ends in one sentence that says what is too much, with exit code 2 and no traceback.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from serried import launch, limits
from serried.launch.read import read
from serried.limits import Limit
from serried.views.sentences import say
from tests.conftest import Call

ROWS = {name: row for name, row in vars(limits).items() if isinstance(row, Limit)}
CODE = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted(Path(launch.__file__).parent.rglob("*.py"))
)

START = "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size "
JSON = '{"zero_optimization": {"stage": 2}, '
FSDP = "distributed_type: FSDP\nfsdp_config: {}\nnum_processes: "
PARALLEL = "parallel = dict(tensor=dict(mode='isp', size="


def script(*lines: str, tp: str = "2") -> str:
    """Returns a script of ``lines`` that then starts ranks."""
    return "\n".join(["#!/bin/bash", *lines, START + tp, ""])


@dataclass(frozen=True)
class Hostile:
    """Holds a file beyond one limit, and a part of the sentence that it is answered with."""

    name: str
    text: str
    english: str
    chinese: str
    beside: dict[str, str] = field(default_factory=dict)


NO_NUMBER = "不是数"

HOSTILE = {
    # Whole files.
    "LAUNCH_BYTES": Hostile(
        "x.sh", "#" * ((1 << 20) + 1), "holds more than 1 MB", "启动文件最多只读这么大"
    ),
    "LAUNCH_LINES": Hostile(
        "x.sh", "\n" * 100_001, "has more than 100,000 lines", "启动文件最多只读这么多行"
    ),
    # Numbers.
    "DIGITS": Hostile(
        "x.sh", script(tp="9" * 19), "is '9999999999999999999', no number", NO_NUMBER
    ),
    "WORD": Hostile(
        "x.sh",
        script("A=$((999999999999999999 * 10))", tp="$A"),
        "$((999999999999999999 * 10)) on line 2 is not worked out",
        "算不出来",
    ),
    # Configs.
    "CONFIG_VALUES": Hostile(
        "x.json",
        JSON + ", ".join(f'"a{i}": 1' for i in range(50_001)) + "}",
        "unfolds to more than 50000 values",
        "展开后超过 50000 个值",
    ),
    "CONFIG_DEPTH": Hostile(
        "x.json", JSON + '"x": ' + "[" * 61 + "]" * 61 + "}", "is nested too deeply", "嵌套太深"
    ),
    "CONFIG_KEY": Hostile(
        "x.json",
        JSON + f'"{"k" * 1001}": 1}}',
        "more than 1000 letters, as no launch file does",
        "有一个键超过 1000 个字符",
    ),
    "CONFIG_REFERENCE": Hostile(
        "x.yaml",
        FSDP + "${oc.env:N," + " " * 1000 + "8}\n",
        "num_processes is '${oc.env:N,",
        NO_NUMBER,
    ),
    "CLAIMS": Hostile(
        "x.sh",
        "".join(f"{START}{i}\n" for i in range(1, 30)),
        "12 (x.sh line 12, --tensor-model-parallel-size); give it",
        "12（x.sh 第 12 行",
    ),
    "YAML_NUMBER": Hostile("x.yaml", FSDP + "1" * 81 + "\n", "is '11111", NO_NUMBER),
    "TOML_ROW": Hostile(
        "x.toml",
        f"[parallelism]\ntensor_parallel_degree = 'x'{' ' * 4096}\n",
        "x.toml, parallelism.tensor_parallel_degree is 'x', no number",
        NO_NUMBER,
    ),
    "YAML_DEFAULTS": Hostile(
        "x.yaml",
        "defaults: a.yaml\nactor_rollout_ref: {}\n",
        "takes in other configs more than 64 times",
        "导入别的配置超过 64 次",
        {"a.yaml": "defaults: a.yaml\n"},
    ),
    "PYTHON_TEXT": Hostile(
        "x.py",
        'a = "1"\n' + 'a = f"{a}{a}"\n' * 14 + PARALLEL + "int(a)))\n",
        "f'{a}{a}' on line 15 of x.py is not run",
        "不运行",
    ),
    "PYTHON_POWER": Hostile(
        "x.py", PARALLEL + "1 ** 65))\n", "1 ** 65 on line 1 of x.py is not run", "不运行"
    ),
    "PYTHON_IMPORTS": Hostile(
        "x.py",
        "from a import *\n" + PARALLEL + "TP))\n",
        "x.py does not set TP before line 2",
        "TP",
        {"a.py": "from a import *\n"},
    ),
    "PYTHON_FILES": Hostile(
        "x.py",
        "from a import *\n" * 17 + PARALLEL + "2))\n",
        "more than 16 times; write out what it takes from them",
        "导入别的配置超过 16 次",
        {"a.py": "b = 1\n"},
    ),
    # Scripts.
    "SCRIPT_WORDS": Hostile(
        "x.sh",
        script("A=1\n" * 50_001),
        "it has more words and expansions than a launch script, 50000",
        "超过 50000 个",
    ),
    "SCRIPT_BLOCKS": Hostile(
        "x.sh", script("{ " * 61), "blocks are nested too deeply", "语句块嵌套太深"
    ),
    "SCRIPT_EXPANSIONS": Hostile(
        "x.sh",
        script("A=" + "${A:-" * 200 + "2" + "}" * 200),
        "line 2: expansions are nested too deeply",
        "展开嵌套得太深",
    ),
    "SCRIPT_CALLS": Hostile(
        "x.sh",
        script("source y.sh"),
        "the script calls itself without end",
        "没完没了",
        {"y.sh": "source y.sh\n"},
    ),
    "SCRIPT_STEPS": Hostile(
        "x.sh",
        script("for i in 1 2 3 4 5 6 7 8 9; do\n" * 8 + "A=$i\n" + "done\n" * 8),
        "the script takes more steps than a launch script does",
        "步数超过了",
    ),
    "SCRIPT_STARTS": Hostile(
        "x.sh", (START + "2\n") * 501, "starts ranks 501 times, and at most 500", "最多只读 500 次"
    ),
    "SCRIPT_TURNS": Hostile(
        "x.sh",
        script("for i in " + " ".join(map(str, range(65))) + "; do A=$i; done", tp="$i"),
        "the loop on line 2 sets it",
        "第 2 行的循环",
    ),
    "SCRIPT_VALUE": Hostile(
        "x.sh",
        script(f"A={'1' * 1000}", *["A=$A$A"] * 10, tp="$A"),
        "grows beyond a million letters",
        "一百万",
    ),
    "SCRIPT_CHOICE": Hostile(
        "x.sh",
        script(f"if a; then A={'1' * 20_000}; else A=2; fi", tp="$A"),
        "the condition on line 2 is open",
        "第 2 行的条件",
    ),
    "SCRIPT_EDITED": Hostile(
        "x.sh", script(f"A={'1' * 4097}", tp="${A%1}"), "${A%1} on line 3 is not known", "${A%1}"
    ),
    "SCRIPT_COMMAND": Hostile(
        "x.sh",
        script("A=8", tp=f"$(expr {' ' * 1000} $A / 4)"),
        "$(expr) on line 3 is not run",
        "不运行",
    ),
    "SCRIPT_ARITHMETIC": Hostile(
        "x.sh", script(tp=f"$(( {' ' * 10_000} 2 ))"), "on line 2 is not run", "不运行"
    ),
}
ELSEWHERE = {
    *("FOLDER_NAMES", "FOLDER_FILES", "FOLDER_BYTES", "REMARKS"),
    *("NAMED_FILES", "NAMED_DEPTH"),
}
"""Limits with a test of their own below."""


def test_each_limit_of_a_launch_reader_has_a_hostile_file() -> None:
    held = ROWS.keys() & set(re.findall(r"\b(\w+)\.most\b", CODE))
    assert held == HOSTILE.keys() | ELSEWHERE


@pytest.mark.parametrize("limit", HOSTILE)
@pytest.mark.parametrize(
    "language", ["C.UTF-8", pytest.param("zh_CN.UTF-8", marks=pytest.mark.soak)]
)
def test_a_file_beyond_a_limit_ends_in_one_sentence(
    serried: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    language: str,
) -> None:
    hostile = HOSTILE[limit]
    for name, text in {**hostile.beside, hostile.name: hostile.text}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv("LC_ALL", language)
    shown = serried("groups", str(tmp_path / hostile.name))
    assert (shown.code, shown.out) == (2, ""), shown.err
    assert shown.err.count("\n") == 1 and "Traceback" not in shown.err
    assert (hostile.english if language.startswith("C") else hostile.chinese) in shown.err


def test_a_config_whose_imports_go_on_without_end_says_how_far_they_are_followed() -> None:
    config = read(HOSTILE["PYTHON_IMPORTS"].text, name="x.py", beside={"a.py": "from a import *\n"})
    told = (
        "a.py line 1: all names of a come in here, and imports are followed through 4 files at most"
    )
    assert told in map(str, config.notes)


def test_remarks_beyond_what_people_read_are_left_out() -> None:
    config = read(START + "2" + "".join(f" $X{i}" for i in range(1000)), name="x.sh")
    assert len(config.notes) == 201
    assert str(config.notes[-1]) == (
        "there are more than 200 such remarks, and the others are left out"
    )
    assert say(config.notes[-1], "zh") == "这类提醒超过 200 条，其余的不再列出"


@pytest.mark.parametrize(
    ("row", "most"), [("FOLDER_NAMES", 0), ("FOLDER_FILES", 3), ("FOLDER_BYTES", 100)]
)
def test_a_folder_is_looked_through_up_to_its_limits(
    serried: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, most: int
) -> None:
    (tmp_path / "x.sh").write_text(script())
    for i in range(5):
        (tmp_path / f"a{i}.txt").write_text("nothing" * 10)
    assert serried("groups", str(tmp_path)).code == 0
    monkeypatch.setattr(sys.modules["serried.launch.read"], row, Limit(most, "", ""))
    shown = serried("groups", str(tmp_path))
    assert shown.code == 2
    assert "holds no launch file that serried knows" in shown.err
