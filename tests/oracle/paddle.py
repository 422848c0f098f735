"""Paddle 3.3.1 from PyPI: fleet's topology file, at rank 0."""

from __future__ import annotations

import random
import sys
from functools import cache
from types import SimpleNamespace
from typing import Any

from serried.frameworks.paddle import AXES
from tests.oracle.recording import Lists, Recorder, Silent, loaded, methods, refusal, stub
from tests.oracle.wheels import unpacked

VERSIONS = ("3.3.1",)
SETTLE = "_init_hybrid_parallel_env"
FOLDER = "paddle/distributed/fleet/"


@cache
def _modules(version: str) -> tuple[Any, Any]:
    folder = unpacked("paddlepaddle", version, only=FOLDER)
    # Others look for paddle among the loaded modules and ask it what a tensor is.
    no_tensor: dict[str, object] = {"is_tensor": lambda _: False}
    stub("paddle", get_flags=lambda name: {name: False}, zeros=Silent(), **no_tensor)
    stub("paddle.base", core=stub("paddle.base.core", is_compiled_with_xpu=lambda: False))
    stub("paddle.framework", core=Silent())
    distributed = stub("paddle.distributed", all_reduce=Silent(), ReduceOp=Silent())
    for name in ("fleet", "fleet.proto", "fleet.base", "fleet.utils", "utils"):
        stub(f"paddle.distributed.{name}")
    stub("paddle.distributed.fleet.proto.distributed_strategy_pb2", NCCLConfig=object)
    stub("paddle.distributed.utils.nccl_utils", check_nccl_version_for_p2p=Silent())
    stub("paddle.distributed.fleet.utils.log_util", logger=Silent())
    name = "paddle.distributed.fleet.base.topology"
    seeds: dict[str, object] = {"model_parallel_random_seed": Silent()}
    around = {"paddle": sys.modules["paddle"], **seeds}
    vars(distributed)["settled"] = methods(
        folder / FOLDER / "fleet.py", "Fleet", (SETTLE,), around
    )[SETTLE]
    return loaded(folder / FOLDER / "base" / "topology.py", name), distributed


def golden(config: dict[str, Any], version: str) -> dict[str, Any]:
    """Returns what fleet makes of ``config``, as a golden."""
    name = f"paddlepaddle {version} fleet topology"
    made: dict[str, Any] = {"oracle": name, "config": config}
    try:
        made["groups"] = _groups(config, version)
    except (AssertionError, ValueError, KeyError, IndexError) as error:
        made["error"] = refusal(error)
    return made


def _groups(config: dict[str, Any], version: str) -> dict[str, Lists]:
    module, distributed = _modules(version)
    recorder = Recorder(config["world"])
    with recorder.patched(distributed):
        names, dims = _settled(config, distributed)
        vars(distributed)["new_group"] = lambda ranks, **_: _group(recorder, ranks)
        if "expert" in names and dims[names.index("expert")] > 1:
            hybrid = module.EPHybridCommunicateGroup(names, dims)
            made = _experts(hybrid)
        else:
            topology = module.CommunicateTopology(names, dims)
            hybrid = module.HybridCommunicateGroup(topology)
            made = _dense(hybrid, topology, names)
        if config.get("four_directions") and hybrid._pp_degree > 1:
            made |= _pairs(hybrid, recorder)
    return made


def _settled(config: dict[str, Any], distributed: Any) -> tuple[list[str], list[int]]:
    """Returns the axes and sizes that fleet itself takes the degrees for."""
    degrees = {f"{name}_degree": 1 for name in AXES}
    degrees |= {f"{name}_degree": size for name, size in config["degrees"].items()}
    strategy = SimpleNamespace(
        hybrid_configs=degrees,
        hybrid_parallel_order=config["order"],
        tensor_parallel_configs={"tensor_init_seed": -1},
    )
    found: list[Any] = []
    fleet = SimpleNamespace(
        _user_defined_strategy=strategy, _create_hcg=lambda *each: found.extend(each)
    )
    distributed.settled(fleet)
    return found[0], found[1]


def _group(recorder: Recorder, ranks: list[int]) -> Any:
    group = recorder.new_group(ranks)
    group.nranks = len(ranks)  # type: ignore[attr-defined]
    return group


def _dense(hybrid: Any, topology: Any, names: list[str]) -> dict[str, Lists]:
    made = {name: topology.get_comm_list(name) for name in names}
    has_shards = hybrid._sharding_degree > 1
    made |= _checks(topology, ("data", "sharding") if has_shards else ("data",))
    if hybrid._sep_degree > 1:
        made["dp_sep"] = sorted(topology.get_fused_ranks(["data", "sep"]))
        made["pp_mp"] = sorted(topology.get_fused_ranks(["pipe", "model"]))
    return made


def _pairs(hybrid: Any, recorder: Recorder) -> dict[str, Lists]:
    """Returns the pairs of PADDLE_USE_FOUR_DIRECTIONS_P2P, made by turns: on, back."""
    recorder.calls.clear()
    hybrid._set_four_directions_p2p_group()
    made = [call.ranks for call in recorder.calls]
    return {"p2p(next)": made[::2], "p2p(prev)": made[1::2]}


def _experts(hybrid: Any) -> dict[str, Lists]:
    dense, expert = hybrid._dense_topo, hybrid._moe_topo
    made = {name: expert.get_comm_list(name) for name in ("pipe", "expert", "moe_sharding")}
    made |= {name: dense.get_comm_list(name) for name in ("data", "sep", "model")}
    made["sharding"] = hybrid.merge_inner_comm_list(dense, "moe_sharding", "dense_sharding")
    made["context"] = hybrid.split_context_comm_list(dense)
    if hybrid._cp_degree > 1:
        made["cp_mp"] = hybrid.fuse_context_tensor_parallel_comm_list(dense)
    made["cp_sharding"] = hybrid.split_context_sharding_comm_list(dense)
    made |= _checks(hybrid._topo, ("data", "moe_sharding"))
    return made


def _checks(topology: Any, axes: tuple[str, ...]) -> dict[str, Lists]:
    """Returns the lists that ``_set_check_group`` makes groups of."""
    return {
        f"check({axis})": [
            topology.get_axis_list(axis, index) for index in range(topology.get_dim(axis))
        ]
        for axis in axes
    }


def random_config(rng: random.Random, version: str) -> dict[str, Any]:
    """Returns a config that is valid more often than not."""
    if rng.random() < 0.5:
        return _random_experts(rng)
    order = ["dp", "pp", "sharding", "sep", "cp", "mp"]
    if rng.random() < 0.4:
        order.remove("cp")
    if rng.random() < 0.6:
        rng.shuffle(order)
    degrees = {name: rng.choice((1, 1, 2, 2, 3)) for name in order}
    if "cp" in degrees:
        degrees["cp"] = rng.choice((1, 1, 1, 1, 2))
    world = 1
    for name, size in degrees.items():
        world *= size if name != "cp" else 1
    if rng.random() < 0.3:
        degrees["dp"] = rng.choice((-1, -1, -2, 0))
    if rng.random() < 0.1:
        degrees[rng.choice(order)] = rng.choice((-1, 0))
    return {
        "world": world if rng.random() < 0.85 else world * 2,
        "order": order,
        "degrees": degrees,
        "four_directions": rng.random() < 0.2,
    }


def _random_experts(rng: random.Random) -> dict[str, Any]:
    order = rng.choice(
        (
            ["dp", "moe_sharding", "cp", "sharding", "pp", "sep", "ep", "mp"],
            ["dp", "pp", "moe_sharding", "cp", "sharding", "sep", "ep", "mp"],
            ["sharding", "moe_sharding", "pp", "sep", "cp", "dp", "ep", "mp"],
        )
    )
    mp, pp = rng.choice((1, 2, 2, 4)), rng.choice((1, 2, 2, 4))
    moe, dense = rng.choice((1, 2, 2, 4)), rng.choice((1, 2, 4))
    sharding = moe * dense
    degrees = {"dp": 1, "sep": 1, "mp": mp, "pp": pp, "moe_sharding": moe, "sharding": sharding}
    degrees |= {"ep": dense * mp, "cp": rng.choice((1, 1, 2, 4))}
    if rng.random() < 0.15:
        degrees[rng.choice(list(degrees))] += 1
    if rng.random() < 0.15:
        degrees[rng.choice(list(degrees))] = rng.choice((-1, 0))
    ordered = {name: degrees[name] for name in order}
    world, four = mp * pp * sharding, rng.random() < 0.2
    return {"world": world, "order": order, "degrees": ordered, "four_directions": four}
