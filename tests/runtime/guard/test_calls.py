"""Groups that a step and the guard's own thread meet at one moment are written down once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch.distributed as dist

from serried.diagnose.evidence.records.guard_file import GuardHeader, read_guard_file
from serried.runtime.guard.calls import TorchCalls
from serried.runtime.guard.operations import OperationLog
from serried.trace.model.record import RecordHeader, TracedJob


class Group:
    """Is a process group of one rank."""

    group_name, group_desc = "0", "default_pg"


def test_a_group_that_two_threads_meet_at_once_has_one_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = RecordHeader("run", 0, TracedJob("custom", 1, {}, "", "", 1), "host", "boot")
    log = OperationLog(tmp_path, GuardHeader(record, 1, 1, 0, 1))
    calls, group = TorchCalls(log), Group()
    other = threading.Thread(target=calls.meet, args=(group,))

    def ranks_of(_: Group) -> list[int]:
        if other.ident is None:  # the first of the two is here: now comes the second
            other.start()
            other.join(timeout=0.3)
        return [0]

    monkeypatch.setattr(dist, "get_process_group_ranks", ranks_of)
    monkeypatch.setattr(dist, "get_backend", lambda _: "gloo")
    calls.meet(group)
    other.join()

    assert [each.name for each in read_guard_file(log.path).groups] == ["0"]
    assert log.add_group(read_guard_file(log.path).groups[0]) == 2
