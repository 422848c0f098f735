"""A cluster of one's own as TOML: a GPU of the catalogue or its figures, and the NICs.

name = "ours"
gpu = "h100"                              or a table with the keys of catalog/gpus.toml
gpus_per_node = 8
nic = { gb_per_s = 50, per_node = 8 }     one way, of one NIC; reached_gb_per_s, where it is known
switch_sums = { share = 0.7 }             where the NVLink switch adds up: its share of links
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any

from serried import user_file
from serried.errors import InputError
from serried.finding import said
from serried.limits import CLUSTER_BYTES
from serried.plan.catalog import cluster_of, gpu_named, gpu_of
from serried.plan.cluster.cluster import Cluster, Gpu


def cluster_of_file(path: Path) -> Cluster:
    """Returns the cluster that a TOML file describes; raises InputError where it does not."""
    return cluster_of_tree(_tree(path), path.name)


def cluster_of_tree(tree: Mapping[str, Any], file: str) -> Cluster:
    """Returns the cluster of a read file; raises InputError naming the key that is wrong.

    >>> told = {"gpu": "h100", "gpus_per_node": 4, "nic": {"gb_per_s": 25}}
    >>> cluster_of_tree(told, "ours.toml").nic_bytes_per_s
    25000000000.0
    """
    found = _Fields(tree, file)
    nic = found.table("nic")
    per_node = found.whole("gpus_per_node")
    row = {
        "gpus_per_node": per_node,
        "nvlink_domain": found.whole("nvlink_domain", per_node),
        "nic": _wire(nic) | {"per_node": nic.whole("per_node", per_node)},
        "switch_sums": {"share": _switch_share(found)},
        "num_gpus": found.whole("num_gpus", 0) or None,
        "network": found.text("network", "h100"),
        "source": found.text("source", file),
    }
    return cluster_of(found.text("name", Path(file).stem), row, _gpu(found))


def _gpu(found: _Fields) -> Gpu:
    if isinstance(found.tree.get("gpu"), str):
        return gpu_named(found.tree["gpu"])
    told = found.table("gpu")
    peaks = told.table("peak_tflops")
    row = {
        "maker": told.text("maker", "nvidia"),
        "peak_tflops": {name: peaks.number(name) for name in peaks.tree},
        "memory_gb": told.number("memory_gb"),
        "memory_gb_per_s": told.number("memory_gb_per_s"),
        "link": _wire(told.table("link")),
        "source": told.text("source", found.file),
    }
    if "host" in told.tree:
        host = told.table("host")
        memory = host.number("memory_gb_per_s")
        row["host"] = _wire(host) | {"memory_gb_per_s": memory, "source": row["source"]}
    return gpu_of(told.text("name", "gpu"), row)


def _wire(told: _Fields) -> dict[str, float]:
    """Returns what a link carries, and what is reached of it where the file says so."""
    found = {"gb_per_s": told.number("gb_per_s")}
    if "reached_gb_per_s" in told.tree:
        found["reached_gb_per_s"] = told.number("reached_gb_per_s", most=found["gb_per_s"])
    return found


def _switch_share(told: _Fields) -> float:
    if "switch_sums" not in told.tree:
        return 0.0
    return told.table("switch_sums").number("share", most=1.0)


def _tree(path: Path) -> Mapping[str, Any]:
    import tomllib

    text = user_file.read_text(path, CLUSTER_BYTES.most, said("a cluster"))
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(
            "{file} is no TOML: {reason}", file=path.name, reason=str(error)[:120]
        ) from error


class _Fields:
    """Takes values out of a table, each of its kind; ``path`` is the table's own name."""

    def __init__(self, tree: Mapping[str, Any], file: str, path: str = "") -> None:
        self.tree, self.file, self.path = tree, file, path

    def table(self, key: str) -> _Fields:
        value = self.tree.get(key)
        if not isinstance(value, Mapping):
            raise self._wrong(key, value, said("a table"))
        return _Fields(value, self.file, f"{self.path}{key}.")

    def number(self, key: str, most: float = inf) -> float:
        value = self.tree.get(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not isfinite(float(value)) or float(value) <= 0:  # type: ignore[arg-type]
            raise self._wrong(key, value, said("a number above 0"))
        if float(value) > most:  # type: ignore[arg-type]
            raise self._wrong(key, value, said("a number of at most {most:g}", most=most))
        return float(value)  # type: ignore[arg-type]

    def whole(self, key: str, default: int | None = None) -> int:
        value = self.tree.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < (default != 0):
            raise self._wrong(key, value, said("a whole number of at least 1"))
        return value

    def text(self, key: str, default: str) -> str:
        value = self.tree.get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, value, said("a text"))
        return value

    def _wrong(self, key: str, value: object, wanted: object) -> InputError:
        return InputError(
            "{file}: {key} is {value}; it is {wanted}",
            file=self.file,
            key=f"{self.path}{key}",
            value="missing" if value is None else str(value)[:40],
            wanted=wanted,
        )
