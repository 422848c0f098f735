"""One process, one plain backward a step: what every layout is compared with.

Of serried it uses the model and the text, and nothing else: torch's own AdamW, clipping and
schedulers do what the run's optimizer is to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LinearLR, SequentialLR

from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.model.experts import Experts
from serried.runtime.model.model import FeedForward, Parts, Stage
from serried.runtime.training.data import Corpus


class Told(NamedTuple):
    """Says what a step gave: the mean loss and the gradient's norm before clipping."""

    loss: float
    norm: float


def whole_model(settings: TrainSettings) -> Stage:
    """Returns the model in one piece, weights drawn."""

    def feed_forward(sizes: ModelSizes) -> torch.nn.Module:
        if not sizes.experts:
            return FeedForward(sizes)
        return Experts(sizes.hidden, sizes.ffn, sizes.experts, sizes.top_k, balance=sizes.balance)

    model = Stage(settings.model, Parts(feed_forward=feed_forward), stage=0, num_stages=1)
    model.draw_weights(settings.seed)
    model.to(getattr(torch, settings.dtype))
    return model


def batch_of(settings: TrainSettings, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns inputs and targets of a whole global batch."""
    corpus, length = Corpus.of(settings.data), settings.model.seq_len
    order = corpus.order(seq_len=length, seed=settings.seed, held_out=settings.validation.held_out)
    first = step * settings.global_batch_size
    places = [order.place(first + each) for each in range(settings.global_batch_size)]
    text = torch.from_numpy(corpus.batch(places, length + 1)).long()
    return text[:, :-1], text[:, 1:]


def train_alone(settings: TrainSettings) -> list[Told]:
    """Trains the whole model in this process, all of a step's samples at once.

    Only where experts are balanced, which counts rows by the microbatch, it computes those.
    """
    torch.set_num_threads(1)  # as ranks compute; more would only wait for cores
    model, learning = whole_model(settings), settings.optimizer
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=learning.lr, weight_decay=learning.weight_decay
    )
    rates = _rates(optimizer, settings)
    told = []
    for step in range(settings.steps):
        loss = sum(_losses(model, settings, step), torch.zeros(()))
        norm = clip_grad_norm_(model.parameters(), learning.clip or float("inf"))
        optimizer.step()
        rates.step()
        optimizer.zero_grad()
        told.append(Told(loss.item(), norm.item()))
    return told


def _losses(model: Stage, settings: TrainSettings, step: int) -> Iterator[torch.Tensor]:
    """Yields the parts of a step's loss, and leaves their gradients in the model."""
    count = settings.microbatches if settings.model.balance else 1
    for module in model.modules():
        if isinstance(module, Experts):
            module.balance_scale = 1 / count
    batch = batch_of(settings, step)
    for inputs, targets in zip(*(each.chunk(count) for each in batch), strict=True):
        loss = model.loss(model(inputs), targets) / count
        loss.backward()  # type: ignore[no-untyped-call]
        yield loss.detach()


def _rates(optimizer: torch.optim.Optimizer, settings: TrainSettings) -> SequentialLR:
    learning, warmup = settings.optimizer, settings.optimizer.warmup
    after = (
        ConstantLR(optimizer, factor=1.0)
        if learning.lr_schedule == "constant"
        else CosineAnnealingLR(optimizer, settings.steps - warmup, eta_min=learning.min_lr)
    )
    if not warmup:
        return SequentialLR(optimizer, [after], milestones=[])
    rising = LinearLR(optimizer, start_factor=1 / warmup, total_iters=warmup - 1)
    return SequentialLR(optimizer, [rising, after], milestones=[warmup])
