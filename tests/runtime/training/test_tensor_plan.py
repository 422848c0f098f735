"""A plan of tensor parallelism cuts any model, and refuses what ranks cannot share."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from serried.errors import InputError
from serried.runtime.stages.cut import cut
from serried.runtime.training.buffers import local_of
from serried.runtime.training.tensor_plan import TensorPlan, cut_over_tp
from tests.runtime.rank_group import run_ranks
from tests.runtime.stages.models import Text, tokens

PLAN: TensorPlan = {
    "embed": "embedding",
    "layers.*.mix": "column",
    "layers.*.out": "row",
    "head": "scores",
}


class FakeMesh:
    """Stands for a mesh of so many ranks: what is refused is refused before any is asked."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks

    def size(self) -> int:
        return self.ranks


def refusal(plan: TensorPlan, *, tp: int = 2, **options: Any) -> str:
    mesh: Any = FakeMesh(tp)
    with pytest.raises(InputError) as caught:
        cut_over_tp(Text(2), mesh, plan, **options)
    return str(caught.value)


def test_a_pattern_that_matches_nothing_is_refused_with_names_like_it() -> None:
    said = refusal({"layers.*.mixer": "column"})
    assert said.startswith("layers.*.mixer matches no module of Text; names like it: layers.*.mix")


def test_a_style_that_is_not_known_is_refused_with_those_that_are() -> None:
    assert "styles are column, row, sequence, embedding, scores" in refusal({"head": "columns"})


def test_a_size_that_ranks_do_not_divide_is_refused_with_those_that_do() -> None:
    assert refusal({"layers.*.mix": "column"}, tp=3) == (
        "tp=3 does not divide out_features=16 of layers.0.mix; tp can be 1, 2, 4, 8, 16"
    )
    assert "in_features=16 of layers.0.out" in refusal({"layers.*.out": "row"}, tp=3)
    assert "num_embeddings=32 of embed" in refusal({"embed": "embedding"}, tp=5)


def test_heads_that_ranks_do_not_divide_are_refused() -> None:
    model = nn.ModuleDict({"attention": nn.Linear(12, 12)})
    model["attention"].heads = 4  # type: ignore[assignment]
    mesh: Any = FakeMesh(3)
    with pytest.raises(InputError) as caught:
        cut_over_tp(model, mesh, {"attention": "column"}, counts=["attention.heads"])
    assert str(caught.value) == ("tp=3 does not divide heads=4 of attention; tp can be 1, 2, 4")


def test_a_count_that_is_no_number_is_refused_with_those_that_are() -> None:
    assert refusal({}, counts=["layers.*.heads"]).startswith(
        "layers.0 has no number called heads to share out"
    )


def test_a_stage_takes_the_plan_of_the_whole_model() -> None:
    made = cut(Text(2), 2, tokens())
    mesh: Any = FakeMesh(1)
    for number in range(2):
        cut_over_tp(made.stage(number), mesh, PLAN)


def _computed(tie: bool) -> dict[str, Any]:
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    torch.manual_seed(0)
    whole = Text(2, tie=tie).eval()
    torch.manual_seed(0)
    apart = Text(2, tie=tie).eval()
    cut_over_tp(apart, mesh, PLAN)
    wanted, found = whole(tokens()), apart(tokens())
    torch.autograd.backward(wanted.square().mean())
    torch.autograd.backward(found.square().mean())
    gradients = [_whole(p.grad) for p in apart.parameters()]
    return {
        "output": torch.allclose(found, wanted, atol=1e-5),
        "gradients": all(
            torch.allclose(one, other.grad, rtol=1e-4, atol=1e-4)
            for one, other in zip(gradients, whole.parameters(), strict=True)
            if other.grad is not None
        ),
        "tied": apart.head.weight is apart.embed.weight,
        "rows": len(local_of(apart.embed.weight)),
    }


def _whole(gradient: Any) -> Tensor:
    found: Tensor = gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient
    return found


def _both() -> dict[str, Any]:
    return {"plain": _computed(False), "tied": _computed(True)}


def test_a_cut_model_computes_what_the_whole_one_does(tmp_path: Any) -> None:
    for each in run_ranks(_both, 2, tmp_path):
        assert each["plain"] == {"output": True, "gradients": True, "tied": False, "rows": 16}
        assert each["tied"] == {"output": True, "gradients": True, "tied": True, "rows": 16}
