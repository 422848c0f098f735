"""Which ranks read text, and which part of the batch each rank has, on pretended ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from serried.runtime.job.settings import ModelSizes, TrainSettings, Validation
from serried.runtime.training.data import Corpus
from serried.runtime.training.data_feed import NOTHING, DataFeed
from serried.runtime.training.parallelize import places_of
from tests.runtime.fake_ranks import as_rank
from tests.runtime.reference import batch_of

FOUR = TrainSettings(
    world_size=4, model=ModelSizes(seq_len=16), global_batch_size=8, microbatches=2
)


def fed(rank: int, settings: TrainSettings) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns inputs and targets of one rank."""
    with as_rank(rank, settings) as mesh:
        places = places_of(settings, mesh) if settings.cp > 1 else None
        inputs, targets = DataFeed(settings, mesh, places, needs_text=True).batch(24)
    assert inputs is not None and targets is not None
    return inputs, targets


def microbatches(settings: TrainSettings) -> list[tuple[torch.Tensor, ...]]:
    """Returns inputs and targets of each microbatch, of all data parallel ranks together."""
    ranks = [fed(rank, settings) for rank in range(0, settings.world_size, settings.tp)]
    parts = [[each.chunk(settings.microbatches) for each in fed_] for fed_ in ranks]
    return [
        tuple(torch.cat([part[side][number] for part in parts]) for side in (0, 1))
        for number in range(settings.microbatches)
    ]


@pytest.mark.parametrize("sizes", [{}, {"tp": 2}, {"world_size": 2}, {"world_size": 1}])
def test_a_microbatch_has_the_same_samples_whatever_dp_is(sizes: dict[str, Any]) -> None:
    whole = batch_of(FOUR, 3)
    halves = [each.chunk(2) for each in whole]
    for number, (inputs, targets) in enumerate(microbatches(replace(FOUR, **sizes))):
        assert torch.equal(inputs, halves[0][number])
        assert torch.equal(targets, halves[1][number])


@pytest.mark.parametrize("form", ["ring", "ulysses"])
def test_context_parallel_ranks_have_every_place_between_them(form: str) -> None:
    settings = replace(FOUR, cp=4, cp_form=form)  # type: ignore[arg-type]
    inputs, targets = zip(*(fed(rank, settings) for rank in range(4)), strict=True)
    whole, _ = batch_of(settings, 3)
    # A target stands at its input's place: the next byte, on whatever rank that is.
    order = torch.cat([places(rank, settings) for rank in range(4)]).argsort()
    assert torch.equal(torch.cat(inputs, dim=1)[:, order], whole)
    assert torch.equal(torch.cat(targets, dim=1)[:, order][:, :-1], whole[:, 1:])


def places(rank: int, settings: TrainSettings) -> torch.Tensor:
    """Returns the places that a rank holds."""
    with as_rank(rank, settings) as mesh:
        held = places_of(settings, mesh)
    assert isinstance(held, torch.Tensor)
    return held


def test_only_the_first_rank_of_a_tp_group_opens_the_text() -> None:
    settings = replace(FOUR, tp=2)
    reads = []
    for rank in range(4):
        with as_rank(rank, settings) as mesh:
            feed = DataFeed(settings, mesh, None, needs_text=True)
            reads.append((feed.reads, feed.corpus is not None))
    assert reads == [(True, True), (False, False), (True, True), (False, False)]


def test_peers_take_what_the_reader_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, sent = replace(FOUR, tp=2), []

    def broadcast(tensor: torch.Tensor, group_src: int, group: dist.ProcessGroup) -> None:
        assert group_src == 0 and dist.get_process_group_ranks(group) == [0, 1]
        if dist.get_rank() == 0:
            sent.append(tensor.clone())
        else:
            tensor.copy_(sent[0])

    monkeypatch.setattr(dist, "broadcast", broadcast)
    reader, peer = fed(0, settings), fed(1, settings)
    assert all(torch.equal(a, b) for a, b in zip(reader, peer, strict=True))
    assert torch.equal(reader[0], batch_of(settings, 3)[0][[0, 1, 4, 5]])


def test_a_rank_of_middle_stages_has_no_text() -> None:
    with as_rank(1, replace(FOUR, pp=4)) as mesh:
        feed = DataFeed(replace(FOUR, pp=4), mesh, None, needs_text=False)
    assert (feed.reads, feed.batch(0)) == (False, (None, None))
    assert feed.validation_batch(0) == (None, None)


def test_every_byte_held_out_is_a_target_once_however_ranks_cut_it() -> None:
    settings = replace(FOUR, cp=2, validation=Validation(every=1, sequences=11))
    counted: list[int] = []
    for rank in range(4):
        with as_rank(rank, settings) as mesh:
            feed = DataFeed(settings, mesh, places_of(settings, mesh), needs_text=True)
            for first in (0, 8):
                _, targets = feed.validation_batch(first)
                assert targets is not None
                counted += targets[targets != NOTHING].tolist()
    corpus = Corpus.of(None)
    last = corpus.read(corpus.num_bytes - 11 * 16, 11 * 16)
    assert sorted(counted) == sorted(last.tolist())


def test_a_row_that_only_fills_the_batch_is_still_text_to_the_model() -> None:
    settings = replace(
        FOUR,
        global_batch_size=4,
        microbatches=1,
        validation=Validation(every=1, sequences=3),
    )
    with as_rank(3, settings) as mesh:
        feed = DataFeed(settings, mesh, None, needs_text=True)
        inputs, targets = feed.validation_batch(0)
    assert inputs is not None and targets is not None and len(inputs) == 1
    assert inputs.min() >= 0 and bool((targets == NOTHING).all())
