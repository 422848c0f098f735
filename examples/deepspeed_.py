r"""DeepSpeed: ZeRO 0 to 3 by its JSON file; the script is the same for all four.

    deepspeed --num_gpus 2 examples/deepspeed_.py --deepspeed_config examples/zero2.json
    torchrun --nproc-per-node 2 examples/deepspeed_.py --deepspeed_config examples/zero0.json
    serried groups examples/hostfile

    stage   0 whole copies      1 + optimizer sharded      2 + gradients      3 + weights

Two machines that see one disk, each of which begins its own two ranks; ``--node_rank 1`` there:

    deepspeed --hostfile examples/hostfile --no_ssh --node_rank 0 --master_addr worker-1 \
        examples/deepspeed_.py --deepspeed_config examples/zero1.json

The first run on CPU compiles a part of DeepSpeed for about a minute; it needs g++.
"""

from __future__ import annotations

import json
from pathlib import Path

import deepspeed
import reviews
import torch
import torch.distributed as dist
from deepspeed.accelerator import get_accelerator
from torch.utils.data import DataLoader, DistributedSampler, Subset
from transformers.integrations import HfDeepSpeedConfig

import serried  # serried, line 1 of 2


def main() -> None:
    """Trains as the JSON file says, measures, and saves whole weights from any stage."""
    parser = reviews.options(__doc__)
    parser.add_argument("--local_rank", type=int, default=0, help="given by the launcher")
    deepspeed.add_config_arguments(parser)
    args = parser.parse_args()
    if not args.deepspeed_config:
        parser.error("--deepspeed_config is needed, such as examples/zero1.json")
    config = json.loads(Path(args.deepspeed_config).read_text(encoding="utf-8"))
    stage = config["zero_optimization"]["stage"]
    config["train_micro_batch_size_per_gpu"] = args.batch
    deepspeed.init_distributed()
    rank, world = dist.get_rank(), dist.get_world_size()

    training, validation = (reviews.Reviews(args, is_validation=each) for each in (False, True))
    sampler = DistributedSampler(training, world, rank, seed=args.seed)
    # A step is made of whole microbatches; a last, shorter one would be weighted like the others.
    loader = DataLoader(training, args.batch, sampler=sampler, drop_last=True)

    # Stage 3: while this object lives, transformers makes models under deepspeed.zero.Init, which
    # cuts each weight into shards at once, so that no rank ever holds all of them.
    sharding = HfDeepSpeedConfig(config) if stage == 3 else None
    model = reviews.bert(args)
    del sharding
    if rank == 0:
        held = sum(getattr(each, "ds_tensor", each).numel() for each in model.parameters())
        whole = sum(getattr(each, "ds_numel", each.numel()) for each in model.parameters())
        print(f"rank 0 holds {held} of {whole} weights")
    torch.manual_seed(args.seed + rank)
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.AdamW(model.parameters(), lr=args.lr),
        config=config,
    )

    accuracy = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        engine.train()
        for batch in serried.record(loader):  # serried, line 2 of 2
            loss = engine(**{key: value.to(engine.device) for key, value in batch.items()}).loss
            engine.backward(loss)
            engine.step()  # steps at the end of gradient_accumulation_steps, then zeroes
        accuracy, count = measured(engine, validation, args.batch)
        if rank == 0:
            print(f"epoch {epoch}: accuracy {accuracy:.3f} over {count} rows")

    # All ranks call it: at stage 3 it gathers the shards, which
    # stage3_gather_16bit_weights_on_model_save in the JSON file allows.
    engine.save_16bit_model(str(args.out), "pytorch_model.bin")
    if rank == 0:
        model.config.save_pretrained(args.out)
        reviews.save_config(args, deepspeed=config, world_size=world, accuracy=accuracy)
    dist.barrier()
    dist.destroy_process_group()


@torch.no_grad()
def measured(
    engine: deepspeed.DeepSpeedEngine, rows: reviews.Reviews, batch_size: int
) -> tuple[float, int]:
    """Returns the accuracy over ``rows``, and how many were counted: each once.

    Under stage 3 all ranks must call the model equally often, so the sampler's padding stays;
    a rank's first ``len(own)`` rows are its own, those after them are repeats.
    """
    engine.eval()
    rank, world = dist.get_rank(), dist.get_world_size()
    own = range(rank, len(rows), world)
    sampler = DistributedSampler(rows, world, rank, shuffle=False)
    right, seen = torch.zeros(2, device=engine.device), 0
    for batch in DataLoader(Subset(rows, list(sampler)), batch_size):
        batch = {key: value.to(engine.device) for key, value in batch.items()}
        hits = engine(**batch).logits.argmax(dim=-1) == batch["labels"]
        hits = hits[: max(0, len(own) - seen)]
        right += torch.tensor([hits.sum(), len(hits)], device=engine.device)
        seen += len(batch["labels"])
    dist.all_reduce(right)
    get_accelerator().empty_cache()
    return float(right[0] / right[1]), int(right[1])


if __name__ == "__main__":
    main()
