r"""Accelerate: one script for one process or many; the launcher's file says how it runs.

    accelerate launch --config_file examples/accelerate.yaml examples/accelerate_.py
    accelerate launch --config_file examples/accelerate.yaml --mixed_precision no \
        examples/accelerate_.py                         # a flag of the launcher beats its file,
    accelerate launch --config_file examples/accelerate.yaml --mixed_precision no \
        examples/accelerate_.py --mixed-precision bf16  # and the constructor beats both

Adapters alone, trained and saved; a run that stops, and goes on from its newest whole state:

    accelerate launch --config_file examples/accelerate.yaml \
        examples/accelerate_.py --lora --out lora
    accelerate launch --config_file examples/accelerate.yaml \
        examples/accelerate_.py --out parted --save-every 3 --stop-after 4
    accelerate launch --config_file examples/accelerate.yaml \
        examples/accelerate_.py --out parted --resume

On CPU, Accelerate ignores an FSDP section of its file and runs DDP (seen with 1.15).
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import reviews
import states
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from json_tracker import JsonLines
from torch.utils.data import DataLoader

import serried  # serried, line 1 of 2


class Progress:
    """Is how far the training is; saved and loaded with the rest of its state."""

    def __init__(self) -> None:
        self.epoch = self.batches = self.step = 0

    def state_dict(self) -> dict[str, int]:
        return dict(vars(self))

    def load_state_dict(self, state: dict[str, int]) -> None:
        vars(self).update(state)


def main() -> Accelerator:
    """Trains with accumulation, tracks, saves states on the way and the weights at the end."""
    args = options()
    accelerator = Accelerator(
        cpu=not torch.cuda.is_available(),  # or every process believes itself alone
        mixed_precision=args.mixed_precision,  # None: the launcher's flag or file decides
        gradient_accumulation_steps=args.accumulate,
        log_with=["tensorboard", JsonLines(args.out)],
        project_dir=args.out,
        # The order of rows then depends on seed and epoch alone, also after a resume.
        dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True),
    )
    set_seed(args.seed)
    training, validation = (reviews.Reviews(args, is_validation=each) for each in (False, True))
    model = reviews.bert(args)
    if args.lora:
        from peft import LoraConfig, get_peft_model  # only --lora needs it

        lora = LoraConfig(task_type="SEQ_CLS", r=4, target_modules=["query", "value"])
        model = get_peft_model(model, lora)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    model, optimizer, loader, checking = accelerator.prepare(
        model,
        optimizer,
        # A generator of its own, or each pass would draw from the one that dropout uses.
        DataLoader(training, args.batch, shuffle=True, generator=torch.Generator()),
        DataLoader(validation, args.batch),
    )
    set_seed(args.seed, device_specific=True)  # dropout of each rank's own
    progress = Progress()
    accelerator.register_for_checkpointing(progress)
    asked = {key: str(value) for key, value in vars(args).items()}
    accelerator.init_trackers("reviews", config=asked)
    states.begin(accelerator, args.out, resume=args.resume)

    accuracy = 0.0
    while progress.epoch < args.epochs:
        model.train()
        # After a resume: this epoch's order again, from the first batch that was not seen.
        rest = accelerator.skip_first_batches(loader, progress.batches)
        rest.set_epoch(progress.epoch)  # of what is gone through, which begins at epoch 0
        for batch in serried.record(rest):  # serried, line 2 of 2
            with accelerator.accumulate(model):  # gradients meet at the last microbatch only
                loss = model(**batch).loss
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()  # both do nothing before the last microbatch
                optimizer.zero_grad()
            progress.batches += 1
            if accelerator.sync_gradients:
                progress.step += 1
                accelerator.log({"loss": loss.item()}, step=progress.step)
                if args.save_every and progress.step % args.save_every == 0:
                    states.save(accelerator, args.out, progress.step)
                if progress.step == args.stop_after:
                    return accelerator
        accuracy, count = measured(accelerator, model, checking)
        accelerator.print(f"epoch {progress.epoch}: accuracy {accuracy:.3f} over {count} rows")
        progress.epoch, progress.batches = progress.epoch + 1, 0
    save(accelerator, model, args.out)
    if accelerator.is_main_process:
        reviews.save_config(args, accuracy=accuracy, precision_used=accelerator.mixed_precision)
    return accelerator


@torch.no_grad()
def measured(
    accelerator: Accelerator, model: torch.nn.Module, checking: DataLoader[Any]
) -> tuple[float, int]:
    """Returns the accuracy, and over how many rows: ``gather_for_metrics`` leaves repeats out."""
    model.eval()
    right = count = 0
    for batch in checking:
        hits = model(**batch).logits.argmax(dim=-1) == batch["labels"]
        hits = accelerator.gather_for_metrics(hits)
        right, count = right + int(hits.sum()), count + len(hits)
    return right / count, count


def save(accelerator: Accelerator, model: torch.nn.Module, folder: Path) -> None:
    """Saves the whole model, or the adapters where they were trained; rank 0 writes."""
    weights = accelerator.get_state_dict(model)  # all ranks: it gathers shards, if there are any
    accelerator.unwrap_model(model).save_pretrained(
        folder, is_main_process=accelerator.is_main_process, state_dict=weights
    )


def options() -> Any:
    """Returns what was asked for."""
    parser = reviews.options(__doc__)
    parser.add_argument("--mixed-precision", choices=("no", "fp16", "bf16"))
    parser.add_argument("--accumulate", type=int, default=2, help="microbatches of a step")
    parser.add_argument("--lora", action="store_true")
    parser.add_argument("--save-every", type=int, default=0, metavar="STEPS")
    parser.add_argument("--stop-after", type=int, default=0, metavar="STEPS")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    accelerator = main()
    accelerator.free_memory()  # gloo may hang where DDP outlives its group,
    gc.collect()  # and with mixed precision the model holds itself
    accelerator.end_training()
