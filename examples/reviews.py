"""The job that all five examples do: tell good reviews from bad ones, with a small BERT.

Nothing in this file knows of ranks; each example holds what its way of training needs.

    reviews.csv   text,label     100 Chinese and 100 English rows of our own, label 1 is good
    --csv PATH    your own file: label, and review or text, in either order, quoted as in RFC 4180
    --model DIR   a BERT and its tokenizer on your disk; without it, a tiny one over bytes
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
)
from transformers.utils import logging

logging.disable_progress_bar()

HERE = Path(__file__).parent
LONGEST = 96
PAD, CLS, SEP, FIRST_BYTE = 0, 1, 2, 3


def options(about: str) -> argparse.ArgumentParser:
    """Returns a parser with what all examples take."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--csv", type=Path, default=HERE / "reviews.csv", help="label,review rows")
    parser.add_argument("--model", type=Path, help="folder of a BERT (default: a tiny one)")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8, help="rows of a rank and microbatch")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for what is saved")
    return parser


class Reviews(Dataset[dict[str, Tensor]]):
    """Holds every fifth row for validation, the others for training."""

    def __init__(self, args: argparse.Namespace, *, is_validation: bool) -> None:
        rows = rows_of(args.csv)
        self.rows = [row for i, row in enumerate(rows) if (i % 5 == 0) == is_validation]
        self._tokenizer = (
            AutoTokenizer.from_pretrained(args.model, local_files_only=True) if args.model else None
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        text, label = self.rows[index]
        ids = self._tokens(text)
        padding = LONGEST - len(ids)
        return {
            "input_ids": torch.tensor(ids + [PAD] * padding),
            "attention_mask": torch.tensor([1] * len(ids) + [0] * padding),
            "labels": torch.tensor(label),
        }

    def _tokens(self, text: str) -> list[int]:
        if self._tokenizer:
            return list(self._tokenizer(text, truncation=True, max_length=LONGEST).input_ids)
        return [CLS, *(FIRST_BYTE + byte for byte in text.encode()[: LONGEST - 2]), SEP]


def rows_of(path: Path) -> list[tuple[str, int]]:
    """Returns the texts of a CSV file with their labels; ends the program where it has none."""
    with path.open(
        encoding="utf-8-sig", newline=""
    ) as file:  # as Excel writes it, and as others do
        reader = csv.DictReader(file, strict=True)
        names = reader.fieldnames or []
        text = next((name for name in ("review", "text") if name in names), None)
        if text is None or "label" not in names:
            raise SystemExit(f"{path} has columns {', '.join(names)}; it needs label and review")
        return [(row[text], int(row["label"])) for row in reader]


def bert(args: argparse.Namespace) -> nn.Module:
    """Returns the classifier: from ``--model``, else tiny and random, drawn from the seed."""
    torch.manual_seed(args.seed)  # the same on every rank: copies must start equal
    if args.model:
        return AutoModelForSequenceClassification.from_pretrained(
            args.model, num_labels=2, local_files_only=True
        )
    sizes = {"hidden_size": 64, "intermediate_size": 128}
    counts = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_labels": 2}
    config = BertConfig(
        vocab_size=FIRST_BYTE + 256, max_position_embeddings=LONGEST, **sizes, **counts
    )
    return AutoModelForSequenceClassification.from_config(config)


def save_config(args: argparse.Namespace, **more: Any) -> None:
    """Writes what was asked, and what came of it, beside the weights; rank 0 calls it."""
    args.out.mkdir(parents=True, exist_ok=True)
    asked = {
        key: str(value) if isinstance(value, Path) else value for key, value in vars(args).items()
    }
    text = json.dumps({**asked, **more}, indent=2, ensure_ascii=False)
    (args.out / "run.json").write_text(text + "\n", encoding="utf-8")
