"""What the reference training costs beside scripts written by hand; run by ``make bench``.

    DDP      dp 2                DistributedDataParallel, no_sync but for the last microbatch
    FSDP2    dp 2, zero 3        fully_shard per layer and for the whole
    1F1B     pp 2                torch's own Schedule1F1B

Each script trains the same model from the same text with the same AdamW, clips, and asks for the
loss of all ranks, in the same processes as the reference training; blocks of both alternate
(``paired/rounds.py``). Nothing is recorded. The ratio is the reference training's step over the
script's, by the clock and by the processor.

    python benchmarks/training.py --hidden 64 256
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist
from paired.ranks import run_ranks  # type: ignore[import-not-found]  # stands beside this file
from paired.rounds import (  # type: ignore[import-not-found]  # stands beside this file
    Cost,
    centre,
    interval,
    of_all_ranks,
    pin,
    rounds_of,
)
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.parallel import DistributedDataParallel

from serried.runtime.job.settings import ModelSizes, TrainSettings
from serried.runtime.model.model import Stage
from serried.runtime.recording.training import TrainingRecorder
from serried.runtime.run.loop import RankTrainer
from serried.runtime.training.data import Corpus
from serried.runtime.training.mesh import make_train_mesh

RANKS, BATCH, MICROBATCHES, LR = 2, 32, 4, 1e-3
PEERS = {"DDP": (1, 0), "FSDP2": (1, 3), "1F1B": (2, 0)}
"""The reference training's pp and zero beside each script."""


class Text:
    """Reads a rank's rows as a script would: random places of the standard library's sources."""

    def __init__(self, seq_len: int) -> None:
        self._corpus = Corpus.of(None)
        self._draw = torch.Generator().manual_seed(dist.get_rank())
        self._seq_len = seq_len

    def rows(self, count: int) -> tuple[Tensor, Tensor]:
        places = torch.randint(
            self._corpus.num_bytes - self._seq_len - 1, (count,), generator=self._draw
        )
        text = torch.from_numpy(self._corpus.batch(places.tolist(), self._seq_len + 1)).long()
        return text[:, :-1], text[:, 1:]


class Script:
    """Holds what scripts written by hand have in common: the end of a step."""

    def __init__(self, model: nn.Module, seq_len: int) -> None:
        self.model = model
        self.text = Text(seq_len)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.01)

    def learn(self, loss: Tensor) -> float:
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        dist.all_reduce(loss)
        return loss.item()


class DataParallelScript(Script):
    """Trains under DDP or FSDP2, gradients accumulated over microbatches."""

    def __init__(self, sizes: ModelSizes, name: str) -> None:
        self.whole = Stage(sizes, stage=0, num_stages=1)
        self.whole.draw_weights(0)
        if name == "DDP":
            super().__init__(DistributedDataParallel(self.whole), sizes.seq_len)
            return
        for layer in self.whole.layers.values():
            fully_shard(layer)
        fully_shard(self.whole)
        super().__init__(self.whole, sizes.seq_len)

    def step(self) -> None:
        inputs, targets = self.text.rows(BATCH // RANKS)
        total = torch.zeros(())
        pairs = list(zip(inputs.chunk(MICROBATCHES), targets.chunk(MICROBATCHES), strict=True))
        for number, (x, y) in enumerate(pairs):
            with self._quiet(is_last=number + 1 == MICROBATCHES):
                loss = self.whole.loss(self.model(x), y) / MICROBATCHES
                torch.autograd.backward(loss)
            total += loss.detach()
        self.learn(total)

    def _quiet(self, *, is_last: bool) -> AbstractContextManager[None]:
        """Keeps gradients from being reduced before the last microbatch, under DDP."""
        if isinstance(self.model, DistributedDataParallel) and not is_last:
            return self.model.no_sync()
        if isinstance(self.model, FSDPModule):
            self.model.set_requires_gradient_sync(is_last)
        return nullcontext()


class PipelineScript(Script):
    """Trains two stages under torch's Schedule1F1B."""

    def __init__(self, sizes: ModelSizes, name: str) -> None:
        self.rank = dist.get_rank()
        model = Stage(sizes, stage=self.rank, num_stages=RANKS)
        model.draw_weights(0)
        super().__init__(model, sizes.seq_len)
        stage = PipelineStage(model, self.rank, RANKS, torch.device("cpu"))
        self.schedule = Schedule1F1B(stage, MICROBATCHES, loss_fn=model.loss)

    def step(self) -> None:
        inputs, targets = self.text.rows(BATCH)
        losses: list[Tensor] = []
        if self.rank == 0:
            self.schedule.step(inputs)
        else:
            self.schedule.step(target=targets, losses=losses)
        mean = torch.stack(losses).mean().detach() if losses else torch.zeros(())
        self.learn(mean)


class Arms:
    """Holds a script and the reference training beside it, and trains a block of steps of each."""

    def __init__(self, name: str, hidden: int, block: int) -> None:
        sizes = ModelSizes(hidden=hidden)
        make: Callable[[ModelSizes, str], DataParallelScript | PipelineScript]
        make = PipelineScript if name == "1F1B" else DataParallelScript
        self._script = make(sizes, name)
        pp, zero = PEERS[name]
        settings = TrainSettings(
            world_size=RANKS,
            model=sizes,
            steps=1_000_000,
            global_batch_size=BATCH,
            microbatches=MICROBATCHES,
            pp=pp,
            zero=zero,
        )
        mesh = make_train_mesh(settings, torch.device("cpu"), timedelta(minutes=5))
        self._trainer = RankTrainer(settings, mesh, TrainingRecorder())
        self._block = block

    def run(self, way: str) -> Cost:
        """Trains a block, ranks beginning together; returns what a step took in the mean."""
        with self._trainer.timed() if way == "serried" else nullcontext():
            train = self._trainer.step if way == "serried" else self._script.step
            dist.barrier()
            cpu, wall = time.process_time(), time.perf_counter()
            for _ in range(self._block):
                train()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return Cost(wall / self._block, cpu / self._block)


def rank(number: int, folder: str, asked: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    pin(number, RANKS)
    shared = dist.FileStore(f"{folder}/store", RANKS)  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=shared, rank=number, world_size=RANKS)
    for hidden in asked.hidden:
        for name in asked.peers:
            arms = Arms(name, hidden, asked.block)
            found = of_all_ranks(rounds_of(("script", "serried"), arms.run, asked.rounds))
            if number == 0:
                tell(name, hidden, found)
    dist.barrier()
    os._exit(0)


def tell(name: str, hidden: int, found: list[dict[str, Cost]]) -> None:
    ratios = [
        interval([each["serried"][by] / each["script"][by] for each in found]).text(".3f")
        for by in (0, 1)
    ]
    step_ms = centre([each["script"].wall_s for each in found]) * 1e3
    told = f"{name}, hidden {hidden}"
    print(f"{told:20} {step_ms:7.1f} ms a step   {ratios[0]:26} {ratios[1]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hidden", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--peers", choices=PEERS, nargs="+", default=list(PEERS))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--block", type=int, default=4, help="steps in a row")
    asked = parser.parse_args()
    print(f"torch {torch.__version__}, {RANKS} ranks, gloo; the reference training / the script:")
    print(f"{'':20} {'the script':18} {'by the clock':26} by the processor")
    run_ranks(rank, RANKS, asked)


if __name__ == "__main__":
    main()
