"""Where a framework makes groups that overlap, miss ranks or leave the world, serried says so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from serried import frameworks
from serried.finding import Finding, Sentence
from serried.mesh import Layout
from tests.frameworks.asking import asked
from tests.frameworks.test_refusals import refusal, table
from tests.frameworks.test_sharding import SHARDED, sentences

SOURCES = sorted(Path(frameworks.__file__).parent.rglob("*.py"))
WINDOWS = "sequence_2D.head_size=2 sequence_2D.context_size=4 sequence_2D.window_size=2"
ENCODER = "encoder_tensor_model_parallel_size=2 encoder_pipeline_model_parallel_size=1"
EXPERTS = "ep=4 sharding_degree=4 mp_degree=2 moe_sharding_degree=2"
QUIRKS = (
    (
        "megatron 16 tp=2 pp=2 order=tp-tp-dp-pp allow_repeated_axes=true",
        "out_of_range",
        "order 'tp-tp-dp-pp' names tp twice; Megatron accepts it and counts it twice, so groups "
        "reach beyond the 16 ranks and leave some out; name each axis once, such as "
        "tp-cp-ep-dp-pp",
    ),
    (
        "megatron 20 tp=2 hybrid_context_parallel=true",
        "ragged",
        "HYBRID_DP_CP_GROUP_4 cuts 10 ranks into groups of 4 and one of 2; choose dp x cp a "
        "power of two; here it is 10",
    ),
    (
        "megatron@0.12.0 16 cp=8 hierarchical_context_parallel_sizes='2 2'",
        "misfit",
        "megatron 0.12.0 takes hierarchical context sizes '2 2' though they do not multiply to "
        "cp=8, so its levels do not add up to the context group; sizes that fit: 2 4",
    ),
    (
        "megatron@0.10.0 16 cp=2 num_distributed_optimizer_instances=2",
        "uncovered",
        "megatron 0.10 counts dp=8 for _INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP and forgets "
        "cp=2, so 8 of every 16 ranks are in no optimizer instance; use megatron 0.11 or newer",
    ),
    (
        "megatron@0.6.0 16 tp=2 cp=2",
        "misfit",
        "until 0.6 _DATA_MODULO_EXPERT_PARALLEL_GROUP ignores cp=2: its groups mix context with "
        "data ranks; use megatron 0.8 or newer",
    ),
    (
        f"megatron@0.9.0 20 tp=4 pp=2 {ENCODER}",
        "overlap",
        "each encoder rank stands in 2 pipelines or more, because the encoder's tp=2 is below "
        "the decoder's tp=4; give encoder and decoder the same tp",
    ),
    (
        "internevo 64 tp=2 gqa=true",
        "overlap",
        "gqa groups are made for tp=32; with tp=2 they reach into the next tensor groups and, "
        "at the end, beyond the 64 ranks there are; set tp=32 or leave gqa off",
    ),
    (
        "internevo 128 tp=64 gqa=true",
        "uncovered",
        "gqa groups are made for tp=32; the last 32 of every 64 tensor ranks are in none; "
        "set tp=32 or leave gqa off",
    ),
    (
        f"internevo@develop-2024-12 16 tp=8 pp=2 sequence_2D.enable=true {WINDOWS}",
        "uncovered",
        "sequence_2D groups are made for the first stage only, so 1 of 2 stages have none; "
        "use develop-2025-01, or pp=1",
    ),
    (
        "colossalai 16 sp_size=8 sequence_parallelism_mode=ring_attn inner_ring_size=2",
        "uncovered",
        "ColossalAI makes 2 inner rings of 2 ranks for sp_size=8, so 4 ranks of every sequence "
        "group are in none; choose inner_ring_size x inner_ring_size = sp_size",
    ),
    (
        "colossalai 16 pp=2 ep=2 zero=2",
        "misfit",
        "ColossalAI's plugin of experts takes ZeRO stage 2 for 1, because stage 2 hangs where an "
        "expert gets no tokens: gradients are not sharded; reckon the memory with ZeRO stage 1",
    ),
    (
        "paddle 16 cp=2",
        "out_of_range",
        "Paddle leaves context out of its check, so the grid holds 32 ranks in a world of 16 and "
        "groups name ranks that are not there; set context to 1 without experts",
    ),
    (
        f"paddle 16 pp=2 {EXPERTS} hybrid_parallel_topo_order=pp_first",
        "overlap",
        "Paddle joins sharding lists 2 apart where they are 4 apart, so groups overlap and the "
        "last ranks are in none and fail; use sharding_first: put moe_sharding before pp in the "
        "order",
    ),
    (
        "paddle 7 ep=7 sharding_degree=7 cp_degree=3",
        "uncovered",
        "Paddle cuts lists of 7 ranks into context groups of 3 and leaves the last 1 of each in "
        "none, where the job fails; choose cp that divides 7",
    ),
    (
        f"paddle 16 pp=4 {EXPERTS}",
        "out_of_range",
        "the degrees multiply to 32 ranks in a world of 16; Paddle does not check that with "
        "experts, and the job fails or hangs later; make pp x sharding x mp = 16",
    ),
)
LINES = [line for line, _, _ in QUIRKS]


@pytest.mark.parametrize(("line", "kind", "sentence"), QUIRKS, ids=LINES)
def test_a_quirk_of_the_framework_comes_with_its_reason(
    line: str, kind: str, sentence: str
) -> None:
    (finding,) = asked(line).findings
    assert (finding.kind, str(finding)) == (kind, sentence)


@pytest.mark.parametrize("line", LINES)
def test_a_finding_names_kinds_of_the_layout_and_says_the_truth(line: str) -> None:
    made = asked(line)
    for finding in made.findings:
        names = finding.groups or tuple(kind.name for kind in made.kinds)
        assert {*names} <= {kind.name for kind in made.kinds}
        if finding.kind in SEEN:
            assert any(SEEN[finding.kind](made, name) for name in names)


def overlap(made: Layout, name: str) -> bool:
    _, counts = np.unique(made.groups(name).members, return_counts=True)
    return bool((counts > 1).any())


def uncovered(made: Layout, name: str) -> bool:
    return len(np.unique(made.groups(name).members)) < made.world_size


def out_of_range(made: Layout, name: str) -> bool:
    return bool(made.groups(name).members.max() >= made.world_size)


def ragged(made: Layout, name: str) -> bool:
    return len(set(made.groups(name).sizes.tolist())) > 1


SEEN = {
    "overlap": overlap,
    "uncovered": uncovered,
    "out_of_range": out_of_range,
    "ragged": ragged,
}


def templates(source: Path) -> Iterator[str]:
    """Yields the sentences that a module may say of a layout, or within a refusal."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "said":
            assert isinstance(node.args[0], ast.Constant)
            yield str(node.args[0].value)


def spoken(finding: Finding) -> list[str]:
    cure = [finding.cure.template] if finding.cure else []
    return [sentence.template for sentence in finding.evidence] + cure


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_finding_of_a_module_is_tried(source: Path) -> None:
    tried = {text for line in LINES for each in asked(line).findings for text in spoken(each)}
    tried |= {text for line in SHARDED for text in sentences(line)}
    values = [value for line, _ in table() for value in refusal(line).values.values()]
    tried |= {value.template for value in values if isinstance(value, Sentence)}
    assert [text for text in templates(source) if text not in tried] == []


@pytest.mark.parametrize(
    "line",
    [
        "megatron 32 tp=2 pp=4 ep=4",
        "internevo 64 tp=32 gqa=true",
        "internevo 64 tp=16 gqa=true",
        "colossalai 16 sp_size=4 sequence_parallelism_mode=ring_attn inner_ring_size=2",
        f"paddle 16 pp=2 {EXPERTS}",
        "megatron@0.9.0 20 tp=2 pp=4 dp=2 " + ENCODER,
    ],
)
def test_a_layout_without_a_quirk_has_nothing_to_say(line: str) -> None:
    assert asked(line).findings == ()
