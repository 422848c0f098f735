"""Ends of single processes: the cause, beside what C++, a launcher or a bar prints around it."""

from __future__ import annotations

import pytest

from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.text.reader import text_signs


def causes(*rows: str) -> list[Cause]:
    lines = (log_line(row, "job.log", number) for number, row in enumerate(rows, 1))
    return [cause for _, cause in standing_causes(list(text_signs(lines)))]


KEEP_ALIVE = (
    "WARNING:dynamic_rendezvous:The node 'b_1_0' has failed to send a keep-alive heartbeat to the "
    "rendezvous 'x' due to an error of type Rendezvous{}Error."
)


@pytest.mark.parametrize("error", ["Timeout", "Connection"])
def test_a_launcher_that_misses_a_heartbeat_is_past_the_start(error: str) -> None:
    killed = "ERROR:api:failed (exitcode: -9) local_rank: 1 (pid: 30) of binary: python"
    first, _ = causes(KEEP_ALIVE.format(error), killed)
    assert (first.kind, first.ranks) == ("rank_killed", (1,))


@pytest.mark.parametrize(
    "address", ["[::ffff:10.0.0.2]:23456", "10.0.0.2:23456", "(10.0.0.2, 23456)"]
)
def test_a_store_that_cannot_be_reached_is_named_by_its_whole_address(address: str) -> None:
    [cause] = causes(
        f"[c10d] The client socket has failed to connect to {address} (errno: 110 - Connection "
        "timed out)."
    )
    values = cause.verdict.values
    assert (values["address"], values["port"]) == ("10.0.0.2", 23456)


def test_what_an_exception_of_native_code_says_stands_below_the_word_that_it_was_thrown() -> None:
    thrown = "terminate called after throwing an instance of 'c10::{}'"
    said = "  what():  CUDA error: unspecified launch failure"
    assert [cause.kind for cause in causes(thrown.format("Error"), said)] == ["cuda_error"]
    assert [cause.kind for cause in causes(thrown.format("CUDAError"), said)] == ["cuda_error"]
    far = [*(["step"] * 9), said]
    assert len(causes(thrown.format("Error"), *far)) == 2


def test_an_error_of_a_link_between_gpus_is_told_once() -> None:
    [cause] = causes("[rank3]: RuntimeError: CUDA error: uncorrectable NVLink error detected")
    assert (cause.kind, cause.ranks) == ("hw_nvlink", (3,))


def test_a_semaphore_without_room_is_a_matter_of_shared_memory_and_not_of_the_disk() -> None:
    full = "OSError: [Errno 28] No space left on device"
    begins, frame = "Traceback (most recent call last):", '  File "{}", line 9, in save'
    semaphore = frame.format("/usr/lib/python3.8/multiprocessing/synchronize.py")
    joblib = "UserWarning: [Errno 28] No space left on device.  joblib will operate in serial mode"
    assert causes(joblib, begins, semaphore, full)[0].kind == "shm"
    assert causes(begins, frame.format("a.py"), full)[0].kind == "disk_full"
    assert causes(begins, semaphore, full, begins, frame.format("a.py"), full)[0].kind == (
        "disk_full"
    )


def test_who_reads_a_librarys_exception_is_sent_to_the_jobs_own_code() -> None:
    own, library = "/work/train.py", "/env/lib/python3.11/site-packages/torch/nn/module.py"
    begins, error = "Traceback (most recent call last):", "AttributeError: no attribute 'module'"
    frames = [f'  File "{file}", line {line}, in step' for line, file in ((5, own), (7, library))]
    [cause] = causes(begins, *frames, error)
    assert [cure.values for cure in cause.cures] == [{"place": f"{own}:5"}]
    [cause] = causes(begins, frames[1], error)
    assert [cure.values for cure in cause.cures] == [{"place": f"{library}:7"}]
