"""The hooks around torch's private parts see every labelled message once, and let go again."""

from __future__ import annotations

import importlib.util
from itertools import count

import pytest
import torch
import torch.distributed as dist
from torch.distributed.pipelining import schedules

from serried.action import ActionKind
from serried.errors import EnvironmentProblem
from serried.runtime.groups import torch_private
from serried.runtime.groups.torch_private import Messages, time_messages
from serried.runtime.job.settings import TrainSettings
from tests.runtime.fake_ranks import as_rank

Record = tuple[ActionKind, int, int, int, int, int]


def test_sends_are_timed_when_posted_and_receives_when_waited_for() -> None:
    told: list[Record] = []
    clock = count()
    with (
        as_rank(0, TrainSettings(world_size=2, pp=2)),
        time_messages(lambda: next(clock), lambda *values: told.append(values)),
    ):
        tensor = torch.zeros(3)
        sends = [dist.P2POp(dist.isend, tensor, 1)]
        receives = [dist.P2POp(dist.irecv, tensor, 1)]
        sent = schedules._batch_p2p(
            Messages.labelled(sends, ActionKind.SEND_F, stage=0, microbatch=4)
        )
        received = schedules._batch_p2p(
            Messages.labelled(receives, ActionKind.RECV_B, stage=0, microbatch=3)
        )
        assert told == [(ActionKind.SEND_F, 0, 1, 0, 4, 1)]
        schedules._wait_batch_p2p(received)
        schedules._wait_batch_p2p(sent)
    assert told == [(ActionKind.SEND_F, 0, 1, 0, 4, 1), (ActionKind.RECV_B, 3, 4, 0, 3, 1)]


def test_messages_without_a_label_or_without_a_peer_are_not_recorded() -> None:
    told: list[Record] = []
    with (
        as_rank(0, TrainSettings(world_size=2, pp=2)),
        time_messages(lambda: 0, lambda *values: told.append(values)),
    ):
        works = schedules._batch_p2p([dist.P2POp(dist.irecv, torch.zeros(1), 1)])
        schedules._wait_batch_p2p(works)
        nothing = Messages.labelled([], ActionKind.SEND_B, stage=0, microbatch=0)
        assert schedules._batch_p2p(nothing) == []
    assert told == []


def test_torch_s_own_functions_are_back_after_the_run() -> None:
    before = (schedules._batch_p2p, schedules._wait_batch_p2p)
    with pytest.raises(ZeroDivisionError), time_messages(lambda: 0, lambda *values: None):
        assert schedules._batch_p2p is not before[0]
        raise ZeroDivisionError
    assert (schedules._batch_p2p, schedules._wait_batch_p2p) == before


def test_a_torch_that_moved_these_parts_is_named_with_the_version_that_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(schedules, "_PipelineScheduleRuntime")
    assert torch_private.__file__
    spec = importlib.util.spec_from_file_location("again", torch_private.__file__)
    assert spec and spec.loader
    with pytest.raises(EnvironmentProblem) as raised:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert str(raised.value) == (
        f"torch {torch.__version__} moved parts that training needs; install the version serried "
        "was checked with: pip install 'torch==2.13.0'"
    )
