"""Experts shared out over real ranks answer and learn as all experts on all rows of one process."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

from serried.errors import InputError
from serried.runtime.model.experts import Experts, Routed, balance_loss
from tests.runtime.rank_group import run_ranks

WORLD_SIZE = 4
DIM, HIDDEN, ROWS = 6, 10, (2, 5)
GROUPS = {
    "ep1": [[0], [1], [2], [3]],
    "ep2": [[0, 1], [2, 3]],
    "ep2-apart": [[0, 2], [1, 3]],
    "ep4": [[0, 1, 2, 3]],
}
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}


@dataclass(frozen=True)
class Case:
    """One layer of experts, shared out over the groups of a name."""

    groups: str
    top_k: int = 2
    dtype: str = "float64"
    favoured: bool = False
    """Whether all rows go to experts 0 and 1, so that other ranks' experts get none."""
    balance: float = 0.0

    def __str__(self) -> str:
        words = [self.groups, f"k{self.top_k}", self.dtype]
        return "-".join([*words, *["favoured"] * self.favoured, *["balance"] * (self.balance > 0)])


CASES = [
    *(Case(groups, top_k, dtype) for groups in GROUPS for top_k in (1, 3) for dtype in TOLERANCE),
    *(Case(groups, favoured=True) for groups in GROUPS),
    *(Case(groups, balance=0.5) for groups in GROUPS),
]
NUM_EXPERTS = 8


def weight(name: str, shape: torch.Size, case: Case) -> Tensor:
    """Returns a weight drawn from its name in the whole layer."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    drawn = torch.randn(shape, generator=generator, dtype=torch.float64) / 2
    if case.favoured and name == "router.weight":
        drawn[:2] = 5 + drawn[:2].abs()
        drawn[2:] = -drawn[2:].abs()
    return drawn.to(getattr(torch, case.dtype))


def given(rank: int, case: Case) -> tuple[Tensor, Tensor]:
    """Returns a rank's rows, and the gradient of its output."""
    generator = torch.Generator().manual_seed(rank)
    x, gradient = torch.randn(2, *ROWS, DIM, generator=generator, dtype=torch.float64)
    dtype = getattr(torch, case.dtype)
    return (x.abs() if case.favoured else x).to(dtype), gradient.to(dtype)


def answers() -> Iterator[tuple[str, Any]]:
    """Is what each rank does: every case on its own rows."""
    rank = dist.get_rank()
    groups = {}
    for name, members in GROUPS.items():
        made = [dist.new_group(each) for each in members]
        groups[name] = next(g for g, ranks in zip(made, members, strict=True) if rank in ranks)
    for case in CASES:
        yield str(case), answer(case, rank, groups[case.groups])
    yield "refused", refused(groups["ep4"])


def answer(case: Case, rank: int, group: dist.ProcessGroup) -> dict[str, Any]:
    """Returns a rank's output, the gradients of its rows and of the weights that it holds."""
    layer = Experts(
        DIM,
        HIDDEN,
        NUM_EXPERTS,
        case.top_k,
        group,
        balance=case.balance,
        balance_over=dist.group.WORLD,
    ).to(getattr(torch, case.dtype))
    for name, parameter in layer.named_parameters():
        parameter.data.copy_(weight(name, parameter.shape, case))
    x, gradient = given(rank, case)
    x.requires_grad_()
    out = layer(x)
    out.backward(gradient)
    assert x.grad is not None
    return {
        "out": out.detach().numpy(),
        "x": x.grad.numpy(),
        "weights": {n: p.grad.numpy() for n, p in layer.named_parameters() if p.grad is not None},
        "apart": sum(parameter.numel() for parameter in layer.expert_parameters()),
    }


def refused(group: dist.ProcessGroup) -> str:
    """Returns the sentence for experts that four ranks cannot share."""
    try:
        Experts(DIM, HIDDEN, 6, 2, group)
    except InputError as error:
        return str(error)
    return "taken"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each rank answers."""
    return run_ranks(answers, WORLD_SIZE, tmp_path_factory.mktemp("experts"))


def dense(case: Case) -> dict[str, Any]:
    """Returns the same over all ranks' rows, every expert on every row, in float64."""
    double = Case(case.groups, case.top_k, case.dtype, case.favoured, case.balance)
    shapes = {"w1": (HIDDEN, DIM), "w2": (DIM, HIDDEN), "w3": (HIDDEN, DIM)}
    names = {"router.weight": (NUM_EXPERTS, DIM)} | {
        f"experts.{e}.{w}.weight": shape for e in range(NUM_EXPERTS) for w, shape in shapes.items()
    }
    weights = {
        name: weight(name, torch.Size(shape), double).double().requires_grad_()
        for name, shape in names.items()
    }
    rows = [given(rank, case) for rank in range(WORLD_SIZE)]
    x = torch.stack([x for x, _ in rows]).double().requires_grad_()
    probabilities = (x @ weights["router.weight"].T).softmax(dim=-1)
    least = probabilities.topk(case.top_k, dim=-1).values[..., -1:]
    kept = torch.where(probabilities >= least, probabilities, 0)
    shares = kept / kept.sum(dim=-1, keepdim=True)
    out = torch.zeros_like(x)
    for e in range(NUM_EXPERTS):
        w1, w2, w3 = (weights[f"experts.{e}.{w}.weight"] for w in ("w1", "w2", "w3"))
        out = out + shares[..., e : e + 1] * ((functional.silu(x @ w1.T) * (x @ w3.T)) @ w2.T)
    # Every rank's loss has its own term of balance, whose mean is that of all rows.
    used = (kept > 0).double().mean(dim=(0, 1, 2)) / case.top_k
    balance = NUM_EXPERTS * (used * probabilities.mean(dim=(0, 1, 2))).sum()
    gradient = torch.stack([gradient for _, gradient in rows]).double()
    loss = (out * gradient).sum() + case.balance * WORLD_SIZE * balance
    loss.backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    return {
        "out": out.detach().numpy(),
        "x": x.grad.numpy(),
        "weights": {name: p.grad.numpy() for name, p in weights.items() if p.grad is not None},
    }


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shared_out_experts_answer_and_learn_as_the_whole_layer_does(
    case: Case, ran: list[dict[str, Any]]
) -> None:
    whole, limit = dense(case), TOLERANCE[case.dtype]
    answers = [answer[str(case)] for answer in ran]
    for rank, answer in enumerate(answers):
        for what in ("out", "x"):
            np.testing.assert_allclose(answer[what], whole[what][rank], rtol=limit, atol=limit)
    for name, gradient in whole["weights"].items():
        # Over the ranks that hold a weight: all of them the router's, those of edp an expert's.
        held = [answer["weights"][name] for answer in answers if name in answer["weights"]]
        members = GROUPS[case.groups]
        assert len(held) == (WORLD_SIZE if name == "router.weight" else len(members))
        np.testing.assert_allclose(sum(held), gradient, rtol=limit, atol=limit, err_msg=name)


@pytest.mark.parametrize("groups", GROUPS)
def test_a_rank_holds_its_share_of_the_experts(groups: str, ran: list[dict[str, Any]]) -> None:
    case = Case(groups, favoured=True)
    share = NUM_EXPERTS // len(GROUPS[groups][0])
    for members in GROUPS[groups]:
        for place, rank in enumerate(members):
            answer = ran[rank][str(case)]
            assert answer["apart"] == share * 3 * DIM * HIDDEN
            assert {name.split(".")[1] for name in answer["weights"]} == {
                "weight",
                *(str(number) for number in range(place * share, (place + 1) * share)),
            }


def test_experts_without_rows_have_zeros_for_gradients(ran: list[dict[str, Any]]) -> None:
    idle = ran[3][str(Case("ep4", favoured=True))]["weights"]
    assert all(not idle[f"experts.{number}.w1.weight"].any() for number in (6, 7))


def test_one_process_needs_no_group_and_takes_no_rows() -> None:
    layer = Experts(DIM, HIDDEN, 4, 2)
    assert layer(torch.randn(3, 5, DIM)).shape == (3, 5, DIM)
    assert layer(torch.randn(0, 5, DIM)).shape == (0, 5, DIM)


def test_balance_is_one_where_experts_are_used_alike_and_their_number_where_one_is() -> None:
    even, chosen = torch.full((4, 4), 0.25), torch.arange(4)[:, None]
    assert balance_loss(Routed(even, chosen, torch.ones(4, 1)), None).item() == 1
    one = functional.one_hot(torch.zeros(4, dtype=torch.int64), 4).float()
    assert balance_loss(Routed(one, chosen * 0, torch.ones(4, 1)), None).item() == 4


def test_experts_that_ranks_cannot_share_are_refused(ran: list[dict[str, Any]]) -> None:
    assert {answer["refused"] for answer in ran} == {
        "ep=4 does not divide 6 experts; sizes that do: 1, 2, 3, 6"
    }


def test_more_choices_than_experts_are_refused() -> None:
    with pytest.raises(InputError) as refusal:
        Experts(DIM, HIDDEN, 4, 5)
    assert str(refusal.value) == "top_k=5 of 4 experts cannot be; take k up to 4"
