"""How many layouts a search weighs in a second of one core, beside llm-analysis.

    python benchmarks/search.py

serried        every layout that the rules allow, memory and step of each, the best walked
llm-analysis   0.2.2 of PyPI: one ``LLMAnalysis.training`` a layout, of the same model, in this
               process; where it is not installed, pip puts it and what it needs into a folder that
               is thrown away

Calculon (SC 2023) weighed 8,112 layouts of a model of 530B on 5,128 GPUs in 110 s on two cores.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import logging
import subprocess
import sys
import tempfile
import time
from typing import Any

from serried.plan.catalog import cluster_named, model_named
from serried.plan.request import PlanRequest
from serried.plan.search.search import search
from serried.plan.search.space import SearchSpace

JOBS = (
    ("sc21-529.6b", "a100", 5128, 2564, 2048),
    ("sc21-529.6b", "a100", 5120, 2560, 2048),
    ("llama3.1-405b", "h100", 16384, 2048, 8192),
    ("deepseek-v3", "h100", 2048, 15360, 4096),
)
"""Model, cluster, GPUs, sequences of a step, tokens of each."""
PEER = ("llm-analysis==0.2.2", "fire", "termcolor")
WIDE = SearchSpace(1, zeros=(0, 1, 2, 3), offloads=("none", "optimizer"))


def searched(model: str, cluster: str, gpus: int, batch: int, sequence: int) -> float:
    """Prints what one search took; returns its layouts per second of processor time."""
    asked = PlanRequest(
        model_named(model), cluster_named(cluster), sequence=sequence, global_batch=batch
    )
    space = SearchSpace(gpus, zeros=WIDE.zeros, offloads=WIDE.offloads)
    begun = time.process_time()
    found = search(asked, space)
    took = time.process_time() - begun
    rate = found.num_layouts / took
    best = f"{found.best[0].step_s:.1f} s a step" if found.best else "none fits"
    print(
        f"{model:15} {gpus:6} GPUs  {found.num_layouts:7,} layouts  {took:5.2f} s  {rate:9,.0f}/s"
        f"  {best}"
    )
    return rate


def peer_rate() -> float:
    """Returns how many layouts llm-analysis weighs in a second of processor time."""
    with tempfile.TemporaryDirectory() as folder:
        if importlib.util.find_spec("llm_analysis") is None:
            pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder]
            subprocess.run([*pip, *PEER], check=True)
            sys.path.insert(0, folder)
        logging.disable(logging.CRITICAL)
        analysis: Any = importlib.import_module("llm_analysis.analysis")
        config: Any = importlib.import_module("llm_analysis.config")
        sizes = {"num_layers": 105, "n_head": 128, "hidden_dim": 20480}
        model = config.ModelConfig(name="530b", vocab_size=51200, max_seq_len=2048, **sizes)
        gpu = config.get_gpu_config_by_name("a100-sxm-80gb")
        dtype = config.get_dtype_config_by_name("w16a16e16")
        full = analysis.ActivationRecomputation.FULL
        done, begun = 0, time.process_time()
        # Layouts that fit, as it stops early, and with a warning, where one does not.
        for tp, pp, batch, steps in itertools.product((8,), (15, 21, 35), (1, 2), range(1, 41)):
            parts = config.ParallelismConfig(tp_size=tp, pp_size=pp, sp_size=tp)
            with contextlib.redirect_stdout(io.StringIO()):
                one = analysis.LLMAnalysis(
                    model, gpu, dtype, parts, flops_efficiency=0.5, hbm_memory_efficiency=0.8
                )
                one.training(
                    batch_size_per_gpu=batch,
                    gradient_accumulation_steps=steps,
                    seq_len=2048,
                    activation_recomputation=full,
                    output_dir=None,
                )
            done += 1
        return done / (time.process_time() - begun)


def main() -> None:
    """Prints a row for each search, and the ratio to the peer."""
    searched(*JOBS[0])  # what is loaded once is loaded now
    # Of a few hundred layouts most time goes into walking the best: the rate is that of the others.
    rates = [searched(*job) for job in JOBS][1:]
    peer = peer_rate()
    print(f"llm-analysis    {peer:,.0f}/s; serried {min(rates) / peer:.1f} to ", end="")
    print(f"{max(rates) / peer:.1f} times as many")


if __name__ == "__main__":
    main()
