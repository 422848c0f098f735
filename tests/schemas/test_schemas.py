"""The published JSON schemas are those of what the commands really print."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from serried.errors import InputError
from serried.schemas import json_schema, schema_names
from tests.conftest import Call
from tests.schemas.conform import conform
from tests.trace.recorded_run import Run
from website.commands import commands

ROOT = Path(__file__).parents[2]
MODEL = "--model llama3-8b --cluster h100 --sequence 8192 --global-batch 64"
JOB = f"{MODEL} --world-size 16 --tp 2 --pp 4"
GOLDEN = ROOT / "tests/goldens/traces"
COMMANDS = {
    "groups --world-size 16 --tp 2 --pp 4": "groups",
    "groups --world-size 16 --zero 3 --parameters 7.5B --framework fsdp": "groups",
    "groups --world-size 16 --zero 1 --framework megatron": "groups",
    "groups --world-size 16 --zero 1 --framework devicemesh": "groups",
    "groups --world-size 16 --zero 3 --parameters 7.5B --step 1": "sharded-step",
    "groups --world-size 16 --tp 2 --pp 4 --rank 5": "rank",
    "groups --world-size 16 --tp 2 --pp 4 --rank 0 --framework deepspeed": "rank",
    "groups --world-size 16 --tp 16 --advice": "advice",
    "groups --world-size 16 --tp 2 --pp 4 --compare internlm": "comparison",
    "groups --world-size 16,32 --tp 2": "sweep",
    "groups --world-size 16 --tp 2 --pp 4 --layers 8": "layers",
    f"groups {ROOT}/tests/launch/files/megatron_gpt_175b.sh --sources": "sources",
    "groups --world-size 16 --tp 2 --sources": "sources",
    "schedule zb-h1 --stages 4 --microbatches 8": "schedule",
    "schedule interleaved-1f1b --stages 4 --microbatches 8 --chunks 2": "schedule",
    "collective all-reduce --ranks 8 --algorithm ring": "collective",
    "collective all-to-all --ranks 24 --gpus-per-node 8 --network h100": "collective",
    "collective all-reduce --ranks 16 --compare": "collective-comparison",
    "explain dp --world-size 16 --tp 2": "card",
    f"plan {JOB}": "plan",
    f"plan {JOB} --gpu-mtbf 50000 --checkpoint-time 30 --restart-time 600 --tokens 1T": "plan",
    f"plan {ROOT}/tests/launch/files/megatron_gpt_175b.sh --cluster h100": "plan",
    f"search {MODEL} --world-size 8": "search",
    f"search {MODEL.replace('8b', '70b')} --world-size 8": "search",
    "plan --from RUN --pp 2 --microbatches 4": "retimed-step",
    "trace stats RUN": "trace-stats",
    "trace stats RUN --by step,rank,stage": "trace-stats",
    "trace stats RUN --by step": "trace-stats",
    f"trace stats {GOLDEN}/megatronapp": "trace-stats",
    f"trace stats {GOLDEN}/kineto": "trace-stats",
    f"trace stats {GOLDEN}/paddle/multi --pp 2 --dp 2": "trace-stats",
    f"trace stats {GOLDEN}/hta/mi250.json.gz": "gpu-stats",
    f"trace stats {GOLDEN}/hta/alexnet.json.gz": "gpu-stats",
    f"trace stats {GOLDEN}/megatron_timers/all.log --pp 4 --dp 1": "timer-stats",
    "trace compare RUN RUN": "trace-compare",
    "trace compare RUN --plan": "trace-compare",
    f"diagnose {ROOT}/benchmarks/diagnosis/excerpts/02.log": "diagnosis",
    f"diagnose {ROOT}/benchmarks/diagnosis/excerpts/23.log": "diagnosis",
    "diagnose --watch RUN": "watch",
}
"""What is printed, by the command; RUN is a run of six steps."""
ELSEWHERE = {
    "check": "tests/views/cli/test_check.py",
    "tune": "tests/views/runs/test_tuning.py",
    "trace merge": "tests/views/cli/trace/test_merge.py",
}
"""Commands whose documents need ranks or a file, by the tests that hold those against a schema."""
FILES = {"trace", "planned-step", "plans"}
"""Documents that are read by serried alone, or are no answer of a command."""


@pytest.mark.parametrize("name", schema_names())
def test_a_schema_is_valid_and_of_its_name(name: str) -> None:
    schema = json_schema(name)
    Draft202012Validator.check_schema(schema)
    assert schema["title"] == schema["properties"]["schema"]["const"] == name
    assert schema["description"]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_prints_has_its_schema(command: str, serried: Call, tmp_path: Path) -> None:
    if "RUN" in command:
        Run(num_steps=6).write(tmp_path)
    printed = serried(*command.replace("RUN", str(tmp_path)).split(), "--format", "json").out
    document = json.loads(printed.splitlines()[0] if "--watch" in command else printed)
    conform(document, f"serried.{COMMANDS[command]}/1")


def test_every_command_that_prints_json_is_asked_for_it() -> None:
    printing = {
        " ".join(words)
        for words, command in commands()
        for option in command.params
        if option.name == "form" and "json" in getattr(option.type, "choices", ())
    }
    asked = {each for each in printing if any(one.startswith(f"{each} ") for one in COMMANDS)}
    assert len(asked) > 8
    assert printing - asked == set(ELSEWHERE)
    assert all("conform(" in (ROOT / path).read_text("utf-8") for path in ELSEWHERE.values())


def test_every_document_that_views_print_is_published() -> None:
    views = ROOT / "src/serried/views"
    pages = [path for path in views.rglob("*.py") if "web" not in path.relative_to(views).parts]
    printed = {
        name
        for path in pages
        for name in re.findall(r'"serried\.([a-z-]+)/1"', path.read_text(encoding="utf-8"))
    }
    assert len(printed) > 20
    assert printed - FILES - {name[8:-2] for name in schema_names()} == set()


def test_a_name_that_none_has_is_answered_with_all() -> None:
    with pytest.raises(InputError, match=r"no schema serried\.group/1; those .*serried\.groups/1"):
        json_schema("serried.group/1")
