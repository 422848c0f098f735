"""Launch files that serried writes: read back, they give the layout they were written for."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import Sizes
from serried.frameworks.paddle import FLEET
from serried.launch.read import read
from serried.launch.write import WRITERS, write
from serried.mesh import Layout, Placement

SIZE = st.sampled_from([1, 2, 4])
DIMS = ("tp", "pp", "cp", "ep", "dp")
OWN = ("megatron", "deepspeed", "accelerate", "internevo", "internlm", "torchtitan", "nanotron")


def maybe(**options: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries({}, optional=dict(options))


TRUE_OR_FALSE = st.sampled_from(["true", "false"])
NUMBER = st.sampled_from(["1", "2", "4"])
OPTIONS: Mapping[str, st.SearchStrategy[dict[str, str]]] = {
    "megatron": maybe(
        use_tp_pp_dp_mapping=TRUE_OR_FALSE,
        num_distributed_optimizer_instances=NUMBER,
        create_gloo_process_groups=TRUE_OR_FALSE,
        create_all_gather_group=TRUE_OR_FALSE,
        hybrid_context_parallel=TRUE_OR_FALSE,
        hierarchical_context_parallel_sizes=st.sampled_from(["2 1", "2 2", "1 2"]),
        virtual_pipeline_model_parallel_size=st.sampled_from(["2", "3"]),
    ),
    "deepspeed": maybe(
        sequence_parallel_size=NUMBER,
        zero_hpz_partition_size=st.sampled_from(["2", "4"]),
        zero_quantized_gradients=st.just("true"),
        autoep_size=st.sampled_from(["2", "4"]),
        use_data_before_expert_parallel=TRUE_OR_FALSE,
        enable_expert_tensor_parallelism=TRUE_OR_FALSE,
    ),
    "accelerate": maybe(
        dp_replicate_size=NUMBER, dp_shard_size=NUMBER, sp_size=NUMBER, use_fsdp=TRUE_OR_FALSE
    ),
    "internevo": maybe(
        **{
            "zero1.fsdp": TRUE_OR_FALSE,
            "num_experts": st.sampled_from(["1", "2", "4"]),
            "tensor.mode": st.sampled_from(["mtp", "msp", "fsp", "isp"]),
            "weight.size": NUMBER,
        }
    ),
    "internlm": maybe(**{"zero1.fsdp": TRUE_OR_FALSE, "num_experts": NUMBER}),
    "torchtitan": maybe(data_parallel_replicate_degree=NUMBER, data_parallel_shard_degree=NUMBER),
    "nanotron": st.just({}),
    "paddle": maybe(
        hybrid_parallel_topo_order=st.sampled_from(["pp_first", "sharding_first"]),
        use_expert_parallel=TRUE_OR_FALSE,
        sharding_degree=NUMBER,
        sep_degree=NUMBER,
    ),
    "colossalai": maybe(sp_size=NUMBER, enable_sequence_parallelism=st.just("true")),
}
VERSIONS = {
    "megatron": ["0.8.0", "0.12.0", "0.16.1"],
    "torchtitan": ["0.1.0", "0.2.0", "0.2.2", "0.3.0"],
    "nanotron": ["0.4", "main-2411b022"],
    "internevo": ["0.2.2", "0.5.2"],
}
TAKES = {
    "accelerate": ("tp", "cp"),
    "internevo": ("tp", "pp", "zero1"),
    "internlm": ("tp", "pp", "zero1"),
    "deepspeed": ("tp", "pp", "ep"),
    "nanotron": ("tp", "pp", "cp"),
    "paddle": ("tp", "pp", "ep"),
    "colossalai": ("tp", "pp", "ep"),
}
PARTS = {
    "accelerate": ("dp_replicate_size", "dp_shard_size"),
    "torchtitan": ("data_parallel_replicate_degree", "data_parallel_shard_degree"),
}
"""Options whose product is the data parallel size, so that drawn jobs fit their world."""


@st.composite
def jobs(draw: st.DrawFn, name: str) -> tuple[Layout, Sizes]:
    """Draws a layout that a framework makes, and the sizes that made it."""
    takes = TAKES.get(name, ("tp", "pp", "cp", "ep"))
    sizes: dict[str, Any] = {axis: draw(SIZE) for axis in takes}
    options = draw(OPTIONS[name])
    dp = draw(st.sampled_from([1, 2, 4]))
    if name in PARTS:
        dp = prod(int(options.get(part, "1")) for part in PARTS[name])
    world = prod((dp, *(sizes.get(axis, 1) for axis in ("tp", "pp", "cp"))))
    given_dp = dp if name == "nanotron" else None
    version = draw(st.sampled_from(VERSIONS.get(name, [""])))
    named = f"{name}@{version}" if version else name
    parts = {part: options[part] for part in PARTS.get(name, ()) if part in options}
    alone = [{**parts, key: value} for key, value in options.items()]
    for settings_given in (options, *alone, parts):
        made = Sizes(world, dp=given_dp, options=settings_given, **sizes)
        try:
            return frameworks.layout(named, made), made
        except InputError:
            continue
    assume(False)
    raise AssertionError


def placement(layout: Layout) -> Placement:
    """Returns nodes of 8 GPUs, or one node for worlds that do not fill such."""
    world = layout.world_size
    return Placement(world, 8 if world % 8 == 0 else world)


def read_back(text: str) -> Layout:
    config = read(text, name="written")
    return frameworks.layout(config.framework_at, config.sizes())


@pytest.mark.parametrize("name", [*OWN, "paddle"])
def test_a_file_of_its_own_framework_reads_back_as_the_same_layout(name: str) -> None:
    written = 0

    @settings(max_examples=15)
    @given(jobs(name))
    def run(job: tuple[Layout, Sizes]) -> None:
        nonlocal written
        layout, sizes = job
        if name == "paddle" and layout.order == FLEET:
            # PaddleFleetX's YAML, the only one in that order, has no place for these.
            assume(layout.sizes["sep"] == layout.sizes["ep"] == 1)
        text = write(name, layout, placement(layout), sizes=sizes)
        assert read_back(text) == layout
        written += 1

    run()
    assert written


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *product(("megatron", "torchtitan", "colossalai"), ("torchrun", "slurm")),
        ("deepspeed", "torchrun"),
    ],
)
def test_a_launcher_with_options_reads_back_as_the_same_layout(name: str, target: str) -> None:
    written = 0

    @settings(max_examples=15)
    @given(jobs(name))
    def run(job: tuple[Layout, Sizes]) -> None:
        nonlocal written
        layout, sizes = job
        try:
            text = write(target, layout, placement(layout), sizes=sizes)
        except InputError as refusal:
            assert "cannot express" in refusal.template
            return
        assert read_back(text) == layout
        written += 1

    run()
    assert written


@pytest.mark.parametrize("target", WRITERS)
@pytest.mark.parametrize("name", [*OWN, "paddle", "colossalai"])
def test_another_framework_keeps_every_group_or_refuses_and_names_the_axis(
    name: str, target: str
) -> None:
    @settings(max_examples=12)
    @given(jobs(name))
    def run(job: tuple[Layout, Sizes]) -> None:
        layout, sizes = job
        try:
            text = write(target, layout, placement(layout), sizes=sizes)
        except InputError as refusal:
            assert str(refusal)
            return
        made = read_back(text)
        for dim in DIMS:
            if dim in layout.dims and dim in made.dims:
                ours = {tuple(each) for each in layout.groups(layout.dims[dim]).lists()}
                theirs = {tuple(each) for each in made.groups(made.dims[dim]).lists()}
                assert ours == theirs, dim

    run()


def job(name: str, world: int, **sizes: object) -> tuple[Layout, Placement, Sizes]:
    options = sizes.pop("options", {})
    assert isinstance(options, dict)
    order = str(sizes.pop("order", "")) or None
    numbers: dict[str, Any] = {key: int(str(value)) for key, value in sizes.items()}
    made = Sizes(world, order=order, options=options, **numbers)
    return frameworks.layout(name, made), Placement(world), made


def refusal(target: str, layout: Layout, place: Placement, sizes: Sizes) -> str:
    with pytest.raises(InputError) as caught:
        write(target, layout, place, sizes=sizes)
    return str(caught.value)


def test_internlm_is_megatron_with_the_mapping_that_puts_dp_outside() -> None:
    layout, place, sizes = job("internlm", 16, tp=2, pp=4)
    text = write("megatron", layout, place, sizes=sizes)
    assert "--use-tp-pp-dp-mapping" in text
    assert read_back(text).groups("dp").lists()[0] == [0, 8]


REFUSED = [
    (
        ("internlm", 16, {"tp": 2, "pp": 4}),
        "torchtitan",
        "torchtitan cannot lay this out, pp stands in the way: rank 0 has the pp group [0 2 4 6] "
        "here and [0 4 8 12] in torchtitan (pp,dp_replicate,dp_shard,cp,tp)",
    ),
    (
        ("megatron", 16, {"tp": 2, "pp": 4}),
        "accelerate",
        "accelerate has no pp, and this layout has pp=4",
    ),
    (
        ("megatron", 16, {"cp": 2}),
        "internevo",
        "internevo has no cp, and this layout has cp=2",
    ),
    (
        ("paddle", 16, {"tp": 2, "options": {"sharding_degree": "4"}}),
        "megatron",
        "megatron has no sharding, and this layout has sharding=4",
    ),
    (
        ("internlm", 16, {"tp": 2, "nettest": 4}),
        "internlm",
        "internlm cannot express nettest=4 of this layout",
    ),
    (
        ("deepspeed", 16, {"options": {"zero_hpz_partition_size": "8"}}),
        "torchrun",
        "torchrun cannot express all of this layout; it has no place for zero_hpz_partition_size=8",
    ),
    (
        ("nanotron", 16, {"dp": 16}),
        "torchrun",
        "torchrun starts nanotron with no options that hold a layout; --emit nanotron writes its "
        "own config",
    ),
    (
        ("fsdp", 16, {}),
        "slurm",
        "slurm starts fsdp with no options that hold a layout; its program holds it",
    ),
    (
        ("torchtitan", 32, {"tp": 4, "pp": 4, "ep": 4}),
        "megatron",
        "megatron cannot lay this out: ep=4 does not divide the 2 ranks that pp=4, etp=4 leave of "
        "32; sizes that do: 1, 2",
    ),
    (
        ("paddle", 4, {"pp": 2, "ep": 4, "options": {"mp_degree": "4"}}),
        "paddle",
        "paddle cannot express this layout: read back, tp=4 x pp=2 x sep=1 does not divide 4 "
        "ranks; products that do: 1, 2, 4",
    ),
    (
        ("paddle", 16, {"tp": 2, "pp": 2, "options": {"sep_degree": "2"}}),
        "paddle",
        "order 'dp,pp,sharding,sep,cp,mp' has a place in PaddleFleetX's YAML only, which has none "
        "for sep=2; an order of Paddle's trainers has: dp,pp,sharding,sep,mp; "
        "dp,sharding,pp,sep,mp",
    ),
    (
        ("paddle", 16, {"tp": 2, "order": "sep,pp,dp,sharding,mp"}),
        "paddle",
        "order 'sep,pp,dp,sharding,mp' has no name in Paddle's trainers; those that have: "
        "dp,pp,sharding,sep,mp; pp,sharding,sep,dp,mp; dp,sharding,pp,sep,mp; "
        "sharding,pp,sep,dp,mp",
    ),
    (
        ("megatron", 20, {}),
        "megatron",
        "20 ranks do not fill nodes of 8; a launcher starts the same number on each node: give "
        "--gpus-per-node that divides 20",
    ),
    (
        ("paddle", 16, {"tp": 2, "options": {"cp_degree": "1"}}),
        "vllm",
        "'vllm' is not written; targets that are: megatron, deepspeed, accelerate, internevo, "
        "internlm, torchtitan, nanotron, paddle, verl, swift, axolotl, nemo-rl, maxtext, openrlhf, "
        "hf-trainer, torchrun, slurm",
    ),
]


@pytest.mark.parametrize(("made", "target", "sentence"), REFUSED)
def test_what_a_target_cannot_express_is_refused_with_what_stands_in_the_way(
    made: tuple[str, int, dict[str, object]], target: str, sentence: str
) -> None:
    name, world, sizes = made
    assert refusal(target, *job(name, world, **sizes)) == sentence


def test_an_order_that_a_target_cannot_say_is_refused() -> None:
    sizes = Sizes(16, tp=2, pp=2, order="pp-dp-tp")
    layout = frameworks.layout("megatron", sizes)
    assert refusal("megatron", layout, Placement(16), sizes) == (
        "megatron cannot express the order pp-dp-tp of this layout"
    )


def test_ranks_that_own_several_gpus_are_started_once_each() -> None:
    layout, _, sizes = job("megatron", 8, tp=2)
    text = write("slurm", layout, Placement(8, 8, 2), sizes=sizes)
    assert "#SBATCH --nodes=2" in text
    assert "#SBATCH --gpus-per-node=8" in text
    assert "--nnodes 2 --nproc_per_node 4" in text


def test_the_comment_fills_only_what_a_format_has_no_place_for() -> None:
    layout, place, sizes = job("internevo", 16, tp=2)
    text = write("internevo", layout, place, sizes=sizes)
    assert text.startswith("# serried: framework=internevo@0.5.2 world_size=16 gpus_per_node=8\n")
    edited = text.replace("size=2,", "size=4,")
    assert read(edited, name="evo.py").sizes().tp == 4
