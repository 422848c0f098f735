"""Messages that only lines tell: which a rank waits in, with whom, and where nothing says so."""

from __future__ import annotations

import pytest

from serried.diagnose.evidence.stacks.stack import Frame
from serried.diagnose.job_state.message_sites import MessageSites

TORCH = "site-packages/torch/distributed/distributed_c10d.py"
TRAIN = Frame("train", "train.py", 90)
AXES = {"tp": 2, "pp": 4}


def at(line: int, function: str, *callers: Frame) -> tuple[Frame, ...]:
    return (Frame(function, "train.py", line), *callers, TRAIN)


@pytest.mark.parametrize(
    ("text", "gave_up", "operation", "peer"),
    [
        ("dist.irecv(x, PREV).wait()", "recv", "recv", 0),
        ("dist.isend(y, next_rank).wait()", "send", "send", 4),
        ("dist.isend(y, to).wait()", "send", "send", None),
        ("dist.isend(y, next_rank).wait()", "recv", None, None),  # gloo and the line disagree
        (
            "work.wait()",
            "recv",
            None,
            None,
        ),  # as in an all-reduce that was begun before
        ("loss = step(next(batches))", None, None, None),
    ],
)
def test_a_wait_in_the_users_own_line_is_a_message_where_line_and_gloo_say_so(
    text: str, gave_up: str | None, operation: str | None, peer: int | None
) -> None:
    told = {2: gave_up} if gave_up else {}
    sites = MessageSites({2: at(40, "run")}, told, {("train.py", 40): text}, AXES)
    assert (sites.operation(2), sites.peer(2)) == (operation, peer)


def test_a_name_that_holds_both_messages_needs_gloos_word() -> None:
    stack = at(40, "send_forward_recv_backward")
    sites = MessageSites({2: stack}, {}, {}, AXES)
    assert sites.operation(2) is not None  # it waits, whichever it is
    assert sites.peer(2) is None
    sites = MessageSites({2: stack}, {2: "recv"}, {}, AXES)
    assert (sites.operation(2), sites.peer(2)) == ("recv", 4)


def test_a_helper_that_sends_both_ways_is_told_by_who_called_it() -> None:
    send = Frame("send", TORCH, 2753)
    forward, backward = Frame("step", "train.py", 60), Frame("step", "train.py", 70)
    stacks = {rank: (send, *at(12, "exchange", forward)) for rank in (0, 2)}
    stacks |= {rank: (send, *at(12, "exchange", backward)) for rank in (4, 6)}
    sites = MessageSites(stacks, {}, {}, AXES)
    assert [sites.peer(rank) for rank in stacks] == [2, 4, 2, 4]


def test_a_line_without_a_word_about_tags_alone_has_none() -> None:
    stacks = {0: at(40, "send_forward"), 2: at(41, "recv_forward"), 4: at(42, "recv_forward")}
    texts = {("train.py", 40): "dist.send(y, to)", ("train.py", 41): "dist.recv(x, prev, tag=mb)"}
    sites = MessageSites(stacks, {}, texts, AXES)
    assert [sites.may_have_tag(rank) for rank in stacks] == [False, True, True]
