"""DeviceMesh, torchtitan and Accelerate on torch's fake backend, at rank 0."""

from __future__ import annotations

import importlib.util
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
def world(size: int) -> Iterator[None]:
    """Gives a fake world of ``size`` ranks, taken down afterwards."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=size)
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
        with world(config["world"]):
            made["groups"] = _groups(config, version)
    except (AssertionError, ValueError, RuntimeError, KeyError) as error:
        made["error"] = refusal(error)
    return made


def _groups(config: dict[str, Any], version: str) -> dict[str, Lists]:
    package, _, number = version.partition(" ")
    if package == "torchtitan":
        return _titan(config, number)
    if package == "accelerate":
        return _accelerate(config, number)
    names = tuple(config["names"].split(",")) if "names" in config else None
    shape = tuple(int(word) for word in config["dims"].split(","))
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    labels = names or tuple(f"dim_{i}" for i in range(len(shape)))
    return {label: _along(mesh, i) for i, label in enumerate(labels)}


def _along(mesh: DeviceMesh, place: int) -> Lists:
    """Returns every group along one axis, as DeviceMesh itself lists them to make them."""
    layout = type(mesh._layout)([mesh._layout[place]])
    table: Lists = layout.remap_to_tensor(mesh._rank_map).tolist()
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
