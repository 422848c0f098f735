"""Gives each rank its part of the global batch: read once per tensor parallel group, then sent.

    global batch     | microbatch 0 | 1 | …      | dp takes rows of each microbatch
    tp group         | rank 0 reads ──broadcast──> its peers
    cp               | each keeps the places of the sequence that it holds

Which samples a batch and each of its microbatches have follows from the seed and how many were read
before: no state, whatever the layout. So the experts' load-balancing loss, which counts all rows
of a microbatch, counts the same ones for any dp. Validation reads the sequences that are held out,
each once; rows that fill up the last batch have targets of NOTHING, which count nowhere.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from serried.runtime.job.settings import TrainSettings
from serried.runtime.training.data import BatchShare
from serried.runtime.training.mesh import TrainMesh
from serried.runtime.training.tokens import text_of

NOTHING = -100
"""The target of a byte that only fills a batch: torch's cross entropy passes it over."""


class DataFeed:
    """Reads or receives this rank's inputs and targets."""

    def __init__(
        self, settings: TrainSettings, mesh: TrainMesh, places: Tensor | None, *, needs_text: bool
    ) -> None:
        self.settings, self.mesh, self.places = settings, mesh, places
        self.needs_text = needs_text
        self.reads = needs_text and mesh.coordinate("tp") == 0
        """Whether this rank reads text itself."""
        self.corpus = text_of(settings) if self.reads else None
        self.held_out = settings.validation.held_out
        self.share = BatchShare(
            settings.global_batch_size, settings.microbatches, settings.dp, mesh.coordinate("dp")
        )

    def batch(self, first: int) -> tuple[Tensor | None, Tensor | None]:
        """Returns inputs and targets, each (samples, places here); none for middle stages.

        ``first`` is the run's number of the global batch's first sample.
        """
        if not self.needs_text:
            return None, None
        settings, starts = self.settings, None
        if self.corpus is not None:
            order = self.corpus.order(
                seq_len=settings.model.seq_len, seed=settings.seed, held_out=self.held_out
            )
            starts = [order.place(number) for number in self.share.numbers(first)]
        return self._cut(self._text(starts))

    def validation_batch(self, first: int) -> tuple[Tensor | None, Tensor | None]:
        """Returns the same of the samples held out; ``first`` is a number among those."""
        if not self.needs_text:
            return None, None
        samples, length = self.share.numbers(first), self.settings.model.seq_len
        starts = None
        if self.corpus is not None:
            begin = self.corpus.num_tokens - 1 - self.held_out * length
            starts = [begin + min(each, self.held_out - 1) * length for each in samples]
        inputs, targets = self._cut(self._text(starts))
        is_filling = torch.tensor([[each >= self.held_out] for each in samples])
        # Not in place: of a single row, inputs and targets are views of the same memory.
        return inputs, targets.masked_fill(is_filling.to(targets.device), NOTHING)

    def _text(self, starts: list[int] | None) -> Tensor:
        """Returns (samples, sequence + 1) tokens from ``starts``, or the tp group reader's.

        Raises InputError when the text is no longer there.
        """
        settings = self.settings
        length = settings.model.seq_len + 1
        if self.corpus is None or starts is None:
            per_rank = settings.global_batch_size // settings.dp
            dtype = torch.int32 if settings.has_tokens else torch.uint8
            text = torch.empty(per_rank, length, dtype=dtype)
        else:
            text = torch.from_numpy(self.corpus.batch(starts, length))
        text = text.to(self.mesh.device)
        if settings.tp > 1:
            dist.broadcast(text, group_src=0, group=self.mesh.group("tp"))
        return text.to(torch.int64)

    def _cut(self, text: Tensor) -> tuple[Tensor, Tensor]:
        """Returns inputs and targets at the places that this rank holds."""
        inputs, targets = text[:, :-1], text[:, 1:]
        if self.places is not None:
            places = self.places.to(self.mesh.device)
            inputs, targets = inputs[:, places], targets[:, places]
        return inputs.contiguous(), targets.contiguous()
