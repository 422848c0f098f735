"""The same on data parallel ranks: each reads its share of every batch."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from serried import runtime

LENGTH, BATCH, STEPS = 32, 16, 6
TEXT = torch.tensor(list(Path(__file__).parent.with_name("README.md").read_bytes()))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        parts = (each(x).unflatten(-1, (self.heads, -1)) for each in (self.q, self.k, self.v))
        q, k, v = (part.transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention_norm, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.down(functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, layers: int = 4, width: int = 64, heads: int = 8) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, width)
        self.places = nn.Parameter(torch.randn(LENGTH, width) / 10)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 256, bias=False)

    def forward(self, text: Tensor) -> Tensor:
        x = self.embed(text) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def loss_of(scores: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


def batch(numbers: Sequence[int]) -> tuple[Tensor, Tensor]:
    places = [number * LENGTH % (len(TEXT) - LENGTH - 1) for number in numbers]
    rows = torch.stack([TEXT[place : place + LENGTH + 1] for place in places])
    return rows[:, :-1], rows[:, 1:]


def main() -> list[float]:
    groups = runtime.join()
    torch.manual_seed(0)
    training = runtime.ModelTraining(
        Model(),
        groups,
        loss=loss_of,
        batch=batch,
        global_batch_size=BATCH,
        optimizer=lambda weights: torch.optim.AdamW(weights, lr=3e-3),
        clip=1.0,
    )
    losses = []
    for done in training.run(STEPS):
        losses.append(done.loss)
        if groups.rank == 0:
            print(f"step {done.step}  loss {losses[-1]:.4f}")
    return losses


if __name__ == "__main__":
    runtime.start(main, ranks=2)
