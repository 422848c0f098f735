from __future__ import annotations

import pytest

from serried.catalog import figures
from serried.errors import InputError
from serried.plan.catalog import (
    cluster_named,
    cluster_names,
    gpu_named,
    gpu_names,
    model_named,
    model_names,
)
from serried.plan.model.parameters import model_parameters


def test_every_model_gpu_and_cluster_is_made_and_names_its_source() -> None:
    models = [model_named(name) for name in model_names()]
    clusters = [cluster_named(name) for name in cluster_names()]
    gpus = [gpu_named(name) for name in gpu_names()]
    assert len(models) > 100 and len(gpus) > 20 and len(clusters) > 25
    sources = {each.name: each.source for each in models}
    sources |= {each.name: each.source for each in clusters}
    sources |= {each.name: each.source for each in gpus}
    assert [name for name, source in sources.items() if not source] == []


def test_no_name_stands_for_two_things() -> None:
    for rows in (figures("models")["models"], figures("gpus"), figures("clusters")):
        names = [alias for name, row in rows.items() for alias in (name, *row.get("aliases", ()))]
        assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("bloom", 176.247),
        ("falcon-40b", 41.303),
        ("mixtral-8x7b", 46.703),
        ("deepseek-v2", 235.741),
        ("deepseek-v3", 671.026),
        ("qwen3-235b-a22b", 235.094),
        ("qwen2.5-72b", 72.706),
        ("gpt-oss-20b", 20.915),
        ("gemma2-27b", 27.227),
        ("llama4-maverick", 400.712),
        ("glm-4.5-air", 106.852),
        ("nemotron4-340b", 341.0),
        ("palm-540b", 540.35),
    ],
)
def test_models_have_the_parameters_that_they_are_published_with(
    name: str, billions: float
) -> None:
    assert model_parameters(model_named(name)).total / 1e9 == pytest.approx(billions, rel=1e-4)


def test_a_gpu_names_the_cluster_that_its_maker_builds_of_it() -> None:
    assert cluster_named("h100").gpu is gpu_named("h100-sxm")
    assert cluster_named("gb200").nvlink_domain == 72
    # Four NICs of 100 Gb/s for eight GPUs.
    assert cluster_named("jean-zay").nic_bytes_per_s == 6.25e9


@pytest.mark.parametrize(
    "name", ["llama-3.1-70b", "meta-llama/Llama-3.1-70B-Instruct", "Llama3.1-70B", "llama3.1_70b"]
)
def test_a_model_is_found_however_people_write_its_name(name: str) -> None:
    assert model_named(name) is model_named("llama3.1-70b")


def test_a_path_is_never_taken_for_the_name_of_a_model() -> None:
    with pytest.raises(InputError, match=r"no model '\./llama3-8b'"):
        model_named("./llama3-8b")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="no model 'llama3-7b'; the nearest are llama3-70b, "):
        model_named("llama3-7b")
    with pytest.raises(InputError, match="no GPU 'h101'; the nearest are h1"):
        gpu_named("h101")
    with pytest.raises(InputError, match="no cluster 'zzzz', and none has a name like it"):
        cluster_named("zzzz")
