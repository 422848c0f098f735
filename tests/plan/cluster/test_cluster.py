from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.plan.cluster.cluster import Cluster, Gpu

H100 = Gpu("h100", "nvidia", {"bf16": 989e12, "fp8": 1979e12}, 80e9, 3.35e12, 450e9)


def test_a_format_without_a_figure_is_refused_naming_those_there_are() -> None:
    with pytest.raises(InputError, match="no fp4 figure; it has bf16, fp8"):
        H100.peak("fp4")


def test_a_network_of_zero_bandwidth_is_refused() -> None:
    with pytest.raises(InputError, match="a network of 0 B/s; it is above 0"):
        Cluster("broken", H100, 8, 8, 0)


def test_a_gpu_without_memory_is_refused() -> None:
    with pytest.raises(InputError, match="memory_bytes=0; it is above 0"):
        Gpu("none", "nobody", {}, 0, 1, 1)
