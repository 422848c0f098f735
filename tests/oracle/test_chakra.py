"""Chakra's own tools read what serried writes; without the package the test is skipped.

It is not on PyPI: PYTHONPATH names a folder with ``chakra``, from github.com/mlcommons/chakra.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from serried.trace.formats.chakra.writing import write_chakra
from serried.trace.merge.in_memory import merge
from tests.trace.formats.chakra.chakra_rules import read
from tests.trace.recorded_run import Run

pytestmark = pytest.mark.oracle


def run_tool(tool: str, source: Path, target: Path) -> None:
    words = ["--input_filename", str(source), "--output_filename", str(target)]
    command = [sys.executable, "-m", f"chakra.src.{tool}.{tool}", *words]
    subprocess.run(command, check=True, cwd=target.parent)


def test_jsonizer_and_visualizer_read_every_rank(tmp_path: Path) -> None:
    pytest.importorskip("chakra.src.jsonizer.jsonizer")
    trace = merge([Run(pp=2, dp=2, num_microbatches=2).write(tmp_path / "run")])
    write_chakra(trace, tmp_path / "run.et", message_bytes=4096)
    for rank, nodes in read(tmp_path / "run.et").ranks.items():
        source, target = tmp_path / "run.et" / f"rank.{rank}.et", tmp_path / f"{rank}.json"
        run_tool("jsonizer", source, target)
        metadata, *told = map(json.loads, re.split(r"(?<=})(?={)", target.read_text()))
        assert metadata["version"] == "1.0.0"
        assert [(int(each["id"]), each["name"]) for each in told] == [
            (node.id, node.name) for node in nodes
        ]
        assert [tuple(map(int, each.get("dataDeps", ()))) for each in told] == [
            node.deps for node in nodes
        ]
        run_tool("visualizer", source, tmp_path / f"{rank}.graphml")
        graph = (tmp_path / f"{rank}.graphml").read_text()
        assert graph.count("<edge ") == sum(len(node.deps) for node in nodes)
