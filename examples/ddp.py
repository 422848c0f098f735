"""Plain DDP: every rank holds the whole model, gradients are averaged in each backward.

torchrun --nproc-per-node 2 examples/ddp.py
serried groups --framework custom --world-size 2          # the one group of two that it makes
"""

from __future__ import annotations

import os

import reviews
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

import serried  # serried, line 1 of 2


def main() -> None:
    """Trains, measures after each epoch, and saves on rank 0."""
    args = reviews.options(__doc__).parse_args()
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")

    training, validation = (reviews.Reviews(args, is_validation=each) for each in (False, True))
    # Shuffled: each rank gets another part, every epoch in another order (set_epoch).
    sampler = DistributedSampler(training, world, rank, seed=args.seed)
    loader = DataLoader(training, args.batch, sampler=sampler)

    model = DistributedDataParallel(reviews.bert(args).to(device))
    torch.manual_seed(args.seed + rank)  # equal weights, but each rank drops out its own units
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    accuracy = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)  # without it every epoch has the order of the first
        model.train()
        for batch in serried.record(loader):  # serried, line 2 of 2
            loss = model(**{key: value.to(device) for key, value in batch.items()}).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        accuracy, count = measured(model.module, validation, args.batch, device)
        if rank == 0:
            print(f"epoch {epoch}: accuracy {accuracy:.3f} over {count} rows")

    if rank == 0:
        model.module.save_pretrained(args.out)
        reviews.save_config(args, world_size=world, accuracy=accuracy)
    del model  # gloo may hang where DDP outlives its group
    dist.destroy_process_group()


@torch.no_grad()
def measured(
    model: torch.nn.Module, rows: reviews.Reviews, batch_size: int, device: torch.device
) -> tuple[float, int]:
    """Returns the accuracy over ``rows``, and how many were counted: each once.

    A DistributedSampler repeats rows until all ranks have equally many. Here a rank takes every
    world-th row and stops where they end, so that no row counts twice.
    """
    model.eval()
    own = range(dist.get_rank(), len(rows), dist.get_world_size())
    right = torch.zeros(2, device=device)
    for batch in DataLoader(torch.utils.data.Subset(rows, own), batch_size):
        batch = {key: value.to(device) for key, value in batch.items()}
        hits = model(**batch).logits.argmax(dim=-1) == batch["labels"]
        right += torch.tensor([hits.sum(), len(hits)], device=device)
    dist.all_reduce(right)
    return float(right[0] / right[1]), int(right[1])


if __name__ == "__main__":
    main()
