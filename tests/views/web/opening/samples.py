"""A file of every kind that can be opened, written for tests as its own tool writes it."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path

from serried.trace.formats.perfetto import write_perfetto
from serried.trace.merge.in_memory import merge
from serried.views.web.opening.kinds import Kind
from tests.trace.formats.gpu.test_nsight import export
from tests.trace.recorded_run import Run
from tests.views.web import slow_node

TRACES = Path(__file__).parents[3] / "goldens" / "traces"
SCRIPT = b"""#!/bin/bash
torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 4
"""
LOG = b"""[rank3]:[E429 12:00:01.5 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective
 operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600100 ms
"""
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 512,
    "vocab_size": 1000,
}
ENTRY = {
    "process_group": ["0", "default_pg"],
    "profiling_name": "nccl:all_reduce",
    "record_id": 0,
    "collective_seq_id": 1,
    "state": "scheduled",
    "retired": False,
    "input_sizes": [[8]],
    "input_dtypes": ["Float"],
    "time_created_ns": 1,
    "is_p2p": False,
}
DUMP = {"version": "2.4", "entries": [ENTRY], "pg_config": {"0": {"ranks": "[0, 1]"}}}
PLAN = {
    "schema": "serried.plan/1",
    "asked": {
        "model": {"name": "llama3-8b"},
        "cluster": {"name": "dgx-h100"},
        "framework": "megatron",
        "world_size": 16,
        "sizes": {"tp": 2, "pp": 4, "cp": 1, "dp": 2, "ep": 1, "etp": 1, "chunks": 1},
        "sequence": 8192,
        "micro_batch": 1,
        "global_batch": 64,
        "schedule": "1f1b",
        "order": "",
        "zero": 1,
        "compute": "bf16",
        "recompute": {"kind": "none", "layers": None, "modules": []},
    },
}
GROUPS = {
    "schema": "serried.groups/1",
    "framework": "megatron",
    "world_size": 8,
    "sizes": {"tp": 2, "pp": 2, "dp": 2},
    "groups": {"tp": [[0, 1], [2, 3], [4, 5], [6, 7]]},
}
STACKS = b'Process 12: python train.py\nThread 12 (idle): "MainThread"\n    send (torch/x.py:9)\n'
DIAGNOSIS = {
    "schema": "serried.diagnosis/1",
    "findings": [
        {
            "verdict": "rank 2 never came to all-reduce 7 of dp 1",
            "class": "hang",
            "kind": "never_arrived",
            "ranks": [2],
            "groups": ["dp 1"],
            "collective": None,
            "waiting": [{"rank": 0, "waits_for": [2], "what": "all-reduce 7", "directly": True}],
            "chain": ["rank 0 waits for rank 2"],
            "cures": ["look at rank 2"],
            "evidence": [{"source": "rank_0.log", "line": 3, "text": "timeout"}],
            "confidence": 0.9,
            "cost": None,
        }
    ],
    "missing_evidence": [],
    "notes": [],
    "ranks_heard": [0, 1],
    "world_size": 4,
}


def _json(document: object) -> Callable[[Path], bytes]:
    return lambda _: json.dumps(document).encode()


def _recording(folder: Path) -> bytes:
    run = Run(pp=1, num_microbatches=2, num_steps=1).write(folder / "made")
    return next(run.glob("rank-*.spans")).read_bytes()


def _perfetto(folder: Path) -> bytes:
    run = Run(pp=1, num_microbatches=2, num_steps=1).write(folder / "drawn")
    write_perfetto(merge([run]), folder / "run.pftrace")
    return (folder / "run.pftrace").read_bytes()


def _nsight(folder: Path) -> bytes:
    return export(folder).read_bytes()


def _golden(name: str) -> Callable[[Path], bytes]:
    return lambda _: (TRACES / name).read_bytes()


FILES: dict[str, tuple[Kind, str, Callable[[Path], bytes]]] = {
    "script": (Kind.LAUNCH, "train.sh", lambda _: SCRIPT),
    "hostfile": (Kind.HOSTFILE, "hosts", lambda _: b"node1 slots=8\nnode2 slots=8\n"),
    "model": (Kind.MODEL, "config.json", _json(CONFIG)),
    "recording": (Kind.RECORDING, "rank-00000.spans", _recording),
    "kineto": (Kind.EVENTS, "rank0.json", _golden("kineto/rank0.json")),
    "kineto packed": (Kind.EVENTS, "rank1.json.gz", _golden("kineto/rank1.json.gz")),
    "chrome": (Kind.EVENTS, "trace.json", _golden("megatronapp/pp4_iter10.json")),
    "parquet": (Kind.PARQUET, "t.parquet", _golden("straggler_analysis/trace-ST.parquet")),
    "nsight": (Kind.NSIGHT, "rank3.sqlite", _nsight),
    "perfetto": (Kind.PERFETTO, "run.pftrace", _perfetto),
    "paddle log": (Kind.PADDLE_LOG, "workerlog.0", _golden("paddle/single/workerlog.0")),
    "dump": (Kind.DUMP, "dump_rank_0", lambda _: pickle.dumps(DUMP, 2)),
    "dump as JSON": (Kind.DUMP, "rank_0.json", _json(DUMP)),
    "stacks": (Kind.STACKS, "pyspy_rank_0.txt", lambda _: STACKS),
    "log": (Kind.LOG, "rank_3.log", lambda _: LOG * 20),
    "log packed": (Kind.LOG, "rank_3.log.gz", lambda _: gzip.compress(LOG * 20)),
    "check": (Kind.CHECK, "check.json", _json(slow_node.document())),
    "plan": (Kind.PLAN, "plan.json", _json(PLAN)),
    "diagnosis": (Kind.DIAGNOSIS, "diagnosis.json", _json(DIAGNOSIS)),
    "groups": (Kind.GROUPS, "groups.json", _json(GROUPS)),
}
"""Of every kind a file: what it is, how it is usually called, and what it holds."""
