"""Chakra's own tools read what serried writes; without the package the test is skipped.

It is not on PyPI: PYTHONPATH names a folder with ``chakra``, from github.com/mlcommons/chakra.
ASTRA_SIM names ASTRA-sim's program AstraSim_Analytical_Congestion_Aware.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from serried.trace.formats.chakra.writing import write_chakra
from serried.trace.merge.in_memory import merge
from tests.conftest import Call
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


ASTRA_SIM = os.environ.get("ASTRA_SIM")
NETWORK = "topology: [ Switch ]\nnpus_count: [ 16 ]\nbandwidth: [ 400.0 ]\nlatency: [ 936.0 ]\n"
SYSTEM = {
    "scheduling-policy": "LIFO",
    "endpoint-delay": 0,
    "active-chunks-per-dimension": 1,
    "preferred-dataset-splits": 4,
    **{
        f"{each}-implementation": ["ring"]
        for each in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
    },
    "collective-optimization": "localBWAware",
    "local-mem-bw": 1600,
    "boost-mode": 0,
    "roofline-enabled": 0,  # computations take the time that they have
    "peak-perf": 900,
}


@pytest.mark.skipif(not ASTRA_SIM, reason="ASTRA_SIM names no simulator")
def test_astra_sim_ends_a_planned_step_when_the_plan_does(serried: Call, tmp_path: Path) -> None:
    job = ["--model", "llama3-8b", "--cluster", "h100", "--world-size", "16", "--tp", "2"]
    job += ["--pp", "4", "--sequence", "8192", "--global-batch", "32", "--format", "json"]
    step = tmp_path / "step.et"
    planned = json.loads(serried("plan", *job).out)["time"]["step_s"]
    serried("plan", *job, "--trace", str(step))
    (tmp_path / "system.json").write_text(json.dumps(SYSTEM))
    (tmp_path / "network.yml").write_text(NETWORK)
    (tmp_path / "memory.json").write_text(json.dumps({"memory-type": "NO_MEMORY_EXPANSION"}))
    given = {
        "workload": step / "rank",
        "comm-group": step / "groups.json",
        "system": tmp_path / "system.json",
        "network": tmp_path / "network.yml",
        "remote-memory": tmp_path / "memory.json",
    }
    words = [f"--{name}-configuration={path}" for name, path in given.items()]
    done = subprocess.run(
        [str(ASTRA_SIM), *words], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    ends = [int(each) for each in re.findall(r"finished, (\d+) cycles", done.stdout)]
    assert len(ends) == 16
    assert max(ends) / 1e9 == pytest.approx(planned, rel=0.03)  # a cycle is a nanosecond
