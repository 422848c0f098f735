"""A rank whose peers are gone says in which exchange, and accuses nobody it does not know of."""

from __future__ import annotations

from datetime import timedelta

import pytest
import torch
import torch.distributed as dist

from serried.action import ActionKind
from serried.runtime.groups.lost_peers import exchange_lost
from serried.runtime.training.schedule_runtime import Messages
from tests.runtime.rank_jobs import on_ranks

TIMEOUT_S = 2.0
IN_PAIR = "all_reduce of group dp [0 2]"


def told_by_rank_0(how: str) -> str:
    return str(on_ranks(3, Exchange(how))[0])


def all_reduce(tensor: torch.Tensor, group: dist.ProcessGroup) -> None:
    """Fails as gloo does where a peer has gone, which would end this job too."""
    raise RuntimeError("[/w/gloo/transport/tcp/pair.cc:553] Connection closed by peer [::1]:7. …")


class Exchange:
    """Lets rank 0 exchange with rank 2, which does not take part."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __call__(self, rank: int) -> str:
        group = dist.new_group([0, 2], timeout=timedelta(seconds=TIMEOUT_S))
        if rank != 1:
            dist.all_reduce(torch.ones(1), group=group)  # they are connected
        told = self.exchange(group) if rank == 0 else ""
        dist.barrier()
        return told

    def exchange(self, group: dist.ProcessGroup) -> str:
        try:
            if self.how == "message":
                operation = dist.P2POp(dist.irecv, torch.ones(1), 2, group)
                label = Messages.labelled(
                    [operation], ActionKind.RECV_F, stage=1, microbatch=3
                ).label
                with label.named():
                    dist.recv(torch.ones(1), 2, group)
            reduce = all_reduce if self.how == "gone" else dist.all_reduce
            reduce(torch.ones(1), group=group)
        except RuntimeError as error:
            return str(exchange_lost(error, {"pp": group_of_all(), "dp": group}, TIMEOUT_S))
        return "nothing"


def group_of_all() -> dist.ProcessGroup:
    assert dist.group.WORLD is not None
    return dist.group.WORLD


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("late", f"it waited 2 s for other ranks in {IN_PAIR}"),
        ("gone", f"it lost the connection to another rank in {IN_PAIR}"),
        ("message", "it waited 2 s for rank 2 in message 1RECV_F3"),
    ],
)
def test_what_was_exchanged_with_whom_is_told_as_far_as_it_is_known(
    how: str, sentence: str
) -> None:
    assert told_by_rank_0(how) == sentence


def test_an_error_of_a_model_is_not_one_of_an_exchange() -> None:
    try:
        torch.ones(2) @ torch.ones(3)
    except RuntimeError as error:
        assert exchange_lost(error, {}, 1.0) is None


def test_another_error_of_gloo_is_told_in_its_first_words() -> None:
    words = "[/__w/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 16 vs 8"
    told = exchange_lost(RuntimeError(words), {}, 1.0)
    assert str(told) == "an exchange failed: op.preamble.length <= op.nbytes"
