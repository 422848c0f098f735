r"""serried's own groups: the Layout that was planned and drawn is the one that trains.

    serried groups --framework fsdp --world-size 2 --set sharding_strategy=HYBRID_SHARD \
        --set dp_shard=2                                           # look at the groups first
    torchrun --nproc-per-node 2 examples/serried_.py --shard 2
    torchrun --nproc-per-node 4 examples/serried_.py --shard 2     # two copies of two shards

``serried train`` brings its own model, a GPT that predicts bytes; it classifies nothing. So this
takes one layer less of serried: ``runtime.init`` makes every group of a Layout, and the model of
``fsdp2.py`` is sharded along one of its axes and copied along the other (HSDP).
"""

from __future__ import annotations

import os

import reviews
import torch
import torch.distributed as dist
from fsdp2 import measured, sharded
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.utils.data import DataLoader, DistributedSampler

import serried  # serried, line 1 of 3
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
    model = sharded(reviews.bert(args).to(device), mesh, "no")
    torch.manual_seed(args.seed + rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    accuracy = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for batch in serried.record(loader, layout=layout):  # serried, line 2 of 3
            with serried.span("to device"):  # serried, line 3 of 3: a span of your own
                batch = {key: value.to(device) for key, value in batch.items()}
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        accuracy, count = measured(model, validation, args.batch, device)
        if rank == 0:
            print(f"epoch {epoch}: accuracy {accuracy:.3f} over {count} rows")

    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=whole)
    if rank == 0:
        reviews.bert(args).save_pretrained(args.out, state_dict=weights)
        reviews.save_config(args, world_size=world, sizes=dict(layout.sizes), accuracy=accuracy)
    live.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
