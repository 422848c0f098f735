"""Files of trainers that serried writes: read back, they give the layout they were written for."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from serried.errors import InputError
from serried.launch.read import read
from serried.launch.request import LayoutRequest
from serried.launch.write import TRAINERS, write
from serried.mesh import Layout, Placement
from serried.mesh.sizes import Sizes
from tests.launch.test_write import job, jobs, placement, read_back, refusal

ACTOR = (
    "actor_rollout_ref:\n  actor:\n    strategy: fsdp\n    ulysses_sequence_parallel_size: {a}\n"
)
VERL = ACTOR + "    fsdp_config: {{fsdp_size: {b}}}\n"
SWIFT = "NPROC_PER_NODE={world} swift sft --sequence_parallel_size {a} --x {b}"
AXOLOTL = (
    "base_model: x\ndatasets: y\nmicro_batch_size: 1\nfsdp_version: 2\n"
    "tensor_parallel_size: {a}\ndp_shard_size: {b}\n"
)
EXPERTS = AXOLOTL.replace("tensor_parallel_size", "expert_parallel_size")
NEMO_RL = (
    "cluster: {{num_nodes: 1, gpus_per_node: {world}}}\npolicy:\n  dtensor_cfg:\n"
    "    enabled: true\n    tensor_parallel_size: {a}\n    context_parallel_size: {b}\n"
)
NEMO_RL_EXPERTS = NEMO_RL.replace("context_parallel_size", "expert_parallel_size")
NEMO_RL_COPIES = NEMO_RL.replace("context_parallel_size", "dp_replicate_size")
MAXTEXT = (
    "num_slices: {a}\ndcn_data_parallelism: {a}\nici_fsdp_parallelism: -1\n"
    "ici_tensor_parallelism: {b}\n"
)
MAXTEXT_TWICE = (
    "num_slices: {a}\ndcn_data_parallelism: 1\ndcn_fsdp_parallelism: {a}\n"
    "ici_fsdp_parallelism: {b}\nici_expert_parallelism: -1\n"
)
OPENRLHF = (
    "torchrun --nproc_per_node {world} -m openrlhf.cli.train_sft --ring_attn_size {a} "
    "--ds_tensor_parallel_size {b}"
)
HF = 'torchrun --nproc_per_node {world} t.py --per_device_train_batch_size {a} --fsdp "full_shard"'

SOURCES = {
    "verl": (VERL,),
    "swift": (SWIFT,),
    "axolotl": (AXOLOTL, EXPERTS),
    "nemo-rl": (NEMO_RL, NEMO_RL_EXPERTS, NEMO_RL_COPIES),
    "maxtext": (MAXTEXT, MAXTEXT_TWICE),
    "openrlhf": (OPENRLHF,),
    "hf-trainer": (HF,),
}
"""Files of each trainer, in which a and b are sizes that divide the world."""

NAMES: Mapping[str, str] = {"swift": "x.sh", "openrlhf": "x.sh", "hf-trainer": "x.sh"}
SIZE = st.sampled_from([1, 2, 4])


@pytest.mark.parametrize(
    ("target", "source"), [(name, each) for name, texts in SOURCES.items() for each in texts]
)
def test_a_file_of_a_trainer_is_written_as_it_was_read(target: str, source: str) -> None:
    written = 0

    @settings(max_examples=12)
    @given(SIZE, SIZE, st.sampled_from([4, 8, 16]))
    def run(a: int, b: int, world: int) -> None:
        nonlocal written
        config = read(source.format(a=a, b=b, world=world), name=NAMES.get(target, "x.yaml"))
        request = LayoutRequest.of({"world_size": world}, config=config)
        try:
            layout = request.layout()
        except InputError:
            assume(False)
        text = write(target, layout, Placement.on(world, world), sizes=request.sizes())
        assert read_back(text) == layout
        written += 1

    run()
    assert written


@pytest.mark.parametrize(
    ("target", "framework"),
    [
        *(("verl", each) for each in ("megatron", "fsdp")),
        *(("swift", each) for each in ("megatron", "deepspeed", "fsdp", "accelerate")),
        *(("axolotl", each) for each in ("accelerate", "deepspeed", "fsdp")),
        ("nemo-rl", "megatron"),
        ("openrlhf", "deepspeed"),
        *(("hf-trainer", each) for each in ("deepspeed", "fsdp", "accelerate")),
    ],
)
def test_any_layout_of_its_frameworks_is_written_or_refused(target: str, framework: str) -> None:
    written = 0

    @settings(max_examples=12)
    @given(of_framework(framework))
    def run(drawn: tuple[Layout, Sizes]) -> None:
        nonlocal written
        layout, sizes = drawn
        try:
            text = write(target, layout, placement(layout), sizes=sizes)
        except InputError as refused:
            assert str(refused)
            return
        assert read_back(text) == layout
        written += 1

    run()
    assert written


def of_framework(name: str) -> st.SearchStrategy[tuple[Layout, Sizes]]:
    """Draws layouts of a framework, plain FSDP's too."""
    if name != "fsdp":
        return jobs(name)
    shards = st.sampled_from([1, 2, 8, 16])
    return shards.map(lambda shard: _fsdp(shard))


def _fsdp(shard: int) -> tuple[Layout, Sizes]:
    layout, _, sizes = job("fsdp", 16, options={"dp_shard": str(shard)})
    return layout, sizes


REFUSED = [
    (
        ("internlm", 16, {"tp": 2, "pp": 4}),
        "nemo-rl",
        "nemo-rl cannot express the order tp-cp-ep-pp-dp of this layout",
    ),
    (
        ("megatron", 16, {"tp": 2}),
        "maxtext",
        "maxtext has the axes diloco, data, stage, fsdp, fsdp_transpose, sequence, context, "
        "context_usp_ulysses, context_autoregressive, tensor, tensor_transpose, tensor_sequence, "
        "expert, autoregressive in that order, of slices and again of a slice's ranks; this "
        "layout has dp, tp",
    ),
    (
        ("megatron", 16, {"pp": 4}),
        "hf-trainer",
        "hf-trainer cannot express pp=4 of this layout",
    ),
]


@pytest.mark.parametrize(("made", "target", "sentence"), REFUSED)
def test_what_a_trainer_cannot_express_is_refused(
    made: tuple[str, int, dict[str, object]], target: str, sentence: str
) -> None:
    name, world, sizes = made
    assert refusal(target, *job(name, world, **sizes)) == sentence


def test_every_trainer_is_tried() -> None:
    assert {*SOURCES} == {*TRAINERS}
    assert prod(map(len, SOURCES.values())) > 1


def test_the_stage_of_zero_is_kept() -> None:
    for stage in (0, 1, 2, 3):
        layout, place, sizes = job("deepspeed", 8, zero=stage)
        for target in ("swift", "openrlhf", "hf-trainer"):
            text = write(target, layout, place, sizes=sizes)
            assert read(text, name="x.sh").sizes().zero == stage
