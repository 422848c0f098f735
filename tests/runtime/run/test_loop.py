"""Real runs over real processes: the same loss in every layout, and what each rank holds."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from serried.action import EXCHANGES, ActionKind, Span, Spans
from serried.runtime.job.report import TrainResult
from serried.runtime.job.settings import Emulated, ModelSizes, OptimizerSettings, TrainSettings
from serried.runtime.model.model import Stage
from serried.runtime.run.launch import train
from serried.trace.model.record import RankRecord, read_rank_record
from tests.runtime.rank_group import needs_gpu
from tests.runtime.reference import train_alone

MODEL = ModelSizes(layers=2, hidden=32, heads=4, seq_len=32)
SMALL = TrainSettings(
    world_size=1,
    model=MODEL,
    optimizer=OptimizerSettings(lr_schedule="constant"),  # a few steps go as the first of twenty do
    global_batch_size=8,
    microbatches=2,
    device="cpu",
    steps=8,
    timeout_s=60,
)
TOLERANCE = 2e-5
"""float32 sums in another order, over 8 steps; a wrong gradient is off by 1e-2 within three."""


def without_exchanges(spans: Spans) -> list[Span]:
    """Returns all but what lies within other spans, and the wait for a step's text."""
    within = {*EXCHANGES, ActionKind.IN_FLIGHT, ActionKind.SPAN}
    return [span for span in spans if span.action.kind not in within]


def plain_losses(settings: TrainSettings) -> list[float]:
    """Returns what one process loses, which trains the whole model without the runtime."""
    return [told.loss for told in train_alone(settings)]


@dataclass(frozen=True)
class Run:
    """A finished run: what was asked, what came of it, and what each rank recorded."""

    settings: TrainSettings
    result: TrainResult
    recordings: list[RankRecord]

    @property
    def spans(self) -> Spans:
        """All ranks' spans."""
        return Spans.joined([recording.spans for recording in self.recordings])


def run(settings: TrainSettings) -> Run:
    """Runs ``settings`` and reads every rank's recording."""
    assert settings.trace_dir is not None
    result = train(settings)
    files = sorted(settings.trace_dir.glob("rank-*.spans"))
    return Run(settings, result, [read_rank_record(file) for file in files])


@pytest.fixture(scope="module")
def plain() -> list[float]:
    """The losses of the plain loop over eight steps."""
    return plain_losses(SMALL)


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Eight steps on eight ranks: tp 2, pp 2, dp 2; steps 3 to 5 recorded."""
    folder = tmp_path_factory.mktemp("eight")
    return run(
        replace(
            SMALL,
            world_size=8,
            tp=2,
            pp=2,
            trace_dir=folder / "trace",
            trace_steps=(3, 6),
            log_file=folder / "log.jsonl",
        )
    )


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two steps of emulated compute on eight ranks: pp 4, dp 2."""
    return run(
        replace(
            SMALL,
            world_size=8,
            pp=4,
            steps=2,
            microbatches=4,
            model=replace(MODEL, layers=4),
            emulated=Emulated(forward_ms=2, backward_ms=4),
            trace_dir=tmp_path_factory.mktemp("emulated"),
        )
    )


# ------------------------------------------------------------------------------- parity


def test_eight_ranks_lose_what_one_process_loses(eight: Run, plain: list[float]) -> None:
    np.testing.assert_allclose(eight.result.losses, plain, rtol=TOLERANCE)


def test_the_loss_falls(plain: list[float]) -> None:
    assert plain[-1] < plain[0] - 0.5


def test_the_log_holds_every_step_and_loss(eight: Run) -> None:
    assert eight.settings.log_file
    lines = [json.loads(line) for line in eight.settings.log_file.read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(8))
    assert [line["loss"] for line in lines] == eight.result.losses
    assert {line["compute"] for line in lines} == {"real"}


@pytest.mark.parametrize(
    ("layout", "pipelines"),
    [
        ({"framework": "megatron"}, [(0, 2), (1, 3)]),
        ({"options": {"use_tp_pp_dp_mapping": "true"}}, [(0, 1), (2, 3)]),
        ({"order": "pp-tp-cp-ep-dp"}, [(0, 1), (2, 3)]),
    ],
)
def test_frameworks_place_ranks_differently_and_lose_the_same(
    layout: dict[str, object], pipelines: list[tuple[int, ...]], plain: list[float]
) -> None:
    settings = replace(SMALL, world_size=4, pp=2, steps=3, **layout)  # type: ignore[arg-type]
    result = train(settings)
    assert sorted({report.groups["pp"] for report in result.ranks}) == pipelines
    np.testing.assert_allclose(result.losses, plain[:3], rtol=TOLERANCE)


def test_one_stage_runs_on_the_same_path(plain: list[float]) -> None:
    result = train(replace(SMALL, steps=3))
    np.testing.assert_allclose(result.losses, plain[:3], rtol=TOLERANCE)


def test_several_stages_a_rank_lose_what_one_process_loses() -> None:
    model = replace(MODEL, layers=5)
    asked = replace(SMALL, world_size=2, pp=2, steps=4, model=model, schedule="interleaved-1f1b")
    np.testing.assert_allclose(train(asked).losses, plain_losses(asked), rtol=TOLERANCE)


@needs_gpu
def test_a_gpu_loses_what_the_cpu_loses(plain: list[float]) -> None:
    result = train(replace(SMALL, steps=3, device="cuda"))
    assert {report.device for report in result.ranks} == {"cuda:0"}
    np.testing.assert_allclose(result.losses, plain[:3], rtol=1e-3)


# ------------------------------------------------------------------------------- who holds what


def test_torch_holds_exactly_the_groups_of_the_layout(eight: Run) -> None:
    layout = eight.settings.layout
    for axis in ("tp", "pp", "dp"):
        made = {report.groups[axis] for report in eight.result.ranks}
        assert made == {tuple(ranks) for ranks in layout.groups(layout.kind_of(axis)).lists()}
    for report in eight.result.ranks:
        place = layout.mesh.coordinates(report.rank)
        assert report.coordinates == {axis: place[axis] for axis in ("pp", "dp", "tp")}


def test_stages_hold_different_layers_and_together_the_whole_model(eight: Run) -> None:
    held = {report.coordinates["pp"]: report.modules for report in eight.result.ranks}
    assert held == {0: ("embed", "layers.0"), 1: ("layers.1", "norm", "output")}


def test_with_tp_2_a_rank_holds_half_of_every_matrix_and_whole_norms(eight: Run) -> None:
    for report in eight.result.ranks:
        stage = Stage(MODEL, stage=report.coordinates["pp"], num_stages=2)
        sizes = {name: p.numel() * 4 for name, p in stage.named_parameters()}
        norms = sum(size for name, size in sizes.items() if "norm" in name)
        assert report.parameter_bytes == (sum(sizes.values()) - norms) // 2 + norms


def test_only_the_first_rank_of_a_tp_group_reads_text(eight: Run) -> None:
    for report in eight.result.ranks:
        assert report.reads_data == (report.coordinates["tp"] == 0)


def test_every_rank_is_a_process_of_its_own(eight: Run) -> None:
    assert [report.rank for report in eight.result.ranks] == list(range(8))
    assert len({report.pid for report in eight.result.ranks}) == 8
    assert {report.device for report in eight.result.ranks} == {"cpu"}


# ------------------------------------------------------------------------------- the recording


def test_each_rank_records_its_own_file_of_the_same_run(eight: Run) -> None:
    headers = [recording.header for recording in eight.recordings]
    assert [header.rank for header in headers] == list(range(8))
    assert {header.run for header in headers} == {eight.result.run}
    assert all(header.job == eight.settings.job("gloo") for header in headers)
    assert not any(recording.torn for recording in eight.recordings)


def test_only_the_window_s_steps_are_recorded(eight: Run) -> None:
    assert set(eight.spans.step.tolist()) == {3, 4, 5}


@pytest.mark.parametrize("name", ["eight", "emulated"])
def test_spans_are_as_many_as_the_schedule_says(name: str, request: pytest.FixtureRequest) -> None:
    it: Run = request.getfixturevalue(name)
    s, steps = it.settings, len(set(it.spans.step.tolist()))
    pipelines, m = s.world_size // s.pp, s.microbatches
    compute, hops = steps * pipelines * s.pp * m, steps * pipelines * (s.pp - 1) * m
    assert Counter(span.action.kind.name for span in without_exchanges(it.spans)) == {
        **dict.fromkeys(("F", "B"), compute),
        **dict.fromkeys(("SEND_F", "RECV_F", "SEND_B", "RECV_B"), hops),
        **dict.fromkeys(("REDUCE_GRAD", "OPTIMIZER"), steps * s.world_size),
    }


@pytest.mark.parametrize("name", ["eight", "emulated"])
def test_each_send_has_one_receive_on_the_next_stage(
    name: str, request: pytest.FixtureRequest
) -> None:
    it: Run = request.getfixturevalue(name)

    def messages(kind: ActionKind) -> Counter[tuple[int, ...]]:
        """Messages as (step, sender, receiver, sender's stage, microbatch)."""
        sends = kind in (ActionKind.SEND_F, ActionKind.SEND_B)
        forward = kind in (ActionKind.SEND_F, ActionKind.RECV_F)
        of_sender = 0 if sends else (-1 if forward else 1)
        return Counter(
            (
                span.step,
                *((span.rank, span.peer) if sends else (span.peer, span.rank)),
                span.action.stage + of_sender,
                span.action.microbatch,
            )
            for span in it.spans
            if span.action.kind is kind
        )

    for send, receive in (
        (ActionKind.SEND_F, ActionKind.RECV_F),
        (ActionKind.SEND_B, ActionKind.RECV_B),
    ):
        sent = messages(send)
        assert sent == messages(receive)
        assert set(sent.values()) == {1}


@pytest.mark.parametrize("name", ["eight", "emulated"])
def test_a_stage_computes_only_after_the_one_before_it_has_sent(
    name: str, request: pytest.FixtureRequest
) -> None:
    it: Run = request.getfixturevalue(name)
    layout, kinds = it.settings.layout, (ActionKind.F, ActionKind.B)
    at = {
        (span.rank, span.step, span.action.kind, span.action.microbatch): span
        for span in it.spans
        if span.action.kind in kinds
    }
    checked = 0
    for (rank, step, kind, microbatch), span in at.items():
        ranks = layout.groups("pp")[layout.groups("pp").containing(rank)[0]].tolist()
        before = ranks.index(rank) + (-1 if kind is ActionKind.F else 1)
        if 0 <= before < len(ranks):
            checked += 1
            assert at[ranks[before], step, kind, microbatch].end_ns <= span.start_ns
    assert checked == 2 * len(set(it.spans.step.tolist())) * it.settings.microbatches * (
        it.settings.world_size - it.settings.world_size // it.settings.pp
    )


@pytest.mark.parametrize("name", ["eight", "emulated"])
def test_spans_of_a_rank_follow_each_other(name: str, request: pytest.FixtureRequest) -> None:
    it: Run = request.getfixturevalue(name)
    for recording in it.recordings:
        spans = sorted(without_exchanges(recording.spans), key=lambda span: span.start_ns)
        assert all(span.start_ns <= span.end_ns for span in spans)
        assert all(one.end_ns <= next_.start_ns for one, next_ in pairwise(spans))


def test_gathering_parameters_and_summing_a_tied_weight_are_recorded(tmp_path: Path) -> None:
    it = run(
        replace(
            SMALL,
            world_size=4,
            pp=2,
            zero=2,
            steps=2,
            model=replace(MODEL, tie=True),
            trace_dir=tmp_path,
        )
    )
    tails = {ActionKind.UNSHARD, ActionKind.REDUCE_GRAD, ActionKind.OPTIMIZER}
    for rank, recording in enumerate(it.recordings):
        stage = rank // 2
        spans = sorted(recording.spans, key=lambda span: span.start_ns)
        assert [str(span.action) for span in spans if span.action.kind in tails] == [
            f"{stage}UNSHARD",
            f"{stage}REDUCE_GRAD",  # over data parallel ranks
            f"{stage}REDUCE_GRAD",  # over the two ends of the model
            "OPTIMIZER",
        ] * 2


# ------------------------------------------------------------------------------- emulated compute


def test_emulated_compute_is_called_so_and_has_no_loss(emulated: Run) -> None:
    assert {recording.header.job.compute for recording in emulated.recordings} == {"emulated"}
    assert [step.loss for step in emulated.result.steps] == [None, None]
    assert emulated.result.losses == []


def test_an_emulated_stage_takes_the_times_it_was_given(emulated: Run) -> None:
    least = {ActionKind.F: 2e6, ActionKind.B: 4e6}
    spans = [span for span in emulated.spans if span.action.kind in least]
    assert all(span.duration_ns >= least[span.action.kind] for span in spans)


def test_fewer_microbatches_than_stages_run_too(tmp_path: Path) -> None:
    it = run(
        replace(
            SMALL,
            world_size=4,
            pp=2,
            tp=2,
            steps=1,
            microbatches=1,
            emulated=Emulated(forward_ms=1, backward_ms=1),
            trace_dir=tmp_path,
        )
    )
    actions = [[str(s.action) for s in without_exchanges(each.spans)] for each in it.recordings]
    first = ["0F0", "0SEND_F0", "0RECV_B0", "0B0", "0REDUCE_GRAD", "OPTIMIZER"]
    last = ["1RECV_F0", "1F0", "1B0", "1SEND_B0", "1REDUCE_GRAD", "OPTIMIZER"]
    assert actions == [first, first, last, last]


def test_emulated_halves_take_half_of_a_backward_each(tmp_path: Path) -> None:
    it = run(
        replace(
            SMALL,
            world_size=2,
            pp=2,
            steps=1,
            model=replace(MODEL, layers=4),
            schedule="zbv",
            emulated=Emulated(forward_ms=1, backward_ms=4),
            trace_dir=tmp_path,
        )
    )
    least = {ActionKind.F: 1e6, ActionKind.I: 2e6, ActionKind.W: 2e6}
    compute = [span for span in it.spans if span.action.kind in least]
    assert Counter(span.action.kind for span in compute) == dict.fromkeys(least, 4 * 2)
    assert all(span.duration_ns >= least[span.action.kind] for span in compute)
    planned = [[part for action in rank for part in action.each] for rank in it.settings.pipeline]
    assert [[s.action for s in compute if s.rank == rank] for rank in (0, 1)] == planned
    assert {recording.header.job.schedule for recording in it.recordings} == {"zbv"}
    assert [report.modules for report in it.result.ranks] == [
        ("embed", "layers.0", "layers.3", "norm", "output"),
        ("layers.1", "layers.2"),
    ]
