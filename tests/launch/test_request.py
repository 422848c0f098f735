"""What is asked for: options before a launch file, and what neither of them settles."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.launch.facts.found import Facts
from serried.launch.read import read
from serried.launch.request import LayoutRequest
from serried.views.job.sources import sources_of

OPEN = """\
torchrun --nnodes $N --nproc_per_node 8 x.py \\
    --tensor-model-parallel-size 4 --pipeline-model-parallel-size $PP
"""
NANOTRON = "parallelism:\n  dp: 4\n  pp: ${PP}\n  tp: 2\n  pp_engine: 1f1b\n"


def asked(text: str, **sizes: int | str) -> LayoutRequest:
    framework = str(sizes.pop("framework", "")) or None
    return LayoutRequest.of(sizes, framework=framework, config=read(text, name="job"))


def names(job: LayoutRequest) -> list[str]:
    return [each.name for each in job.missing()]


def test_all_that_is_missing_is_named_at_once() -> None:
    assert names(asked(OPEN)) == ["pp", "world_size"]
    assert names(asked(OPEN, pp=2)) == ["world_size"]
    assert names(asked(OPEN, pp=2, world_size=16)) == []


def test_a_world_that_follows_from_what_is_missing_is_not_asked_for() -> None:
    assert names(asked(NANOTRON)) == ["pp"]
    assert asked(NANOTRON, pp=2).sizes().world_size == 16


def test_a_framework_that_nothing_tells_is_asked_for_first() -> None:
    text = "torchrun --nproc_per_node 8 --nnodes $N x.py"
    assert names(asked(text)) == ["framework", "world_size"]
    assert names(asked(text, framework="fsdp")) == ["world_size"]


def test_without_a_layout_the_sources_are_those_that_are_known() -> None:
    told = {each.name: (each.value, each.where) for each in sources_of(asked(OPEN), "en", None)}
    assert told == {
        "framework": ("megatron", "Megatron script"),
        "tp": (4, "job line 2, --tensor-model-parallel-size"),
        "gpus_per_node": (8, "job line 1, --nproc_per_node"),
    }


def test_an_option_is_named_as_the_source_of_what_it_gave() -> None:
    job = asked(OPEN, pp=2, world_size=16)
    told = {each.name: each.where for each in sources_of(job, "en", job.layout())}
    assert (told["world_size"], told["pp"]) == ("option --world-size", "option --pp")
    assert (told["cp"], told["dp"]) == ("default", "what the other sizes leave")


def test_what_cannot_be_asked_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="'tq' is not a size; sizes that are: world_size, tp"):
        LayoutRequest.of({"tq": 2})
    with pytest.raises(InputError) as missing:
        LayoutRequest.of({"tp": 2}).layout()
    assert str(missing.value) == (
        "the number of ranks is missing; give it, such as --world-size 16"
    )


def test_a_world_that_the_hostfile_does_not_leave_is_refused() -> None:
    hosts = Facts("hosts")
    hosts.add("world_size", 8)
    with pytest.raises(InputError) as refused:
        LayoutRequest.of({"world_size": 16}, hosts=hosts).layout()
    assert str(refused.value) == (
        "--world-size 16 is not what the hostfile leaves, 8 slots; leave one of them out"
    )
