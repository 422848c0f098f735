"""Prints what one process finds in saved weights: their accuracy, and how far apart they lie.

saved_weights.py EXAMPLES OUT...      a line of JSON for each folder that an example wrote
{"alone": 0.56, "told": 0.56, "apart": [0.0, 1.4]}
              |           |             of each folder before: |a - b| / |a - as it began|
              |           what the example measured itself, on many ranks
              row by row, in one process
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector


@torch.no_grad()
def main() -> None:
    """Reads what examples saved and measures it."""
    examples, *folders = sys.argv[1:]
    sys.path.insert(0, examples)
    reviews: Any = importlib.import_module("reviews")
    args = reviews.options(__doc__).parse_args([])
    rows = reviews.Reviews(args, is_validation=True)
    began = flat(reviews.bert(args))
    before: list[Tensor] = []
    for folder in map(Path, folders):
        model = loaded(reviews, args, folder).eval()
        here = flat(model)
        apart = [float((here - each).norm() / (here - began).norm()) for each in before]
        told = json.loads((folder / "run.json").read_text(encoding="utf-8"))["accuracy"]
        line = {"alone": accuracy(model, rows), "told": told, "apart": apart}
        print(json.dumps(line))  # noqa: T201  it is what this is for
        before.append(here)


def flat(model: nn.Module) -> Tensor:
    """Returns all weights of a model as one row."""
    return parameters_to_vector(model.parameters())


def accuracy(model: nn.Module, rows: Any) -> float:
    """Returns the accuracy over ``rows``, each asked by itself."""
    right = 0
    for row in rows:
        batch = {key: value[None] for key, value in row.items()}
        right += int(model(**batch).logits.argmax() == row["labels"])
    return right / len(rows)


def loaded(reviews: Any, args: Any, folder: Path) -> Any:
    """Returns the model of adapters, of a state, or of a whole saved model."""
    if (folder / "adapter_config.json").exists():
        peft = importlib.import_module("peft")
        return peft.PeftModel.from_pretrained(reviews.bert(args), str(folder)).merge_and_unload()
    weights = folder / "pytorch_model.bin"
    if weights.exists():
        model = reviews.bert(args)
        model.load_state_dict(torch.load(weights, weights_only=True))
        return model
    return reviews.AutoModelForSequenceClassification.from_pretrained(folder)


if __name__ == "__main__":
    main()
