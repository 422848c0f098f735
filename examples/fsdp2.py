"""FSDP2: weights, gradients and optimizer state lie in shards, gathered layer by layer.

torchrun --nproc-per-node 2 examples/fsdp2.py
torchrun --nproc-per-node 2 examples/fsdp2.py --mixed-precision bf16
serried groups --framework fsdp --world-size 2
"""

from __future__ import annotations

import os

import reviews
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.data import DataLoader, DistributedSampler, Subset

import serried  # serried, line 1 of 2


def main() -> None:
    """Trains, measures after each epoch, gathers the weights and saves them on rank 0."""
    parser = reviews.options(__doc__)
    parser.add_argument("--mixed-precision", choices=("no", "bf16"), default="no")
    args = parser.parse_args()
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    dist.init_process_group("nccl" if kind == "cuda" else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device(kind, int(os.environ["LOCAL_RANK"])) if kind == "cuda" else kind
    mesh = init_device_mesh(kind, (world,), mesh_dim_names=("dp_shard",))

    training, validation = (reviews.Reviews(args, is_validation=each) for each in (False, True))
    sampler = DistributedSampler(training, world, rank, seed=args.seed)
    loader = DataLoader(training, args.batch, sampler=sampler)

    model = sharded(reviews.bert(args).to(device), mesh, args.mixed_precision)
    torch.manual_seed(args.seed + rank)
    # After sharding, for an optimizer keeps the parameters that it is given.
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    accuracy = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        for batch in serried.record(loader):  # serried, line 2 of 2
            loss = model(**{key: value.to(device) for key, value in batch.items()}).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # over all shards
            optimizer.step()
            optimizer.zero_grad()
        accuracy, count = measured(model, validation, args.batch, device)
        if rank == 0:
            print(f"epoch {epoch}: accuracy {accuracy:.3f} over {count} rows")

    # Every rank takes part in the gathering; rank 0 keeps the whole, in its main memory.
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=whole)
    if rank == 0:
        reviews.bert(args).save_pretrained(args.out, state_dict=weights)
        reviews.save_config(args, world_size=world, accuracy=accuracy)
    dist.destroy_process_group()


def sharded(model: nn.Module, mesh: DeviceMesh, precision: str) -> nn.Module:
    """Shards each layer and then the rest; gathers a layer at a time, in ``precision``."""
    policy = MixedPrecisionPolicy()
    if precision == "bf16":  # compute and messages in bf16; sums of gradients in fp32
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    layers = model.get_submodule(f"{model.base_model_prefix}.encoder.layer")
    for layer in layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


@torch.no_grad()
def measured(
    model: nn.Module, rows: reviews.Reviews, batch_size: int, device: torch.device | str
) -> tuple[float, int]:
    """Returns the accuracy over ``rows``, and how many were counted: each once.

    All ranks must call a sharded model equally often, so the sampler's padding stays; a rank's
    first ``len(own)`` rows are its own, those after them are repeats and do not count.
    """
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
    return float(right[0] / right[1]), int(right[1])


if __name__ == "__main__":
    main()
