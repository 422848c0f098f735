"""What the systems below a job print: drivers, kernels, schedulers, health checks, RAS."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

XID = "[  9.{at}] NVRM: Xid (PCI:0000:{pci}:00): {code}, {text}"
SXID = "[  9.1] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): {code}, {fatal}, Link 28 RX Short"
BLOCK = "INFO 08-14 10:2{at}:02 No available shared memory broadcast block found in 60 seconds."
RAS = """\
  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         {gpus}       {gpus}

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4         8        32        32   RUNNING  INCOMPLETE

INCOMPLETE
  Missing communicator data from 1 job process
  Process 77 on node host-1 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  {missing}
"""


CausesOf = Callable[..., tuple[Cause, ...]]


@pytest.fixture
def causes_of(tmp_path: Path) -> CausesOf:
    def causes(*rows: str) -> tuple[Cause, ...]:
        (tmp_path / "said.txt").write_text("\n".join(rows) + "\n", "utf-8")
        return tuple(diagnosed(gather([tmp_path / "said.txt"])).causes)

    return causes


def test_an_xid_that_may_be_ignored_gives_way_to_the_jobs_own_failure(causes_of: CausesOf) -> None:
    remapped = XID.format(at=1, pci="3b", code=63, text="Row Remapper: New row marked")
    raised = "Traceback (most recent call last):", "ValueError: no such label"
    first, *others = causes_of(remapped, *raised)
    assert first.cause_class is CauseClass.EXCEPTION
    assert "Xid 63" in str(others[0].verdict)


def test_the_gpu_at_whose_end_a_link_failed_comes_before_those_that_saw_it(
    causes_of: CausesOf,
) -> None:
    seen = XID.format(at=1, pci="1a", code=145, text="RLW_REMAP Nonfatal XC1 i0 Link 03")
    down = XID.format(at=2, pci="3b", code=149, text="NETIR_LINK_DOWN Fatal XC0 i0 Link 14")
    assert str(causes_of(seen, down)[0].verdict).startswith("GPU 0000:3b:00 reports Xid 149")
    assert str(causes_of(seen)[0].verdict).startswith("GPU 0000:1a:00 reports Xid 145")


def test_an_error_of_a_switch_that_is_not_fatal_is_noticed_and_no_root(causes_of: CausesOf) -> None:
    harmless = SXID.format(code=20009, fatal="Non-fatal")
    fatal = SXID.format(code=20034, fatal="Fatal")
    assert causes_of(harmless)[0].confidence < 0.5
    assert "SXid 20034" in str(causes_of(harmless, fatal)[0].verdict)


@pytest.mark.parametrize(
    "missing", ["The missing rank: 21", "Rank 21 -- GPU 5 managed by process 77 on node host-1"]
)
def test_ras_names_a_rank_of_the_job_only_where_a_communicator_holds_it_whole(
    causes_of: CausesOf, missing: str
) -> None:
    whole = causes_of(RAS.format(gpus=32, missing=missing))[0]
    assert (whole.ranks, whole.collective and whole.collective.group) == (
        (21,),
        "comm cf264af53edbe986",
    )
    part = causes_of(RAS.format(gpus=64, missing=missing))[0]
    assert (part.cause_class, part.ranks) == (CauseClass.HANG, None)


def test_a_rank_that_no_communicator_can_hold_is_not_named(causes_of: CausesOf) -> None:
    garbage = "Rank 1057455228 -- [process information not found]"
    assert causes_of(RAS.format(gpus=32, missing=garbage))[0].ranks is None


def test_a_note_of_waiting_is_a_hang_unless_the_workers_come_to_their_next_step(
    causes_of: CausesOf,
) -> None:
    notes = [BLOCK.format(at=at) for at in range(4)]
    [cause] = causes_of(*notes)
    assert "(4 min)" in str(cause.verdict)
    assert causes_of(*notes, "INFO [monitor.py:34] torch.compile takes 58.11 s in total") == ()


def test_a_number_that_no_job_has_ranks_for_is_no_rank(causes_of: CausesOf) -> None:
    [cause, *_] = causes_of(
        "[host-1:31445] *** An error occurred in MPI_Send",
        "[host-1:31445] *** reported by process [139981018365953,21474836480]",
        "[host-1:31445] *** MPI_ERR_RANK: invalid rank",
    )
    assert cause.ranks is None


def test_a_launcher_whose_helper_was_killed_has_lost_no_node(causes_of: CausesOf) -> None:
    lost = (
        "ORTE has lost communication with a remote daemon.",
        "  Remote daemon: [[12377,0],1] on node worker-0",
    )
    assert causes_of(*lost)[0].cause_class is CauseClass.NODE_LOST
    killed = causes_of("command terminated with exit code 137", *lost)[0]
    assert killed.cause_class is CauseClass.HOST_OOM


@pytest.mark.parametrize(
    ("row", "cause_class"),
    [
        ("ERROR:  nhc:  Health check failed:  check_gpu_bw: P2P test failed", "hardware"),
        ("ERROR:  nhc:  Health check failed:  check_hw_ib:  No IB port", "network"),
        ("ERROR:  nhc:  Health check failed:  check_fs_mount:  /scratch not mounted", "storage"),
        ("controller.go:885] Node host-3 is unresponsive as of 2024-06-11", "node_lost"),
        ("gcs_server: Node 2eea4c is dead because the health check failed.", "node_lost"),
        ("Ready  Unknown  NodeStatusUnknown  Kubelet stopped posting node status.", "node_lost"),
        ("2711  DNl  nfs_start_io_read  1-20:14:31  python train.py", "storage"),
        (
            "FailedMount kubelet Unable to attach or mount volumes: unmounted volumes=[data]: "
            "timed out",
            "storage",
        ),
        (
            "UnexpectedAdmissionError kubelet Allocate failed due to requested number of devices",
            "startup",
        ),
        ("ray.exceptions.ObjectStoreFullError: Failed to put object ff", "host_oom"),
        ("Jan 31 11:03:08Z host-1 systemd-logind Power key pressed.", "external_stop"),
        ("error: *** STEP 5.0 ON n1 CANCELLED AT 2026-05-02 DUE TO TASK FAILURE ***", "exception"),
        ("gpu: Test CUDA failure common.cu:1030 'system not yet initialized'", "cuda_error"),
        (
            '{"time":"x","msg":"Handling event","event":{"message":"GPU has fallen off the bus"}}',
            "hardware",
        ),
        (
            "Error in launcher: num_nodes_waiting = rdzv_handler.num_nodes_waiting()",
            "node_lost",
        ),
        ("NVRM: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x62)", "hardware"),
        ("Detected clocks event due to thermal violation in GPU 2. Verify the fans", "hardware"),
        (
            "Warning Evicted 2m kubelet Pod ephemeral local storage usage exceeds 5Gi",
            "storage",
        ),
        ('Usage of EmptyDir volume "scratch" exceeds the limit "64Gi".', "storage"),
        ("salloc: Prolog failure on node host-6", "startup"),
        ("I 12-10 controller.py:118] Cluster is preempted (status: INIT).", "external_stop"),
        ("urllib.error.HTTPError: HTTP Error 503: Slow Down", "storage"),
        ("etcd.EtcdKeyNotFound: Key not found : /torch/elastic/store", "startup"),
        (
            "ValueError: rank 0 loaded, but there are other ranks that didn't finish loading",
            "hang",
        ),
    ],
)
def test_words_of_a_system_tell_their_class_and_accuse_nobody(
    causes_of: CausesOf, row: str, cause_class: str
) -> None:
    cause = causes_of(row)[0]
    assert cause.cause_class.value == cause_class
    assert not cause.ranks


LEFT = (
    "WARNING: The node 'worker-1_17_0' has failed to shutdown the rendezvous 'none' due to an "
    "error of type RendezvousConnectionError."
)


@pytest.mark.parametrize(
    ("before", "cause_class"),
    [
        (("[default] Rendezvous'ing worker group",), "startup"),
        (
            ("[default] Rendezvous'ing worker group", "[default] Rendezvous complete for workers."),
            "node_lost",
        ),
    ],
)
def test_a_launcher_that_leaves_tells_whether_its_workers_had_started(
    causes_of: CausesOf, before: tuple[str, ...], cause_class: str
) -> None:
    assert causes_of(*before, LEFT)[0].cause_class.value == cause_class


def test_a_rendezvous_that_is_gone_once_the_training_is_done_is_nothing(
    causes_of: CausesOf,
) -> None:
    assert not causes_of("Training complete", LEFT)


def test_ras_finds_ranks_of_a_communicator_in_different_states(causes_of: CausesOf) -> None:
    [cause] = causes_of(
        "#0-0 (9e17999afaa87dbb) MISMATCH",
        "  Communicator ranks have different status",
        "  30 ranks have status RUNNING",
        "  2 ranks have status FINALIZE",
        "  Rank 4 -- GPU 4 managed by process 507289 on node host-1",
    )
    assert cause.cause_class is CauseClass.HANG
    assert not cause.ranks
    assert cause.collective is not None
    assert cause.collective.group == "comm 9e17999afaa87dbb"
