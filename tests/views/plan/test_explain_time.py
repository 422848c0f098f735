"""Every formula of a step's time gives the plan's own part with the numbers that it prints."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from serried.launch.request import LayoutRequest
from serried.plan.asked import plan_request
from serried.plan.job_plan import JobPlan, job_plan
from serried.plan.time.constants import shipped
from serried.plan.time.layer import PARTS
from serried.views.plan.explain import explained
from serried.views.plan.explain_layer import layer_parts
from serried.views.plan.explain_offload import layer_offload
from serried.views.plan.explain_step import step_parts
from serried.views.plan.explain_time import of_time
from serried.views.plan.explain_traffic import of_one
from serried.views.plan.formula import Formula
from serried.views.plan.timed_plan import TimedPlan, one
from serried.views.plan.words import time_word

UNITS = {
    "TFLOP/s": 1e12,
    "GB/s": 1e9,
    "GB": 1e9,
    "MB": 1e6,
    "kB": 1e3,
    "B": 1,
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
}
JOBS: dict[str, str] = {
    "dense": "tp=2 pp=4",
    "dense fp8, alone": "world_size=8 compute=fp8",
    "long, cp": "tp=2 cp=4 sequence=32768 recompute=full",
    "latent": "model=deepseek-v3 world_size=64 pp=4 layers=16,15,15,15 ep=16 "
    "recompute=selective:mla_up_proj,mlp",
    "latent without a rank of queries": "model=deepseek-v2-lite ep=8",
    "experts with biases": "model=gpt-oss-120b world_size=64 ep=16 cluster=gb200 compute=mxfp8",
    "experts over nodes": "model=mixtral-8x22b world_size=64 tp=4 pp=2 ep=8 etp=4",
    "sharded": "zero=3 framework=fsdp world_size=32",
    "hybrid": "zero=3 framework=fsdp world_size=32 shard_ranks=8",
    "old": "model=gpt3-175b cluster=a100 world_size=64 tp=8 pp=8 framework=deepspeed",
    "adapters": "model=llama2-70b world_size=8 tp=4 lora=16 compute=fp8",
    "activations away": "tp=2 pp=4 offload=activations",
    "optimizer away": "tp=2 offload=optimizer",
    "parameters away": "zero=3 framework=fsdp world_size=32 offload=parameters",
    "norms and experts' activations again": "model=mixtral-8x7b ep=8 "
    "recompute=selective:layernorm,moe_act",
    "walked": "pp=4 tp=2 schedule=zbv chunks=2",
}
SIZES = ("world_size", "tp", "pp", "cp", "ep", "etp", "zero")


@cache
def plan(name: str) -> JobPlan:
    words = {"model": "llama3-8b", "cluster": "h100", "sequence": "8192", "global_batch": "64"}
    sizes: dict[str, object] = {"world_size": 16}
    framework = None
    for word in JOBS[name].split():
        key, value = word.split("=")
        if key == "framework":
            framework = value
        elif key in SIZES:
            sizes[key] = int(value) if value.isdigit() else value
        else:
            words[key] = value
    cut = words.pop("shard_ranks", None)
    asked = plan_request(LayoutRequest.of(sizes, framework=framework), words)
    return job_plan(replace(asked, shard_ranks=int(cut)) if cut else asked)


def counted(text: str) -> float:
    """Returns what a printed formula gives, as a reader would compute it."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text).replace(" x ", " * ").replace("^", "**")
    for unit, factor in UNITS.items():
        text = re.sub(rf"([\d.]+) {re.escape(unit)}(?![\w/])", rf"(\1 * {factor!r})", text)
    assert re.fullmatch(r"[\d.e+\-*/() ,max]+", text), text
    return float(eval(text))


@pytest.mark.parametrize("name", JOBS)
def test_parts_of_a_layer_are_those_of_the_plan(name: str) -> None:
    job = TimedPlan(plan(name), shipped())
    found = {str(each.what): each for each in (*layer_parts(job), layer_offload(job))}
    for part in PARTS:
        if job.layer(part):
            told = found[f"{time_word(part)}, one layer"]
            assert told.numbers.value == pytest.approx(job.layer(part), rel=1e-6), part
    for each in found.values():
        assert counted(each.numbers.text) == pytest.approx(each.numbers.value, rel=0.03), each


@pytest.mark.parametrize("name", JOBS)
def test_parts_of_a_step_are_those_of_the_plan(name: str) -> None:
    made = plan(name)
    job = TimedPlan(made, shipped())
    whole = one(job.times.layer.total)
    for part in PARTS:
        layers = job.layer_times.value * job.layer(part)
        assert layers == pytest.approx(made.parts[part], rel=1e-5, abs=1e-9 * whole), part
    for part, told in step_parts(job).items():
        seconds = made.parts[part]
        assert told.numbers.value == pytest.approx(seconds, rel=1e-6, abs=1e-6 * made.step_s), part
        if told.numbers.text and seconds > 1e-3 * made.step_s:
            assert counted(told.numbers.text) == pytest.approx(seconds, rel=0.03), told


@pytest.mark.parametrize("name", JOBS)
def test_the_time_of_one_collective_is_what_its_numbers_make(name: str) -> None:
    for each in plan(name).traffic:
        told = of_one(each)
        assert isinstance(told, Formula) and told.formula and isinstance(told.numbers, str)
        assert counted(told.numbers) == pytest.approx(each.seconds, rel=0.02), told


def test_every_time_has_numbers_and_a_source() -> None:
    told = list(of_time(plan("dense"), shipped()))
    assert all(each.numbers for each in told)
    rates = {str(each.what): each for each in told}
    share = shipped().entries["gemm.hopper.16"]
    assert f"gemm.hopper.16 {share.value:.4} (± {share.error:.0%})" in str(
        rates["R, FLOP/s of large GEMMs"].source
    )
    assert "660 rows" in str(rates["step"].source)


@pytest.mark.parametrize("name", JOBS)
def test_no_english_is_left_in_chinese_explanations(name: str) -> None:
    text = "\n".join(map(str, explained(plan(name), columns=1000, lang="zh")))
    told = [line for line in text.splitlines() if line.startswith("  ") and line[2] != " "]
    assert len(told) > 30
    for line in told:
        assert not re.search(r"[a-z]{3,} [a-z]{3,} [a-z]{3,}", line), line
