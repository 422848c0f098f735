"""The hooks around torch's private parts see every labelled message once, and let go again."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed.pipelining import schedules

from serried.action import ActionKind
from serried.runtime.job.settings import TrainSettings
from serried.runtime.recorder.tracer import SpanParts
from serried.runtime.training.schedule_runtime import Messages, time_messages
from tests.runtime.counted_tracer import CountedTracer
from tests.runtime.fake_ranks import as_rank


def test_sends_are_timed_when_posted_and_receives_when_waited_for() -> None:
    tracer = CountedTracer()
    with as_rank(0, TrainSettings(world_size=2, pp=2)), time_messages(tracer):
        tensor = torch.zeros(3)
        sends = [dist.P2POp(dist.isend, tensor, 1)]
        receives = [dist.P2POp(dist.irecv, tensor, 1)]
        sent = schedules._batch_p2p(
            Messages.labelled(sends, ActionKind.SEND_F, stage=0, microbatch=4)
        )
        received = schedules._batch_p2p(
            Messages.labelled(receives, ActionKind.RECV_B, stage=0, microbatch=3)
        )
        sent_span = SpanParts(ActionKind.SEND_F, 0, 1, 0, 4, 1)
        assert tracer.kept == [sent_span]
        schedules._wait_batch_p2p(received)
        schedules._wait_batch_p2p(sent)
    assert tracer.kept == [sent_span, SpanParts(ActionKind.RECV_B, 3, 4, 0, 3, 1)]


def test_messages_without_a_label_or_without_a_peer_are_not_recorded() -> None:
    tracer = CountedTracer()
    with as_rank(0, TrainSettings(world_size=2, pp=2)), time_messages(tracer):
        works = schedules._batch_p2p([dist.P2POp(dist.irecv, torch.zeros(1), 1)])
        schedules._wait_batch_p2p(works)
        nothing = Messages.labelled([], ActionKind.SEND_B, stage=0, microbatch=0)
        assert schedules._batch_p2p(nothing) == []
    assert tracer.kept == []


def test_torch_s_own_functions_are_back_after_the_run() -> None:
    before = (schedules._batch_p2p, schedules._wait_batch_p2p)
    with pytest.raises(ZeroDivisionError), time_messages(CountedTracer()):
        assert schedules._batch_p2p is not before[0]
        raise ZeroDivisionError
    assert (schedules._batch_p2p, schedules._wait_batch_p2p) == before
