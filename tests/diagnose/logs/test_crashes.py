"""Ends of single processes: the cause, beside what C++, a launcher or a bar prints around it."""

from __future__ import annotations

import pytest

from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.diagnosis import Cause, CauseClass
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
    own, library = "/srv/train.py", "/env/lib/python3.11/site-packages/torch/nn/module.py"
    begins, error = "Traceback (most recent call last):", "AttributeError: no attribute 'module'"
    frames = [f'  File "{file}", line {line}, in step' for line, file in ((5, own), (7, library))]
    [cause] = causes(begins, *frames, error)
    assert [cure.values for cure in cause.cures] == [{"place": f"{own}:5"}]
    [cause] = causes(begins, frames[1], error)
    assert [cure.values for cure in cause.cures] == [{"place": f"{library}:7"}]


@pytest.mark.parametrize(
    ("signal", "kind"),
    [("Signals.SIGINT", "interrupted"), ("Signals.SIGTERM", "sigterm"), ("1", "sighup_user")],
)
def test_a_signal_that_the_launcher_got_is_read_by_name_and_by_number(
    signal: str, kind: str
) -> None:
    [cause] = causes(f"W0128 api.py:741] Received {signal} death signal, shutting down workers")
    assert (cause.kind, cause.ranks) == (kind, ())


def test_a_traceback_cut_in_the_launchers_handler_of_signals_is_a_stop_from_outside() -> None:
    frame = '  File "torch/distributed/elastic/multiprocessing/api.py", line 76, in {}'
    begins = "Traceback (most recent call last):"
    [stop] = causes(begins, frame.format("_terminate_process_handler"))
    [other] = causes(begins, frame.format("start"))
    assert (stop.cause_class, other.cause_class) == (CauseClass.EXTERNAL_STOP, CauseClass.EXCEPTION)


def test_a_worker_of_early_torchrun_is_named_by_its_local_rank() -> None:
    [cause] = causes("Child process 314 (local_rank 2) FAILED (exitcode 1)")
    assert (cause.kind, cause.ranks) == ("exit_code", (2,))


def test_a_host_that_refuses_ssh_started_nothing() -> None:
    checked = "subprocess.CalledProcessError: Command 'ssh h hostname' returned non-zero exit {}"
    refused = "RuntimeError: Using hostfile at /h but host=host-1 was not reachable via ssh. If"
    [cause] = causes(checked.format("status 255."), refused)
    assert (cause.cause_class, cause.verdict.values["peer_host"]) == (
        CauseClass.STARTUP,
        "host-1",
    )


def test_a_store_on_the_ranks_own_host_is_no_matter_of_firewalls() -> None:
    row = (
        "[c10d] The client socket has timed out after 1800s while trying to connect to ({}, 48377)"
    )
    for address, is_own in (("127.0.0.1", True), ("10.0.0.1", False)):
        [cause] = causes(row.format(address))
        told = " ".join(map(str, (cause.verdict, *cause.cures)))
        assert ("nc -vz" not in told, "own host" in told) == (is_own, is_own)
        assert "1800 s" in told or "1,800 s" in told


def test_a_store_that_only_a_traceback_tells_of_is_one_of_the_start() -> None:
    begins, error = "Traceback (most recent call last):", "RuntimeError: Connection timed out"
    frame = '  File "{}", line 143, in _env_rendezvous_handler'
    [cause] = causes(begins, frame.format("/env/torch/distributed/rendezvous.py"), error)
    assert (cause.cause_class, cause.ranks) == (CauseClass.STARTUP, None)
    assert causes(begins, frame.format("/srv/train.py"), error)[0].cause_class != CauseClass.STARTUP


def test_what_nccl_says_below_its_error_is_not_missed() -> None:
    error = "DistBackendError: NCCL error in: NCCLUtils.cpp:77, invalid usage, NCCL version 2.26.2"
    twice = "Duplicate GPU detected : rank 2 and rank 0 both on CUDA device 4000"
    usage = "ncclInvalidUsage: This usually reflects invalid usage of NCCL library."
    assert [cause.kind for cause in causes(error, usage, "Last error:", twice)] == ["duplicate_gpu"]


def test_gpus_that_do_not_reach_one_another_ask_for_another_way() -> None:
    peers = "Cuda failure 217 'peer access is not supported between these two devices'"
    for row, is_asked in ((peers, True), ("Cuda failure 700 'illegal address'", False)):
        [cause] = causes(row)
        assert any("NCCL_P2P_DISABLE=1" in str(cure) for cure in cause.cures) is is_asked


def test_a_shortage_of_shared_memory_is_told_once_by_what_says_most() -> None:
    full = "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient"
    bus = "RuntimeError: DataLoader worker (pid 26) is killed by signal: Bus error."
    assert [cause.kind for cause in causes(f"{full} shared memory (shm).", bus)] == ["shm"]


def test_an_error_of_a_switch_is_told_in_words_and_not_by_its_registers() -> None:
    error = "nvidia-nvswitch2: SXid (PCI:0000:07:00.0): 12028, {}"
    data = error.format("Data {0x000001c0, 0x000e265f}")
    harmless = error.format("Non-fatal, Link 62 egress non-posted PRIV error (First)")
    xid = "NVRM: Xid (PCI:0000:4c:00): 94, Contained: SM (0x1). RST: No, D-RST: No"
    assert [cause.kind for cause in causes(data, harmless, xid)] == ["hw_xid", "hw_sxid"]
    assert causes(data)[0].kind == "hw_sxid"


def test_the_signal_that_a_launcher_passes_on_stopped_it_first() -> None:
    closing = "WARNING:elastic.multiprocessing.api:Sending process 44 closing signal {}"
    begins = "Traceback (most recent call last):"
    frame = '  File "/env/torch/distributed/launch.py", line 193, in <module>'
    [cause] = causes(closing.format("SIGHUP"), begins, frame)
    assert cause.cause_class == CauseClass.EXTERNAL_STOP
    [cause] = causes(closing.format("SIGTERM"))
    assert (cause.cause_class, cause.kind) == (CauseClass.EXCEPTION, "exit_code")
    assert causes(closing.format("SIGTERM"), "INFO: will restart worker group") == []


def test_a_summary_whose_first_failure_is_cut_off_accuses_nobody() -> None:
    rows = ("Other Failures:", "[1]:", "  rank: 1 (local_rank: 1)", "  exitcode: 1 (pid: 58)")
    [cause] = causes(*rows)
    assert (cause.kind, cause.ranks) == ("exit_code", None)


@pytest.mark.parametrize("condition", ["`i < n`", "i < n"])
def test_a_kernels_check_is_quoted_with_and_without_its_marks(condition: str) -> None:
    [cause] = causes(f"/aten/IndexKernel.cu:142: thread: [44,0,0] Assertion {condition} failed.")
    assert cause.verdict.values["condition"] == "i < n"


def test_a_scale_of_the_loss_that_shrinks_to_nothing_is_one_of_numbers() -> None:
    row = "Gradient overflow. Skipping step, loss scaler 0 reducing loss scale to {}"
    assert causes(row.format("131072.0")) == []
    for told in (row.format("8.16e-202"), "ValueError:Network outputs is NAN! Stop Training"):
        assert [cause.cause_class for cause in causes(told)] == [CauseClass.NUMERICS]
