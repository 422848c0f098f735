"""Layouts under every setting that decides what a group's ranks share or send, by framework."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from serried import frameworks
from serried.frameworks import FRAMEWORKS, Sizes
from serried.frameworks.framework import at_least
from serried.frameworks.fsdp import STRATEGIES
from serried.mesh import Layout
from tests.views.explain.kinds_made import TRIED, layouts_tried

STAGES = (None, 0, 1, 2, 3)


def megatron() -> Iterator[Layout]:
    for zero in STAGES:
        for version in ("0.5.0", "0.8.0", "0.12.0", "0.16.1", "0.19.0"):
            cp = 1 if version == "0.5.0" else 2
            if zero in (2, 3) and not at_least(version, "0.12"):
                continue
            yield made("megatron", Sizes(32, tp=2, pp=2, cp=cp, ep=2, zero=zero), version)
    for key, values in FRAMEWORKS["megatron"].traffic_settings.items():
        for value in values:
            sizes = Sizes(32, tp=2, cp=2, ep=2, options={key: value, "names": "variables"})
            yield made("megatron", sizes)
            yield made("megatron", Sizes(32, tp=2, cp=2, ep=2, options={key: value}))
    yield made("megatron", Sizes(16, options={"use_torch_fsdp2": "true"}))


def internlm() -> Iterator[Layout]:
    for name in ("internlm", "internevo"):
        for zero1 in (None, 1, 2):
            for fsdp in ("true", "false"):
                yield made(name, Sizes(16, tp=2, zero1=zero1, options={"zero1.fsdp": fsdp}))
    for mode in ("mtp", "msp", "fsp", "isp"):
        for weight in ("1", "4") if mode == "isp" else ("1",):
            options = {"tensor.mode": mode, "weight.size": weight}
            yield made("internevo", Sizes(16, tp=4, pp=2, options=options))


def deepspeed() -> Iterator[Layout]:
    features: tuple[dict[str, str], ...] = (
        {},
        {"autotp_size": "2"},
        {"sequence_parallel_size": "4"},
        {"zero_hpz_partition_size": "8"},
        {"zero_quantized_gradients": "true"},
        {"names": "keys", "zero_quantized_gradients": "true"},
    )
    for zero in STAGES:
        for options in features:
            yield made("deepspeed", Sizes(16, zero=zero, options=options))
        if zero != 3:
            pp = 1 if zero == 2 else 2
            yield made("deepspeed", Sizes(16, tp=2, pp=pp, ep=2, zero=zero))
    yield made("deepspeed", Sizes(32, options={"mics_shard_size": "8"}), "0.18.9")
    yield made("deepspeed", Sizes(32, options={"mics_shard_size": "32"}), "0.18.9")


def torchtitan() -> Iterator[Layout]:
    for version in FRAMEWORKS["torchtitan"].versions:
        for replicate in ("1", "2", "8"):
            yield made(
                "torchtitan",
                Sizes(16, tp=2, options={"data_parallel_replicate_degree": replicate}),
                version,
            )
        yield made("torchtitan", Sizes(16, cp=4, pp=2), version)
        yield made("torchtitan", Sizes(4, cp=4), version)
    for key, values in FRAMEWORKS["torchtitan"].traffic_settings.items():
        for value in values:
            yield made("torchtitan", Sizes(32, tp=2, cp=2, pp=2, ep=4, options={key: value}))


def fsdp() -> Iterator[Layout]:
    for strategy in STRATEGIES:
        yield made("fsdp", Sizes(32, options={"sharding_strategy": strategy}))
    yield made("fsdp", Sizes(16, tp=2, dp=8, options={"dp_shard": "1"}))


def accelerate() -> Iterator[Layout]:
    for options in ({"dp_replicate_size": "16"}, {"dp_shard_size": "16"}, {"sp_size": "4"}):
        yield made("accelerate", Sizes(16, options=options))
    for way in ("allgather", "alltoall"):
        options = {"dp_shard_size": "8", "cp_comm_strategy": way}
        yield made("accelerate", Sizes(16, cp=2, options=options))


def colossalai() -> Iterator[Layout]:
    for zero in (None, 0, 1):
        yield made("colossalai", Sizes(16, tp=2, pp=2, zero=zero))
    yield made("colossalai", Sizes(16, tp=2, zero=2))
    for copies in ("1", "2"):
        for plugin in ("gemini", "low_level_zero"):
            options = {"plugin": plugin, "extra_dp_size": copies}
            yield made("colossalai", Sizes(16, options=options))


def others() -> Iterator[Layout]:
    for zero in (None, 0, 1):
        for mode in FRAMEWORKS["nanotron"].traffic_settings["tp_mode"]:
            yield made("nanotron", Sizes(16, tp=2, cp=2, zero=zero, options={"tp_mode": mode}))
    for zero in STAGES:
        for shards in ("1", "2", "8"):
            yield made("paddle", Sizes(16, tp=2, zero=zero, options={"sharding_degree": shards}))


def made(name: str, sizes: Sizes, version: str = "") -> Layout:
    return frameworks.layout(f"{name}@{version}" if version else name, sizes)


@cache
def layouts() -> tuple[Layout, ...]:
    """Returns a layout under each setting, and those that make every kind."""
    trials = (megatron, internlm, deepspeed, torchtitan, fsdp, accelerate, colossalai, others)
    under = [layout for trial in trials for layout in trial()]
    return (*under, *(layout for name in TRIED for layout in layouts_tried(name)))
