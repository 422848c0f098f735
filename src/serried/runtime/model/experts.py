"""Experts: each row goes to its best few experts, wherever they are, and their answers come back.

    router      probabilities over all experts; the best k, their weights made to sum to 1
                (so with k = 1 the weight is 1, and only the balance loss teaches the router)
    dispatch    rows, sorted by expert ──all-to-all──> the ranks that hold those experts
    experts     each its own rows, SwiGLU
    combine     answers ──all-to-all──> home, mixed by their weights

    4 experts, ep 2      rank 0: experts 0 1         rank 1: experts 2 3
    rank 0's rows        a -> 0, 2    b -> 0, 1      sends a0 b0 b1 | a2      splits 3, 1
    rank 1's rows        c -> 2, 3    d -> 0, 3      sends d0 | c2 c3 d3      splits 1, 3

Nothing is dropped and no expert has a capacity, so the splits are uneven and change at every
step; ranks first tell each other how many rows come. A rank whose experts get nothing takes
part all the same, forward and backward.

The router is whole on every rank. Of the experts a rank holds ``experts / ep``, named by their
numbers in the whole model (``experts.5.w1.weight``), and shares them with the ranks of its edp
group, which stand at the same place of other ep groups. An expert's gradient here is the sum
over the rows of all ranks of its ep group: where other parameters are averaged over n ranks,
sum an expert's over edp and divide by that same n.

The exchange is ``exchange.all_to_all`` and not torch's functional collectives, whose names are
private and whose gloo threads may abort a process that ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from serried.errors import InputError, listed
from serried.frameworks.framework import divisors
from serried.runtime.model.exchange import MeshOrGroup, all_to_all, group_of


class Expert(nn.Module):
    """Computes SwiGLU: w2 (silu(w1 x) * w3 x)."""

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Takes and returns (rows, dim)."""
        out: Tensor = self.w2(functional.silu(self.w1(x)) * self.w3(x))
        return out


class Routed(NamedTuple):
    """Says where rows go: all experts' probabilities, the best k of them, and their weights."""

    probabilities: Tensor
    chosen: Tensor
    weights: Tensor


class Experts(nn.Module):
    """Computes a feed-forward layer of many experts, shared out over the ranks of an ep group.

    ``hidden`` is the width inside one expert. ``mesh_or_group`` None keeps all experts on this
    rank. ``balance`` above 0 adds that many times the load-balancing loss to whatever loss the
    output leads to; ``balance_over`` are the ranks whose rows it counts, None the ep group.

    Raises InputError when the ranks cannot share the experts evenly, or there are fewer than k.
    """

    def __init__(
        self,
        dim: int,
        hidden: int,
        experts: int,
        top_k: int,
        mesh_or_group: MeshOrGroup | None = None,
        *,
        balance: float = 0.0,
        balance_over: dist.ProcessGroup | None = None,
    ) -> None:
        super().__init__()
        self.group = None if mesh_or_group is None else group_of(mesh_or_group)
        self.ep = 1 if self.group is None else dist.get_world_size(self.group)
        _check(experts, top_k, self.ep)
        self.num_experts, self.top_k = experts, top_k
        self.balance, self.balance_over = balance, balance_over or self.group
        self.balance_scale = 1.0
        """What a loss is scaled by before backward begins, so that this one is scaled alike."""
        self.router = nn.Linear(dim, experts, bias=False)
        share = experts // self.ep
        first = 0 if self.group is None else dist.get_rank(self.group) * share
        self.local = range(first, first + share)
        self.experts = nn.ModuleDict({str(number): Expert(dim, hidden) for number in self.local})

    def forward(self, x: Tensor) -> Tensor:
        """Takes and returns (…, dim); all ranks of the ep group call it together."""
        rows = x.reshape(-1, x.shape[-1])
        routed = self.route(rows)
        # A row stands k times in a row's order of choices, then all are sorted by expert.
        order = routed.chosen.flatten().argsort(stable=True)
        answers = self._dispatched(rows[order // self.top_k], self._count(routed.chosen))
        at_home = answers[order.argsort()].view(len(rows), self.top_k, x.shape[-1])
        out = (at_home * routed.weights[..., None].to(x.dtype)).sum(dim=1)
        if self.balance:
            loss = balance_loss(routed, self.balance_over) * self.balance
            out = _Adding.apply(out, loss, self.balance_scale)  # type: ignore[no-untyped-call]
        return out.view(x.shape)

    def route(self, rows: Tensor) -> Routed:
        """Returns which experts each row goes to; in float32 at least."""
        scores = self.router(rows)
        exact = torch.promote_types(scores.dtype, torch.float32)
        probabilities = scores.to(exact).softmax(dim=-1)
        best, chosen = probabilities.topk(self.top_k, dim=-1)
        return Routed(probabilities, chosen, best / best.sum(dim=-1, keepdim=True))

    def expert_parameters(self) -> Iterator[nn.Parameter]:
        """Returns the parameters that other ranks of the ep group do not have."""
        return self.experts.parameters()

    def _count(self, chosen: Tensor) -> Tensor:
        """Returns how many rows of this rank go to each expert: (ranks of ep, experts of one)."""
        counts = torch.bincount(chosen.flatten(), minlength=self.num_experts)
        return counts.view(self.ep, -1)

    def _dispatched(self, rows: Tensor, leaving: Tensor) -> Tensor:
        """Sends rows, sorted by expert, to their experts; returns the answers in that order."""
        if self.group is None:
            return self._answers(rows, leaving)
        # Counts go first: a rank must know how many rows will come before it can make room for
        # them.
        arriving = torch.empty_like(leaving)
        dist.all_to_all_single(arriving, leaving, group=self.group)
        sends, receives = leaving.sum(dim=1).tolist(), arriving.sum(dim=1).tolist()
        there = all_to_all(rows, self.group, sends, receives)
        return all_to_all(self._answers(there, arriving), self.group, receives, sends)

    def _answers(self, rows: Tensor, counts: Tensor) -> Tensor:
        """Runs this rank's experts on rows that stand by rank and then expert, see ``counts``."""
        # Rows stand as (rank 0: expert 0, 1 …), (rank 1: expert 0, 1 …) and so on. Sorted by expert
        # they need one call of each.
        numbers = torch.arange(len(self.local), device=rows.device).repeat(len(counts))
        order = numbers.repeat_interleave(counts.flatten()).argsort(stable=True)
        parts = torch.split(rows[order], counts.sum(dim=0).tolist())
        answers = [expert(part) for expert, part in zip(self.experts.values(), parts, strict=True)]
        return torch.cat(answers)[order.argsort()]


def balance_loss(routed: Routed, group: dist.ProcessGroup | None) -> Tensor:
    """Returns how unevenly experts are used: 1 when all are used alike, up to their number.

        experts * sum over experts of  share of choices * mean probability

    Fedus et al.: Switch Transformer (arXiv 2101.03961, equations 4 to 6), with k choices a row.
    The shares, which have no gradient, are of all the group's rows, and the probabilities of
    this rank's: the mean of this over ranks with as many rows is the loss of all rows together,
    and so are its gradients. Microbatches count apart.
    """
    num_experts = routed.probabilities.shape[-1]
    counts = torch.bincount(routed.chosen.flatten(), minlength=num_experts)
    if group is not None:
        dist.all_reduce(counts, group=group)
    share = counts.to(routed.probabilities.dtype) / counts.sum()
    return num_experts * (share * routed.probabilities.mean(dim=0)).sum()


class _Adding(torch.autograd.Function):
    """Passes ``x`` through, and gives ``loss`` the gradient that the run's own loss starts with."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, loss: Tensor, scale: float) -> Tensor:
        ctx.start = loss.new_full((), scale)
        return x.view_as(x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return gradient, ctx.start, None


def _check(experts: int, top_k: int, ep: int) -> None:
    if experts % ep:
        raise InputError(
            "ep={ep} does not divide {experts} experts; sizes that do: {fits}",
            ep=ep,
            experts=experts,
            fits=listed(divisors(experts)),
        )
    if not 1 <= top_k <= experts:
        raise InputError(
            "top_k={k} of {experts} experts cannot be; take k up to {experts}",
            k=top_k,
            experts=experts,
        )
