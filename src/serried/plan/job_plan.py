"""The plan of a job: what every stage holds, what travels, how long a step takes and what of.

PlanRequest ─┬─> memory     fits, and where it is fullest
             ├─> traffic    collectives of each group kind
             └─> time       step, parts that sum to it, 90 % interval ──> tokens/s, MFU, HFU
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from serried.errors import InputError, listed
from serried.plan.memory.job_memory import JobMemory, job_memory
from serried.plan.model.flops import CONVENTIONS, adapted_flops, hardware_flops, model_flops
from serried.plan.request import COMPUTE_FORMATS, PlanRequest
from serried.plan.time.constants import Constants
from serried.plan.time.experience import Familiarity
from serried.plan.time.interval import Beyond, beyond, familiarity, intervals, widened
from serried.plan.time.jobs import Jobs
from serried.plan.time.simulated import simulated_step
from serried.plan.time.step import StepTimes, step_times
from serried.plan.traffic.transfers import Transfer, step_transfers
from serried.shown import Displayed

IN_CLOSED_FORM = ("1f1b", "interleaved-1f1b", "gpipe", "looped-bfs", "eager-1f1b")
"""Schedules whose bubble is that of the closed form; others are walked action by action."""
CONVENTION = "causal"
"""The convention of FLOPs that a plan reports first, as Megatron-LM does."""


@dataclass(frozen=True)
class JobPlan(Displayed):
    """Holds what was asked and everything that follows.

    >>> from serried.launch.request import LayoutRequest
    >>> from serried.plan.asked import plan_request
    >>> sizes = LayoutRequest.of({"world_size": 16, "tp": 2, "pp": 4})
    >>> told = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}
    >>> plan = job_plan(plan_request(sizes, told))
    >>> plan.memory.fits, round(sum(plan.parts.values()) / plan.step_s, 9)
    (True, 1.0)
    """

    asked: PlanRequest
    memory: JobMemory
    traffic: tuple[Transfer, ...]
    step_s: float
    interval_s: tuple[float, float]
    """Between which nine of ten steps lie."""
    parts: Mapping[str, float]
    """Seconds by what they are spent on; they sum to the step."""
    familiarity: Familiarity = "alike"
    """How much like it was measured."""
    beyond: tuple[Beyond, ...] = ()
    """Sizes beyond the most that was measured."""
    widened: float = 1.0
    """How many times as wide the interval is for those."""

    @property
    def tokens(self) -> int:
        """Tokens of one step of the whole job."""
        return self.asked.global_batch * self.asked.sequence

    @property
    def tokens_per_s_gpu(self) -> float:
        """Tokens per second and GPU."""
        return self.tokens / self.step_s / self.asked.degrees.world_size

    def flops_per_token(self, convention: str = CONVENTION) -> float:
        """Returns the model FLOPs of one token's training by a convention."""
        asked = self.asked
        if asked.lora is None:
            return model_flops(asked.model, asked.sequence, convention)
        adapters = sum(asked.trained(stage) for stage in asked.stages) * asked.degrees.tp
        is_causal = CONVENTIONS[convention].is_causal
        return adapted_flops(asked.model, asked.sequence, adapters, is_causal=is_causal)

    @property
    def hardware_flops_per_token(self) -> float:
        """FLOPs that really run for one token, recomputation counted."""
        asked = self.asked
        if asked.lora is not None:
            return self.flops_per_token()
        return hardware_flops(
            asked.model,
            asked.sequence,
            asked.recompute.kind,
            modules=asked.recompute.modules,
            share=asked.recomputed_share,
        )

    def flops_per_s_gpu(self, convention: str = CONVENTION) -> float:
        """Returns model FLOP/s of each GPU by a convention."""
        return self.flops_per_token(convention) * self.tokens_per_s_gpu

    @property
    def peak_flops(self) -> float:
        """What a GPU could do in the format that matrices are multiplied in."""
        gpu = self.asked.cluster.gpu
        return gpu.peak(peak_format(self.asked.compute, gpu.peak_flops))

    def mfu(self, convention: str = CONVENTION) -> float:
        """Returns the share of the peak that the model's FLOPs take, by a convention."""
        return self.flops_per_s_gpu(convention) / self.peak_flops

    @property
    def hfu(self) -> float:
        """The share of the peak that all FLOPs take that really run."""
        return self.hardware_flops_per_token * self.tokens_per_s_gpu / self.peak_flops


def peak_format(compute: str, known: Mapping[str, float]) -> str:
    """Returns the format whose peak counts for what matrices are multiplied in.

    >>> peak_format("mxfp8", {"bf16": 1.0, "fp8": 2.0}), peak_format("bf16", {"fp16": 1.0})
    ('fp8', 'fp16')
    """
    wanted = "fp4" if compute == "nvfp4" else "fp8" if "fp8" in compute else compute
    others = {"bf16": "fp16", "fp16": "bf16"}
    return wanted if wanted in known else others.get(wanted, wanted)


def job_plan(asked: PlanRequest, constants: Constants | None = None) -> JobPlan:
    """Returns the plan of a request; without constants, timed by those that serried ships.

    Raises InputError for steps in fp32, of which none were measured, and for a format that the GPU
    does not multiply in.
    """
    if asked.compute == "fp32":
        raise InputError(
            "steps in fp32 are not planned, as none that were measured ran so; formats that are: "
            "{known}",
            known=listed([each for each in COMPUTE_FORMATS if each != "fp32"]),
        )
    gpu = asked.cluster.gpu
    gpu.peak(peak_format(asked.compute, gpu.peak_flops))
    jobs = Jobs.of([asked])
    times = step_times(jobs, constants)
    if asked.schedule in IN_CLOSED_FORM:
        step = float(np.ravel(times.step)[0])
        parts = {name: float(np.ravel(part)[0]) for name, part in times.parts.items()}
    else:
        step, parts = _walked(asked, times, constants)
    low, high = intervals(jobs, np.array([step]), constants)
    interval = float(np.ravel(low)[0]), float(np.ravel(high)[0])
    return JobPlan(
        asked,
        job_memory(asked),
        step_transfers(asked),
        step,
        interval,
        parts,
        familiarity(jobs, constants)[0],
        beyond(jobs, 0, constants),
        float(widened(jobs, constants)[0]),
    )


def _walked(
    asked: PlanRequest, times: StepTimes, constants: Constants | None
) -> tuple[float, dict[str, float]]:
    """Returns the step and its parts with the schedule walked instead of 1F1B's closed form.

    The work told is that of the rank which works most under this schedule: in a V, or both ways,
    it is another one than 1F1B's fullest. What it does not work is messages, up to what the closed
    form counts of them, and bubble; so neither falls below 0.
    """
    parts = {name: float(np.ravel(part)[0]) for name, part in times.parts.items()}
    step = float(np.ravel(times.step)[0])
    slower = step / (step - parts["straggling"])
    walked = simulated_step(asked, constants)
    counted = asked.num_microbatches * float(np.ravel(times.stages.slowest_layers)[0])
    layers = {name: parts[name] / counted * walked.layers for name in times.layer.parts}
    rest = walked.pipeline_s - walked.work_s
    told = {
        **parts,
        **layers,
        "embedding and output": max(0.0, walked.work_s - sum(layers.values())),
        "pp": min(parts["pp"], rest),
        "straggling": walked.step_s * (1 - 1 / slower),
    }
    told["bubble"] = 0.0
    # Floats of nanoseconds leave about 1e-16 of a step below 0 where ranks are never idle.
    told["bubble"] = max(0.0, walked.step_s - sum(told.values()))
    return walked.step_s, told
