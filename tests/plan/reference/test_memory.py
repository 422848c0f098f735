"""The most that each rank of a pipeline holds, and when, from states and activations."""

from __future__ import annotations

from dataclasses import replace

from serried.pipeline import Request, generate
from serried.plan.reference.activations import kept_by_layer, layer_work, loss_work, stream_itself
from serried.plan.reference.memory import Moment, RankMemory, rank_memories, stage_bytes
from serried.plan.reference.states import states_of
from serried.plan.reference.training import Gpt, Kernels, Training

MODEL = Gpt(hidden=8, ffn=24, heads=2, kv_heads=1, seq_len=64, vocabulary=16)
ONE = Training(
    MODEL,
    layers=(2,),
    schedule=generate("1f1b", Request(1, 2)),
    microbatch_size=3,
    kernels=Kernels("flash"),
)
ANGLES = 4 * 64 * 4
TEXT = 2 * 2 * 192 * 8


def pipeline(name: str, pp: int, microbatches: int, chunks: int = 1) -> Training:
    schedule = generate(name, Request(pp, microbatches, chunks if chunks > 1 else None))
    return replace(ONE, layers=(2,) * pp * chunks, schedule=schedule)


def live(training: Training, rank: int) -> float:
    """Returns how many microbatches of one stage a middle rank's activations hold."""
    memory = rank_memories(training)[rank]
    assert len(memory.stages) == 1
    per_microbatch = 2 * kept_by_layer(training) - stream_itself(training)
    messages = 2 * training.schedule.num_microbatches * stream_itself(training)
    working = layer_work(training, weight_gradient=0)
    return (memory.activations - messages - ANGLES - working) / per_microbatch


def test_one_rank_holds_one_microbatch_and_works_with_its_last_layer() -> None:
    [memory] = rank_memories(ONE)
    bytes_of = stage_bytes(ONE, 0)
    working = max(loss_work(ONE), bytes_of.layer_work - bytes_of.let_go)
    assert memory.activations == TEXT + ANGLES + bytes_of.kept + working
    states = states_of(ONE, 0)
    assert memory.peak == (
        states.parameters + states.optimizer + states.gradients + memory.activations
    )
    assert memory.moment == Moment.COMPUTING


def test_a_first_backward_has_no_gradients_beside_it() -> None:
    alone = replace(ONE, schedule=generate("1f1b", Request(1, 1)), microbatch_size=6)
    [memory] = rank_memories(alone)
    assert memory.peak == memory.parameters + memory.optimizer + memory.activations


def test_1f1b_holds_fewer_microbatches_on_later_ranks_and_gpipe_all_on_each() -> None:
    deep = [round(live(pipeline("1f1b", 4, 8), rank), 1) for rank in (1, 2)]
    # Messages sent stay as well: by each forward, and each backward but for the first.
    assert [int(each) for each in deep] == [3, 2]
    assert int(live(pipeline("gpipe", 4, 8), 1)) == 8


def test_messages_stand_for_every_microbatch_whatever_the_schedule() -> None:
    few, many = pipeline("1f1b", 2, 4), pipeline("1f1b", 2, 8)
    first, more = (rank_memories(each)[0].activations for each in (few, many))
    stream = stream_itself(ONE)
    # A buffer for what comes back and a message sent, for each; and two texts.
    assert more - first == 4 * 2 * stream + 4 * 2 * 192 * 8


def test_stages_of_one_rank_send_each_other_nothing() -> None:
    looped = pipeline("interleaved-1f1b", 2, 4, chunks=2)
    in_v = replace(looped, schedule=generate("1f1b-v", Request(2, 4, 2)))
    stream = stream_itself(ONE)
    assert {stage_bytes(looped, stage).sent_on for stage in (0, 1, 2)} == {stream}
    assert [stage_bytes(in_v, stage).sent_on for stage in (0, 1, 2)] == [stream, 0, stream]
    assert [stage_bytes(in_v, stage).sent_back for stage in (1, 2, 3)] == [stream, 0, stream]


def test_an_input_half_keeps_all_until_its_weight_half() -> None:
    whole, halves = (rank_memories(pipeline(name, 3, 6))[2] for name in ("1f1b", "zb-h1"))
    assert halves.activations > whole.activations
    assert halves.parameters == whole.parameters


def test_few_activations_leave_the_peak_to_the_optimizer_or_to_summing() -> None:
    few = replace(ONE, microbatch_size=1, model=replace(MODEL, hidden=128, ffn=384, seq_len=2))
    [memory] = rank_memories(few)
    assert memory.moment == Moment.LEARNING
    assert memory.peak > memory.parameters + memory.gradients + memory.optimizer
    [half] = rank_memories(replace(few, dtype="bfloat16", sharing="replicate"))
    assert half.moment == Moment.REDUCING
    # Gradients, their sum, and that sum divided by one.
    states = half.parameters + half.optimizer + 3 * half.gradients
    assert half.peak - states < half.gradients // 100


def test_recompute_takes_less() -> None:
    def of(name: str) -> RankMemory:
        return rank_memories(replace(ONE, layers=(6,), recompute=name))[0]  # type: ignore[arg-type]

    none, selective, full = (of(name).activations for name in ("none", "selective", "full"))
    assert none > selective > full
