"""DeviceMesh, torchtitan and Accelerate on torch's fake backend, at rank 0."""

from __future__ import annotations

import importlib.util
import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from tests.oracle.recording import Lists, Silent, loaded, refusal, stub
from tests.oracle.wheels import unpacked

TITANS = ("0.1.0", "0.2.0", "0.2.1", "0.2.2", "0.3.0")
VERSIONS = (*(f"torchtitan {version}" for version in TITANS), "accelerate 1.15.0", "torch")
DEGREES = ("dp_replicate", "dp_shard", "cp", "tp", "pp", "ep", "etp")


@contextmanager
def world(size: int, rank: int = 0) -> Iterator[None]:
    """Gives a fake world of ``size`` ranks as one of them sees it, taken down afterwards."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=size)
    try:
        yield
    finally:
        dist.destroy_process_group()


def golden(config: dict[str, Any], version: str) -> dict[str, Any]:
    """Returns what the package makes of ``config``, as a golden."""
    if version == "torch":
        name = f"torch {torch.__version__} DeviceMesh mesh"
    else:
        name = f"{version} {'ParallelDims' if 'titan' in version else 'ParallelismConfig'}"
    made: dict[str, Any] = {"oracle": name, "config": config}
    try:
        # A mesh is asked for its groups at a rank that it holds.
        held = torch.tensor(config["mesh"]).flatten().tolist() if "mesh" in config else [0]
        with world(config["world"], held[0]):
            made["groups"] = _groups(config, version)
            if "mesh" in config:
                made |= {"rank": held[0], "within": _within(config)}
    except (AssertionError, ValueError, RuntimeError, KeyError, TypeError) as error:
        made["error"] = refusal(error)
    return made


def _groups(config: dict[str, Any], version: str) -> dict[str, Lists]:
    package, _, number = version.partition(" ")
    if package == "torchtitan":
        return _titan(config, number)
    if package == "accelerate":
        return _accelerate(config, number)
    return _mesh(config)


def _mesh(config: dict[str, Any]) -> dict[str, Lists]:
    """Returns the groups of a mesh and of what is then split off or merged from its axes."""
    names = tuple(config["names"].split(",")) if "names" in config else None
    if "mesh" in config:
        mesh = DeviceMesh("cpu", config["mesh"], mesh_dim_names=names)
    else:
        shape = tuple(int(word) for word in config["dims"].split(","))
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    made = {label: _along(mesh, i) for i, label in enumerate(names or _numbered(mesh))}
    for name, parts in config.get("unflatten", {}).items():
        mesh = mesh._unflatten(name, tuple(parts.values()), tuple(parts))
        labels = list(mesh.mesh_dim_names or ())
        made |= {part: _along(mesh, labels.index(part)) for part in parts}
    for name, axes in config.get("flatten", {}).items():
        made[name] = _along(mesh[tuple(axes)]._flatten(name), 0)
    for name, axes in config.get("concatenate", {}).items():
        joined = DeviceMesh._concatenate([mesh[axis] for axis in axes])
        made[name] = _along(joined._flatten(name), 0)
    return made


def _within(config: dict[str, Any]) -> dict[str, list[int]]:
    """Returns the rank within the group of each axis, at the rank that the world is seen from."""
    mesh = DeviceMesh("cpu", config["mesh"])
    names = config["names"].split(",") if "names" in config else _numbered(mesh)
    return {name: [dist.get_rank(mesh.get_group(i))] for i, name in enumerate(names)}


def _numbered(mesh: DeviceMesh) -> list[str]:
    return [f"dim_{i}" for i in range(mesh.ndim)]


def _along(mesh: DeviceMesh, place: int) -> Lists:
    """Returns every group along one axis, as DeviceMesh itself lists them to make them.

    An axis as long as the world makes none: it takes the default group.
    """
    axis = mesh._layout[place]
    if axis.numel() == dist.get_world_size():
        return [list(range(axis.numel()))]
    table: Lists = type(mesh._layout)([axis]).remap_to_tensor(mesh._rank_map).tolist()
    return table


def _named(mesh: DeviceMesh) -> dict[str, Lists]:
    """Returns the groups of a mesh's axes, and of those flattened from it."""
    made = {name: _along(mesh, i) for i, name in enumerate(mesh.mesh_dim_names or ())}
    for name, flat in mesh._get_root_mesh()._flatten_mapping.items():
        made[name] = _along(flat, 0)
    return made


@cache
def _titan_module(version: str) -> Any:
    folder = unpacked("torchtitan", version, only="torchtitan/distributed/")
    for name in ("torchtitan", "torchtitan.tools", "torchtitan.config"):
        stub(name)
    stub("torchtitan.tools.logging", logger=Silent())
    stub("torchtitan.tools.utils", device_type="cpu")
    stub("torchtitan.config.configs", ParallelismConfig=object)
    if importlib.util.find_spec("spmd_types") is None:
        stub("spmd_types")
    path = folder / "torchtitan" / "distributed" / "parallel_dims.py"
    return loaded(path, f"torchtitan.oracle_{version.replace('.', '_')}")


def _titan(config: dict[str, Any], version: str) -> dict[str, Lists]:
    wanted = {key: config[key] for key in DEGREES}
    fields = _titan_module(version).ParallelDims.__dataclass_fields__
    wanted = {key: value for key, value in wanted.items() if key in fields}
    wanted["world_size"] = config["world"]
    if "enable_loss_parallel" in fields:
        wanted["enable_loss_parallel"] = False
    if "spmd_backend" in fields:
        wanted["spmd_backend"] = config["backend"]
    dims = _titan_module(version).ParallelDims(**wanted)
    mesh = dims.build_mesh("cpu") if version == "0.1.0" else dims.build_mesh()
    single = getattr(dims, "_single_axis_meshes", None) or getattr(dims, "_meshes", None)
    if single:
        return {name: _along(each, 0) for name, each in single.items()}
    return _named(mesh)


@cache
def _accelerate_class(version: str) -> Any:
    folder = unpacked("accelerate", version, only="accelerate/")
    stub("accelerate")
    stub("accelerate.utils")
    handlers = (
        *("DeepSpeedSequenceParallelConfig", "DistributedType"),
        *("TorchContextParallelConfig", "TorchTensorParallelConfig"),
    )
    stub("accelerate.utils.dataclasses", **dict.fromkeys(handlers, object))
    stub("accelerate.utils.versions", is_torch_version=lambda *_: True)
    path = folder / "accelerate" / "parallelism_config.py"
    return loaded(path, "accelerate.parallelism_config").ParallelismConfig


class Launcher:
    """Stands for the Accelerator that validates a config."""

    def __init__(self, num_processes: int) -> None:
        self.num_processes = num_processes
        self.multi_device, self.is_fsdp2, self.is_main_process = True, False, False
        self.distributed_type = None


def _accelerate(config: dict[str, Any], version: str) -> dict[str, Lists]:
    names = ("dp_replicate", "dp_shard", "tp", "cp", "sp")
    made = _accelerate_class(version)(**{f"{name}_size": config[name] for name in names})
    made._validate_accelerator(Launcher(config["world"]))
    return _named(made.build_device_mesh("cpu"))


def random_config(rng: random.Random, version: str) -> dict[str, Any]:
    """Returns a config that is valid more often than not."""
    size = rng.choice((8, 16, 32))
    config: dict[str, Any] = {"world": size, "backend": "partial_dtensor"}
    if version == "torch":
        shape = [rng.choice((1, 2, 2, 4, 3)) for _ in range(rng.randint(1, 4))]
        config |= {"mode": "mesh", "dims": ",".join(map(str, shape))}
        if rng.random() < 0.8:
            names = [rng.choice("abcdefgh") for _ in shape]
            config["names"] = ",".join(names if rng.random() < 0.9 else [*names, "z"])
        if rng.random() < 0.6:
            config |= _random_derived(rng, config)
        return config
    config |= {name: rng.choice((1, 1, 2, 2, 4)) for name in DEGREES}
    config["backend"] = rng.choice(("partial_dtensor", "full_dtensor", "spmd_types"))
    if version.startswith("accelerate"):
        config |= {"mode": "accelerate", "pp": 1, "ep": 1, "etp": 1, "sp": 1}
        held = config["dp_replicate"] * config["cp"] * config["tp"]
        config["dp_shard"] = max(1, size // held) if rng.random() < 0.9 else 2
        return config
    config["mode"] = "titan"
    held = config["dp_replicate"] * config["cp"] * config["tp"] * config["pp"]
    config["dp_shard"] = -1 if rng.random() < 0.7 else max(1, size // held)
    config["ep"] = rng.choice((1, 1, 2, 4, 8, 3))
    config["etp"] = rng.choice((1, config["tp"]))
    if version.endswith("0.1.0"):
        config |= {"ep": 1, "etp": 1}
    return config


def _random_derived(rng: random.Random, config: dict[str, Any]) -> dict[str, Any]:
    """Returns settings that split and merge the axes of a mesh, and at times list its ranks."""
    shape = [int(word) for word in config["dims"].split(",")]
    names = config["names"].split(",") if "names" in config else _unnamed(len(shape))
    more: dict[str, Any] = {}
    is_plain = len(set(names)) == len(shape) == len(names)
    if is_plain and rng.random() < 0.5:
        ranks = rng.sample(range(config["world"]), k=min(config["world"], math.prod(shape)))
        if len(ranks) == math.prod(shape):
            more["mesh"] = torch.tensor(ranks).reshape(shape).tolist()
    if rng.random() < 0.5:
        name, size = rng.choice(list(zip(names, shape, strict=False)))
        first = rng.choice([n for n in range(1, size + 1) if size % n == 0 or rng.random() < 0.1])
        more["unflatten"] = {name: {"u": first, "v": size // first}}
        place = names.index(name)
        names = [*names[:place], "u", "v", *names[place + 1 :]]
    for key, label in (("flatten", "m"), ("concatenate", "n")):
        if rng.random() < 0.6:
            picked = rng.sample(names, rng.randint(1, min(3, len(names))))
            in_order = sorted(picked, key=names.index)
            axes = in_order if key == "flatten" and rng.random() < 0.9 else picked
            taken = axes[0] not in "uv" and rng.random() < 0.1
            more[key] = {axes[0] if taken else label: axes}
    return more


def _unnamed(count: int) -> list[str]:
    return [f"dim_{i}" for i in range(count)]
