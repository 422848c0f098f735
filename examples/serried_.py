"""serried's own groups: the Layout that was planned and drawn is the one that trains.

    serried groups --world-size 2 --framework fsdp --set sharding_strategy=HYBRID_SHARD \
        --set dp_shard=2                            # look at the groups first
    torchrun --nproc-per-node 2 examples/serried_.py --shard 2
    torchrun --nproc-per-node 4 examples/serried_.py --shard 2     # two copies of two shards

``serried train`` brings its own model, a GPT that predicts bytes; it classifies nothing. So this
takes one layer less of serried: ``runtime.init`` makes every group of a Layout, and torch's
``fully_shard`` shards along one of its axes and copies along the other (HSDP).
"""

from __future__ import annotations

import os

import reviews
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler, Subset

import serried  # serried, line 1 of 2
from serried import frameworks
from serried.frameworks import Sizes
from serried.runtime import init


def main() -> None:
    """Makes the groups of a Layout, trains on its mesh, and saves the gathered weights."""
    parser = reviews.options(__doc__)
    parser.add_argument("--shard", type=int, default=2, help="ranks that share one copy")
    args = parser.parse_args()
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    dist.init_process_group("nccl" if kind == "cuda" else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device(kind, int(os.environ["LOCAL_RANK"])) if kind == "cuda" else kind

    strategy = {"sharding_strategy": "HYBRID_SHARD", "dp_shard": str(args.shard)}
    layout = frameworks.layout("fsdp", Sizes(world, options=strategy))
    live = init(layout, timeout_s=120, device=kind)  # the time-out holds for every group
    if rank == 0:
        for name in live.kinds:
            print(*(each.name for each in live.groups(name)), sep=", ")

    training, validation = (reviews.Reviews(args, is_validation=each) for each in (False, True))
    # Copies and shards both see rows of their own: the data is cut over all ranks of the mesh.
    sampler = DistributedSampler(training, world, rank, seed=args.seed)
    loader = DataLoader(training, args.batch, sampler=sampler)

    mesh = live.meshes["dense"]["dp_replicate", "dp_shard"]
    model = reviews.bert(args).to(device)
    for layer in model.get_submodule(f"{model.base_model_prefix}.encoder.layer"):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    torch.manual_seed(args.seed + rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    accuracy = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for batch in serried.record(loader, layout=layout):  # serried, line 2 of 2
            with serried.span("to device"):
                batch = {key: value.to(device) for key, value in batch.items()}
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        accuracy = measured(model, validation, args.batch, device)
        if rank == 0:
            print(f"epoch {epoch}: accuracy {accuracy:.3f} over {len(validation)} rows")

    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=whole)
    if rank == 0:
        reviews.bert(args).save_pretrained(args.out, state_dict=weights)
        reviews.save_config(args, world_size=world, sizes=dict(layout.sizes), accuracy=accuracy)
    live.close()
    dist.destroy_process_group()


@torch.no_grad()
def measured(
    model: nn.Module, rows: reviews.Reviews, batch_size: int, device: torch.device | str
) -> float:
    """Returns the accuracy over ``rows``, each of which counts once, as ``fsdp2.py`` does."""
    model.eval()
    rank, world = dist.get_rank(), dist.get_world_size()
    own = range(rank, len(rows), world)
    sampler = DistributedSampler(rows, world, rank, shuffle=False)
    right, seen = torch.zeros(2, device=device), 0
    for batch in DataLoader(Subset(rows, list(sampler)), batch_size):
        batch = {key: value.to(device) for key, value in batch.items()}
        hits = model(**batch).logits.argmax(dim=-1) == batch["labels"]
        hits = hits[: max(0, len(own) - seen)]
        right += torch.tensor([hits.sum(), len(hits)], device=device)
        seen += len(batch["labels"])
    dist.all_reduce(right)
    return float(right[0] / right[1])


if __name__ == "__main__":
    main()
