"""Prints the accuracy of saved weights over the validation rows, in one process, row by row."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import torch


def main() -> None:
    """Reads what an example saved and measures it."""
    reviews: Any = importlib.import_module("reviews")  # of examples/, from where this is run
    args = reviews.options(__doc__).parse_args()
    rows = reviews.Reviews(args, is_validation=True)
    model = loaded(reviews, args).eval()
    right = 0
    with torch.no_grad():
        for row in rows:
            batch = {key: value[None] for key, value in row.items()}
            right += int(model(**batch).logits.argmax() == row["labels"])
    told = json.loads(Path(args.out / "run.json").read_text(encoding="utf-8"))
    print(json.dumps({"whole": right / len(rows), "told": told["accuracy"], "rows": len(rows)}))


def loaded(reviews: Any, args: Any) -> Any:
    """Returns the model of adapters, of a state, or of a whole saved model."""
    if (args.out / "adapter_config.json").exists():
        return importlib.import_module("peft").PeftModel.from_pretrained(
            reviews.bert(args), str(args.out)
        )
    weights = args.out / "pytorch_model.bin"
    if weights.exists():
        model = reviews.bert(args)
        model.load_state_dict(torch.load(weights, weights_only=True))
        return model
    return reviews.AutoModelForSequenceClassification.from_pretrained(args.out)


if __name__ == "__main__":
    main()
