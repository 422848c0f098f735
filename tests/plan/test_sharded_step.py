"""One step under a sharding: its events in order, what is held after each, and what is sent."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.errors import InputError
from serried.mesh.sharding import WHOLE, Cut, StateCuts
from serried.plan.model_states import model_states
from serried.plan.precision import RECIPES, Precision
from serried.plan.sharded_step import ShardedStep, sharded_step
from tests.frameworks.asking import asked

FP16 = RECIPES["fp16-adam"]
LAYERS = [1200, 600, 600]
P = 2 * sum(LAYERS)
"""Bytes of all parameters, and of all gradients."""


def stage(number: int, ranks: int = 4, **more: object) -> StateCuts:
    cut = Cut(("dp",), ranks)
    cuts = [cut if number >= first else WHOLE for first in (3, 2, 1)]
    return replace(StateCuts("dense", cut, *cuts), **more)  # type: ignore[arg-type]


def step(cuts: StateCuts, microbatches: int = 1, *, prefetches: bool = False) -> ShardedStep:
    return sharded_step(cuts, LAYERS, FP16, microbatches=microbatches, prefetches=prefetches)


def told(found: ShardedStep) -> str:
    """Returns the events as words: g0 gathers layer 0, f0 b0 compute it, x0 frees it, r0 reduces,
    j0 joins copies, S is the step and G hands new parameters out."""
    letters = {"gather": "g", "forward": "f", "backward": "b", "free": "x", "reduce": "r"}
    words = []
    for event in found.events:
        if event.layer < 0:
            words.append("S" if event.what == "step" else "G")
        else:
            words.append(f"{letters.get(event.what, 'j')}{event.layer}")
    return " ".join(words)


def sent_over(found: ShardedStep, kind: str) -> Fraction:
    """Returns what a rank sends in a step within groups of one kind."""
    sent = (moved.sent_bytes for moved in found.moves if moved.over == (kind,))
    return sum(sent, Fraction(0))


@pytest.mark.parametrize(
    ("number", "events"),
    [
        (0, "f0 f1 f2 b2 r2 b1 r1 b0 r0 S"),
        (1, "f0 f1 f2 b2 r2 b1 r1 b0 r0 S G"),
        (2, "f0 f1 f2 b2 r2 b1 r1 b0 r0 S G"),
        (3, "g0 f0 x0 g1 f1 x1 g2 f2 x2 g2 b2 r2 x2 g1 b1 r1 x1 g0 b0 r0 x0 S"),
    ],
)
def test_a_stage_has_its_order_of_events(number: int, events: str) -> None:
    assert told(step(stage(number))) == events


def test_stages_0_and_1_reduce_after_the_last_microbatch_alone() -> None:
    assert told(step(stage(1), 2)) == "f0 f1 f2 b2 b1 b0 f0 f1 f2 b2 r2 b1 r1 b0 r0 S G"
    assert told(step(stage(2), 2)).count("r") == 6


def test_kept_parameters_are_gathered_once_a_microbatch() -> None:
    kept = stage(3, is_kept=True)
    assert told(step(kept)) == "g0 f0 g1 f1 g2 f2 b2 r2 x2 b1 r1 x1 b0 r0 x0 S"


def test_prefetching_gathers_the_next_layer_before_this_one_is_computed() -> None:
    found = step(stage(3), prefetches=True)
    assert told(found).startswith("g0 g1 f0 x0 g2 f1 x1 f2 x2 g2 g1 b2 r2 x2 g0 b1")
    assert found.sent_bytes == step(stage(3)).sent_bytes
    gathered = [max(e.held.gathered for e in each.events) for each in (step(stage(3)), found)]
    assert gathered == [2 * 1200, 2 * (1200 + 600)]


def test_hybrid_shards_join_their_copies_after_the_last_microbatch() -> None:
    cut = Cut(("shard",), 4)
    cuts = StateCuts("dense", Cut(("dp",), 8), cut, cut, cut, across="replicate")
    found = step(cuts, 2)
    joins = [event for event in found.events if event.what == "join"]
    assert [(e.layer, e.microbatch) for e in joins] == [(2, 1), (1, 1), (0, 1)]
    assert sent_over(found, "replicate") == Fraction(2 * 1, 2) * P / 4


@given(st.integers(1, 64), st.integers(0, 3))
def test_one_rank_sends_what_the_closed_form_says(ranks: int, number: int) -> None:
    ways = 3 if number == 3 else 2
    assert step(stage(number, ranks)).sent_bytes == Fraction(ways * (ranks - 1) * P, ranks)


@given(st.integers(2, 32), st.integers(1, 5))
def test_microbatches_repeat_what_a_stage_does_in_each(ranks: int, microbatches: int) -> None:
    once = Fraction((ranks - 1) * P, ranks)
    sent = [step(stage(number, ranks), microbatches).sent_bytes / once for number in range(4)]
    assert sent == [2, 2, microbatches + 1, 3 * microbatches]
    kept = step(stage(3, ranks, is_kept=True), microbatches).sent_bytes / once
    assert kept == 2 * microbatches


@given(st.sampled_from([2, 4, 8]), st.sampled_from([2, 3, 8]))
def test_hpz_saves_the_gather_of_backward_across_nodes(near: int, nodes: int) -> None:
    d = near * nodes
    cuts = stage(3, d, near=Cut(("near",), near))
    found = step(cuts)
    assert sent_over(found, "dp") == Fraction(2 * (d - 1) * P, d)
    assert sent_over(found, "near") == Fraction((near - 1) * P, near)


@given(st.integers(2, 8), st.integers(2, 8))
def test_a_gather_by_levels_sends_as_much_as_one_over_all(nodes: int, inside: int) -> None:
    ranks = nodes * inside
    layers = [ranks * 10]
    levels = (Cut(("inter_node",), nodes), Cut(("intra_node",), inside))
    flat = sharded_step(stage(3, ranks), layers, FP16)
    found = sharded_step(stage(3, ranks), layers, FP16, levels=levels)
    assert found.sent_bytes == flat.sent_bytes
    per_gather = Fraction((inside - 1) * 2 * layers[0], inside)
    assert sent_over(found, "intra_node") == 2 * per_gather


@given(
    st.lists(st.integers(1, 500), min_size=1, max_size=5),
    *(st.integers(0, 3), st.integers(1, 9), st.integers(1, 3)),
    *(st.booleans(), st.booleans(), st.sampled_from(sorted(RECIPES))),
)
def test_a_rank_ends_as_it_began_and_never_holds_less(
    layers: list[int],
    number: int,
    ranks: int,
    microbatches: int,
    is_kept: bool,
    prefetches: bool,
    name: str,
) -> None:
    precision = RECIPES[name]
    cuts = stage(number, ranks, is_kept=is_kept and number == 3)
    found = sharded_step(cuts, layers, precision, microbatches=microbatches, prefetches=prefetches)
    assert found.events[-1].held == found.begin
    assert min(event.held.total for event in found.events) == found.begin.total
    # Each layer is computed forth and back in every microbatch, and only while it is whole.
    used = [event for event in found.events if event.what in ("forward", "backward")]
    assert len(used) == 2 * len(layers) * microbatches
    if ranks > 1 and number == 3:
        whole = [precision.computed_bytes * layers[event.layer] for event in used]
        assert all(e.held.gathered >= least for e, least in zip(used, whole, strict=True))


@pytest.mark.parametrize("precision", RECIPES.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("line", ["megatron 16 zero=0", "megatron 16 zero=1", "megatron 16 zero=2"])
def test_before_the_step_a_rank_holds_its_model_states(line: str, precision: Precision) -> None:
    """The bars of a sharding are those of a step when all gradients are there."""
    layout = asked(line)
    assert layout.sharding is not None
    found = sharded_step(layout.sharding.dense, [1600, 3200], precision)
    before = found.events[[event.what for event in found.events].index("step") - 1]
    assert before.held.total == model_states(layout, 4800, precision).held.total


def test_weight_parallelism_hands_out_what_zero1_ranks_changed() -> None:
    layout = asked("internevo 16 tp=4 pp=2 zero1=2 tensor.mode=isp weight.size=2")
    assert layout.sharding is not None
    found = sharded_step(layout.sharding.dense, [800], FP16)
    moved = [event.moved for event in found.events if event.moved]
    assert [(m.collective, m.over, m.ranks, m.size_bytes) for m in moved] == [
        ("all-gather", ("weight",), 2, 1600),
        ("all-gather", ("weight",), 2, 1600),
        ("reduce-scatter", ("weight",), 2, 1600),
        ("all-reduce", ("weight_data",), 4, 800),
        ("all-gather", ("zero1",), 2, 800),
    ]


def test_a_rank_that_is_alone_sends_nothing() -> None:
    assert step(stage(3, 1)).sent_bytes == 0
    assert told(step(stage(0, 1))) == "f0 f1 f2 b2 b1 b0 S"


@pytest.mark.parametrize(("layers", "microbatches"), [([], 1), ([0], 1), ([10], 0)])
def test_a_step_of_nothing_is_refused(layers: list[int], microbatches: int) -> None:
    with pytest.raises(InputError, match="a step has at least one layer"):
        sharded_step(stage(3), layers, FP16, microbatches=microbatches)


def test_a_step_too_long_to_show_is_refused() -> None:
    with pytest.raises(InputError, match="layers x microbatches is at most 20000"):
        sharded_step(stage(3), [10] * 201, FP16, microbatches=100)
