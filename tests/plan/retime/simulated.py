"""A run of several steps that was simulated with known constants, as a Trace."""

from __future__ import annotations

import dataclasses

import numpy as np

from serried import frameworks
from serried.action import Spans
from serried.frameworks import Sizes
from serried.mesh.layers import evenly
from serried.pipeline import Costs, Links, Request, generate, planned_spans, simulate
from serried.pipeline.shared_cores import SharedCores
from serried.trace.model.laid_out import trace_of_layout
from serried.trace.model.trace import Trace

LAYER_MS, FIRST_MS, LAST_MS = (2.0, 2.5, 1.5), (1.0, 0.5, 0.25), (3.0, 2.0, 1.0)
HOP_MS, AROUND_MS = 0.75, 9.0


def costs_of(num_layers: int, num_stages: int, sequences: int, hop_ms: float = HOP_MS) -> Costs:
    """Returns the costs, in milliseconds, of stages that hold so many layers between them."""
    held = evenly(num_layers, pp=num_stages).counts
    rows = np.outer(held, LAYER_MS)
    rows[0] += FIRST_MS
    rows[-1] += LAST_MS
    forward, input_grad, weight_grad = (rows * sequences).T.tolist()
    return Costs(forward, input_grad, weight_grad, links=Links(latency=hop_ms))


def run_of(
    pp: int,
    schedule: str,
    microbatches: int,
    *,
    num_layers: int = 16,
    sequences: int = 2,
    dp: int = 1,
    num_steps: int = 6,
    says_layers: bool = True,
    cores: int = 0,
) -> tuple[Trace, float]:
    """Returns the run, and how long each of its pipelines takes, in seconds.

    With ``cores`` its ranks compute for real on so many, which they share.
    """
    made = generate(schedule, Request(pp, microbatches))
    costs = costs_of(num_layers, made.placement.num_stages, sequences)
    simulation = simulate(made, costs, SharedCores(cores, dp) if cores else None)
    one = planned_spans(simulation)
    layout = frameworks.layout("megatron", Sizes(pp * dp, pp=pp))
    step_ns = int((float(simulation.makespan) + AROUND_MS) * 1e6)
    parts = []
    for step in range(num_steps):
        for ranks in np.arange(pp * dp).reshape(pp, dp).T:
            moved = one.shifted(step * step_ns)
            columns = {"rank": ranks[one.rank].astype(np.int32), "step": one.step + np.int32(step)}
            parts.append(dataclasses.replace(moved, **columns))
    hosts = {"a": range(pp * dp)}
    trace = trace_of_layout("simulated", layout, hosts, Spans.joined(parts), schedule=schedule)
    work = {"layers": num_layers, "sequences": sequences, "tokens": 8} if says_layers else {}
    # On GPUs ranks share no cores.
    computes = {"device": "cpu", "cores": cores} if cores else {"backend": "nccl"}
    job = dataclasses.replace(trace.job, work=work, **computes)
    return dataclasses.replace(trace, job=job), float(simulation.makespan) / 1e3
