"""Attention over shards on real ranks gives one process's output and gradients, in every form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch.distributed.device_mesh import DeviceMesh
from torch.nn import functional

from serried.errors import InputError
from serried.runtime.model import context
from serried.runtime.model.exchange import time_exchanges
from tests.runtime.counted_tracer import CountedTracer
from tests.runtime.rank_group import run_ranks

WORLD_SIZE = 4
BATCH, SEQ_LEN, HEAD_SIZE = 2, 16, 4
GROUPS = {
    "cp1": [[0], [1], [2], [3]],
    "cp2": [[0, 2], [1, 3]],
    "cp4": [[0, 1, 2, 3]],
}
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 5e-2}
HEADS = {"all": (4, 4), "grouped": (8, 4), "one": (4, 1)}
"""Query heads and KV heads."""

Arrays = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Case:
    """One attention, over the groups of a name."""

    form: str
    groups: str
    dtype: str
    heads: str

    def __str__(self) -> str:
        return f"{self.form}-{self.groups}-{self.dtype}-{self.heads}"

    @property
    def cp(self) -> int:
        return len(GROUPS[self.groups][0])

    def positions(self, rank: int) -> torch.Tensor:
        """Returns the places of ``rank``'s shard."""
        members = next(each for each in GROUPS[self.groups] if rank in each)
        return context.positions(self.form, SEQ_LEN, members.index(rank), self.cp)


CASES = [
    Case(form, groups, dtype, heads)
    for form in context.FORMS
    for groups in GROUPS
    for dtype in TOLERANCE
    for heads in HEADS
    if not (form == "ulysses" and heads == "one" and groups != "cp1")
]


def drawn(case: Case) -> dict[str, torch.Tensor]:
    """Returns q, k, v and the output's gradient over the whole sequence, of the case's type."""
    generator = torch.Generator().manual_seed(5)
    heads, kv_heads = HEADS[case.heads]
    # As a model has them: heads stand behind the sequence in memory.
    return {
        name: torch.randn(BATCH, SEQ_LEN, each, HEAD_SIZE, generator=generator, dtype=torch.float64)
        .to(getattr(torch, case.dtype))
        .transpose(1, 2)
        for name, each in (("q", heads), ("k", kv_heads), ("v", kv_heads), ("out", heads))
    }


def gradients(attend: context.Attention, given: dict[str, torch.Tensor]) -> Arrays:
    """Returns the output and the gradients of q, k and v."""
    q, k, v = (given[name].clone().requires_grad_() for name in "qkv")
    out = attend(q, k, v)
    assert out.dtype == q.dtype
    out.backward(given["out"])  # type: ignore[no-untyped-call]
    named = {"out": out.detach(), "q": q.grad, "k": k.grad, "v": v.grad}
    return {name: each.double().numpy() for name, each in named.items() if each is not None}


def answers() -> Iterator[tuple[str, Any]]:
    """Is what each rank does: every case on its own shard, then what a ring sends."""
    rank = dist.get_rank()
    meshes = {}
    for name, members in GROUPS.items():
        groups = [dist.new_group(each) for each in members]
        own = next(each for each, ranks in zip(groups, members, strict=True) if rank in ranks)
        meshes[name] = DeviceMesh.from_group(own, "cpu")
    for case in CASES:
        # Both ways to name a group are taken, in turn.
        where = meshes[case.groups] if case.heads == "all" else meshes[case.groups].get_group()
        places = case.positions(rank)
        shard = {name: each[:, :, places] for name, each in drawn(case).items()}
        yield str(case), gradients(context.attention(case.form, where), shard)
    yield "sent", {form: sent(form, meshes["cp4"]) for form in ("ring", "ring-two-pass")}
    yield "timed", {form: timed(form, meshes["cp4"]) for form in context.FORMS}
    yield "refused", refused(meshes["cp4"])


def sent(form: str, mesh: DeviceMesh) -> list[int]:
    """Returns how many numbers a rank hands on at each hop, forward and then backward."""
    hops: list[int] = []
    post = dist.batch_isend_irecv

    def counted(operations: list[dist.P2POp]) -> list[dist.Work]:
        hops.append(operations[0].tensor.numel())
        return post(operations)

    case = Case(form, "cp4", "float64", "grouped")
    places = case.positions(dist.get_rank())
    shard = {name: each[:, :, places] for name, each in drawn(case).items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dist, "batch_isend_irecv", counted)
        gradients(context.attention(form, mesh), shard)
    return hops


def timed(form: str, mesh: DeviceMesh) -> list[tuple[str, int]]:
    """Returns the kind and the peer of each exchange, forward and then backward."""
    tracer = CountedTracer()
    case = Case(form, "cp4", "float64", "all")
    places = case.positions(dist.get_rank())
    shard = {name: each[:, :, places] for name, each in drawn(case).items()}
    with time_exchanges(tracer):
        gradients(context.attention(form, mesh), shard)
    gradients(context.attention(form, mesh), shard)
    for span in tracer.kept:
        assert isinstance(span.start, int) and isinstance(span.end, int) and span.start < span.end
    return [(span.kind.name, span.peer) for span in tracer.kept]


def refused(mesh: DeviceMesh) -> str:
    """Returns the sentence for heads that ulysses cannot share out."""
    q, kv = torch.zeros(1, 6, 4, 2), torch.zeros(1, 2, 4, 2)
    try:
        context.attention("ulysses", mesh)(q, kv, kv)
    except InputError as error:
        return str(error)
    return "taken"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each rank answers."""
    return run_ranks(answers, WORLD_SIZE, tmp_path_factory.mktemp("context"))


def plain(case: Case) -> Arrays:
    """Returns what one process computes in float64 from the same numbers."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    return gradients(attend, {name: each.double() for name, each in drawn(case).items()})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shards_of_every_form_give_one_process_s_output_and_gradients(
    case: Case, ran: list[dict[str, Any]]
) -> None:
    whole = plain(case)
    for rank, answer in enumerate(ran):
        places = case.positions(rank).numpy()
        for name, found in answer[str(case)].items():
            np.testing.assert_allclose(
                found,
                whole[name][:, :, places],
                rtol=TOLERANCE[case.dtype],
                atol=TOLERANCE[case.dtype],
                err_msg=f"{name} of rank {rank}",
            )


def test_a_ring_sends_kv_heads_as_few_as_they_are(ran: list[dict[str, Any]]) -> None:
    one = BATCH * HEADS["grouped"][1] * SEQ_LEN // 4 * HEAD_SIZE
    for answer in ran:
        # K and V go 3 hops forward, 3 hops backward, and their gradients 4 hops home.
        assert answer["sent"]["ring"] == [2 * one] * (3 + 3 + 4)
        # The same numbers, K apart from V.
        assert answer["sent"]["ring-two-pass"] == [one] * 2 * (3 + 3 + 4)


def test_exchanges_are_timed_and_a_ring_names_whom_it_waits_for(
    ran: list[dict[str, Any]],
) -> None:
    for rank, answer in enumerate(ran):
        hop = ("RING", (rank - 1) % 4)
        assert answer["timed"] == {
            "ring": [hop] * (3 + 3 + 4),
            "ring-two-pass": [hop] * 2 * (3 + 3 + 4),
            "ulysses": [("ALL_TO_ALL", -1)] * 4,
            "all-gather": [("ALL_GATHER", -1), ("REDUCE_SCATTER", -1)],
        }


def test_ulysses_refuses_heads_that_it_cannot_share_out(ran: list[dict[str, Any]]) -> None:
    assert {answer["refused"] for answer in ran} == {
        "ulysses gives each of cp=4 ranks whole heads, and 4 does not divide 6 heads and 2 KV "
        "heads; sizes that do: 1, 2; other forms take any: ring, ring-two-pass, all-gather"
    }


@pytest.mark.parametrize("form", context.FORMS)
@pytest.mark.parametrize("cp", [1, 2, 4])
def test_the_ranks_hold_each_place_once(form: str, cp: int) -> None:
    held = torch.cat([context.positions(form, SEQ_LEN, rank, cp) for rank in range(cp)])
    assert sorted(held.tolist()) == list(range(SEQ_LEN))


def test_an_unknown_form_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InputError) as refusal:
        context.positions("spiral", 8, 0, 2)
    assert str(refusal.value) == (
        "there is no context parallel form 'spiral'; there are "
        "ring, ring-two-pass, ulysses, all-gather"
    )
