"""A plan as the document ``serried.plan/1``: what was asked, memory, traffic, time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from serried.launch.facts.config import LaunchConfig
from serried.plan.job_plan import CONVENTION, JobPlan
from serried.plan.memory.rank_memory import PlannedMemory
from serried.plan.model.flops import CONVENTIONS
from serried.plan.model.parameters import active_parameters, model_parameters
from serried.plan.model.written import text_of
from serried.plan.request import PlanRequest
from serried.plan.traffic.transfers import Transfer
from serried.views.plan.doubts import doubts
from serried.views.plan.text import fit_verdict, time_verdict
from serried.views.sentences import say

SCHEMA = "serried.plan/1"


def plan_document(plan: JobPlan, *, lang: str = "en") -> dict[str, Any]:
    """Returns the document; bytes and seconds are whole and plain numbers."""
    low, high = plan.interval_s
    return {
        "schema": SCHEMA,
        "verdict": say(fit_verdict(plan), lang),
        "asked": asked_document(plan.asked),
        "fits": plan.memory.fits,
        "memory": [_place(plan, each) for each in plan.memory.of_ranks],
        "traffic": [_transfer(each) for each in plan.traffic],
        "time": {
            "verdict": _time_words(plan, lang),
            "step_s": plan.step_s,
            "interval_s": [low, high],
            "familiarity": plan.familiarity,
            "beyond": [asdict(each) for each in plan.beyond],
            "parts_s": dict(plan.parts),
            "tokens_per_s_gpu": plan.tokens_per_s_gpu,
            "flops_per_s_gpu": plan.flops_per_s_gpu(),
        },
        "mfu": plan.mfu(),
        "hfu": plan.hfu,
        "flops_convention": CONVENTION,
        "mfu_by_convention": {name: plan.mfu(name) for name in CONVENTIONS},
    }


def _time_words(plan: JobPlan, lang: str) -> str:
    """Returns how long a step takes, and what of that lies beyond what was measured."""
    told = (say(each, lang) for each in (time_verdict(plan), *doubts(plan)))
    return ("；" if lang == "zh" else "; ").join(told)


def read_document(config: LaunchConfig, *, lang: str = "en") -> dict[str, Any]:
    """Returns what a launch file says of the model and its training, each with its place."""
    return {
        name: {"value": found.value, "where": say(found.where, lang)}
        for name, found in config.training.items()
    }


def asked_document(asked: PlanRequest) -> dict[str, Any]:
    """Returns what was asked, resolved to numbers."""
    return {
        "model": {
            "name": asked.model.name,
            "parameters": model_parameters(asked.model).total,
            "active_parameters": active_parameters(asked.model),
            "source": asked.model.source,
            "written": text_of(asked.model),
        },
        "cluster": {"name": asked.cluster.name, "gpu": asked.cluster.gpu.name},
        "framework": asked.framework,
        "world_size": asked.degrees.world_size,
        "sizes": asdict(asked.degrees),
        "sequence": asked.sequence,
        "micro_batch": asked.micro_batch,
        "global_batch": asked.global_batch,
        "microbatches": asked.num_microbatches,
        "schedule": asked.schedule,
        "order": asked.order,
        "stage_layers": [stage.num_layers for stage in asked.stages],
        "zero": asked.zero,
        "states": asked.states,
        "compute": asked.compute,
        "recompute": asdict(asked.recompute),
        "offload": asked.offload,
        "lora": asdict(asked.lora) if asked.lora else None,
    }


def _place(plan: JobPlan, memory: PlannedMemory) -> dict[str, Any]:
    stages = [plan.asked.stages[number] for number in memory.stages]
    return {
        "pp_rank": memory.pp_rank,
        "stages": list(memory.stages),
        "layers": [[stage.layers.start, stage.layers.stop] for stage in stages],
        "parameters": sum(plan.asked.parameters(stage).total for stage in stages),
        "first_rank": memory.first_rank,
        "items": {each.name: each.num_bytes for each in memory.items},
        "total": memory.total,
        "allocated": memory.allocated,
        "interval": list(memory.interval),
        "card": memory.card_bytes,
        "fits": memory.fits,
        "moment": memory.moment,
    }


def _transfer(each: Transfer) -> dict[str, Any]:
    return {
        "kind": each.kind,
        "collective": each.collective,
        "ranks": each.ranks,
        "size_bytes": each.size_bytes,
        "sent_bytes": each.sent_bytes,
        "times": each.times,
        "link": each.link,
        "beside": each.beside,
        "algorithm": each.algorithm,
        "seconds": each.seconds,
    }
