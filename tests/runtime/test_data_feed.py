"""Which ranks read text, and which part of the batch each rank has, on pretended ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.distributed as dist

from serried.runtime.data import Corpus
from serried.runtime.data_feed import NOTHING, DataFeed
from serried.runtime.parallelize import places_of
from serried.runtime.settings import ModelSizes, TrainSettings, Validation
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


def test_data_parallel_ranks_have_the_global_batch_between_them() -> None:
    parts = [fed(rank, FOUR) for rank in range(4)]
    whole = batch_of(FOUR, 3)
    for part, wanted in zip(zip(*parts, strict=True), whole, strict=True):
        assert torch.equal(torch.cat(part), wanted)


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
    assert torch.equal(reader[0], batch_of(settings, 3)[0][:4])


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
