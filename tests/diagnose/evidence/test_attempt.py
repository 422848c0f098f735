"""Of a job that was started anew the last start is diagnosed; of earlier ones a note tells."""

from __future__ import annotations

from pathlib import Path

from serried.diagnose.diagnosis import CauseClass, Diagnosis
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.views.sentences import say
from tests.diagnose.job_state.guarded_files import GuardedRanks

BAD_LABEL = """[rank1]: Traceback (most recent call last):
[rank1]:   File "/train.py", line 29, in main
[rank1]:     raise ValueError("bad label 50304")
[rank1]: ValueError: bad label 50304
"""
NO_KEY = """[rank2]: Traceback (most recent call last):
[rank2]:   File "/train.py", line 71, in main
[rank2]:     lengths = batch["lengths"]
[rank2]: KeyError: 'lengths'
"""
ENDED = (
    "E1127 21:26:19.537000 26233 torch/distributed/elastic/multiprocessing/api.py:1002] "
    "failed (exitcode: {}) local_rank: {} (pid: {})"
)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def restarted(folder: Path, first: str, last: str) -> Diagnosis:
    """Diagnoses what ranks 1 and 2 print in two starts, beside the console that holds it all."""
    logs = folder / "tlogs" / "none_ab"
    shown = []
    for attempt, rank, text in ((0, 1, first), (1, 2, last)):
        write(logs / f"attempt_{attempt}" / str(rank) / "stderr.log", text)
        write(logs / f"attempt_{attempt}" / str(rank) / "stdout.log", "")
        shown += [f"[default{rank}]:{line}" for line in text.splitlines()]
        shown.append(ENDED.format(1, rank, 26616 + attempt))
    write(folder / "console.log", "\n".join(shown) + "\n")
    return diagnosed(gather([folder]))


def test_what_ended_the_last_start_is_the_answer_and_the_first_a_note(tmp_path: Path) -> None:
    found = restarted(tmp_path, BAD_LABEL, NO_KEY)
    assert (found.causes[0].kind, found.causes[0].ranks) == ("exception", (2,))
    assert "KeyError: 'lengths'" in str(found.causes[0].verdict)
    [note] = found.notes
    told = "an earlier start of the job, now over: rank 1 raised ValueError: bad label 50304"
    assert str(note).startswith(told)
    assert say(note, "zh").startswith("作业的前一次启动（已经结束）：rank 1")


def test_a_start_that_goes_well_after_a_failed_one_is_no_fault(tmp_path: Path) -> None:
    found = restarted(tmp_path, BAD_LABEL, "")
    write(
        tmp_path / "console.log", "".join(f"[default1]:{line}\n" for line in BAD_LABEL.splitlines())
    )
    found = diagnosed(gather([tmp_path]))
    assert found.cause_class is CauseClass.NO_FAULT
    assert "ValueError: bad label 50304" in str(found.notes[0])


def test_the_end_before_the_last_restart_is_of_an_earlier_start(tmp_path: Path) -> None:
    """The killed rank said nothing, and the last start was ended from outside."""
    logs = tmp_path / "tlogs" / "none_ab"
    for attempt in (0, 1):
        write(logs / f"attempt_{attempt}" / "1" / "stderr.log", "")
    stop = "torch.distributed.elastic.agent.server.api.SignalException: Process 9 got signal: 15"
    write(tmp_path / "console.log", f"{ENDED.format(-9, 1, 701)}\n{stop}\n")
    found = diagnosed(gather([tmp_path]))
    assert [cause.cause_class for cause in found.causes] == [CauseClass.EXTERNAL_STOP]
    assert "killed" in str(found.notes[0])
    write(tmp_path / "console.log", ENDED.format(1, 0, 7) + f"\n{ENDED.format(-9, 1, 701)}\n")
    assert diagnosed(gather([tmp_path])).causes[0].kind == "rank_killed"


def test_each_earlier_start_has_a_note_of_its_own(tmp_path: Path) -> None:
    logs, shown = tmp_path / "tlogs" / "none_ab", list[str]()
    texts = [BAD_LABEL, "", NO_KEY, NO_KEY.replace("lengths", "labels")]
    for attempt, text in enumerate(texts):
        write(logs / f"attempt_{attempt}" / "2" / "stderr.log", text)
        shown += [*text.splitlines(), ENDED.format(1 if text else -9, 2, 700 + attempt)]
    write(tmp_path / "console.log", "\n".join(shown) + "\n")
    found = diagnosed(gather([tmp_path]))
    assert "KeyError: 'labels'" in str(found.causes[0].verdict)
    told = [str(note) for note in found.notes]
    assert [("bad label" in t, "killed" in t, "'lengths'" in t) for t in told] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


def test_a_failure_that_both_starts_end_in_is_the_answer(tmp_path: Path) -> None:
    found = restarted(tmp_path, NO_KEY, NO_KEY)
    assert (found.causes[0].kind, found.causes[0].ranks) == ("exception", (2,))


def test_a_killed_process_of_an_earlier_start_is_known_by_its_guard(tmp_path: Path) -> None:
    """The launcher's log says neither which start it speaks of nor where the next one begins."""
    earlier = GuardedRanks(tmp_path / "guard")
    earlier.collective([0, 1, 2, 3], 0)
    last = GuardedRanks(tmp_path / "guard" / "restart-1", attempt=1)
    last.collective([0, 1, 2], 0, ends=False)
    write(tmp_path / "console.log", ENDED.format(-9, 1, 701) + "\n")
    found = diagnosed(gather([tmp_path]))
    assert [(cause.kind, cause.ranks) for cause in found.causes] == [("never_arrived", (3,))]
    assert "killed rank 1" in str(found.notes[-1])


def test_a_killed_process_of_the_last_start_has_the_rank_of_its_guard(tmp_path: Path) -> None:
    job = GuardedRanks(tmp_path / "guard" / "restart-1", attempt=1)
    job.collective([0, 1, 2], 0, ends=False)
    job.collective([3], 0)
    write(tmp_path / "console.log", ENDED.format(-9, 0, 713) + "\n")
    found = diagnosed(gather([tmp_path]))
    [killed] = [cause for cause in found.causes if cause.kind == "rank_killed"]
    assert killed.ranks == (3,)


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for host in ("node0", "node1"):
        write(tmp_path / host / "run" / "out.log", NO_KEY.replace("rank2", f"rank{host[-1]}"))
    quotes = diagnosed(gather([tmp_path])).causes[0].quotes
    assert {quote.source for quote in quotes} == {"node0/run/out.log", "node1/run/out.log"}


def test_ranks_that_were_gone_in_an_earlier_start_are_told_by_its_guards(tmp_path: Path) -> None:
    """The job went on with half of its ranks: those of a node that was lost print nothing."""
    earlier = GuardedRanks(tmp_path / "guard")
    earlier.collective([0, 1], 0, ends=False)
    last = GuardedRanks(tmp_path / "guard" / "restart-1", attempt=1)
    last.collective([0, 1, 2], 0, ends=False)
    found = diagnosed(gather([tmp_path]))
    assert (found.causes[0].kind, found.causes[0].ranks) == ("never_arrived", (3,))
    told = "an earlier start of the job, now over: ranks 2, 3 never joined all_reduce 1 of world"
    assert str(found.notes[-1]).startswith(told)


def test_a_launcher_that_is_stopped_after_a_rank_failed_is_not_why_it_failed(
    tmp_path: Path,
) -> None:
    stopped = "W1127 22:12:43.451000 764 torch/api.py:753] Received 15 death signal, shutting down"
    write(tmp_path / "a.log", f"{NO_KEY}{ENDED.format(1, 2, 77)}\n{stopped} workers\n")
    found = diagnosed(gather([tmp_path]))
    assert (found.causes[0].kind, found.causes[0].ranks) == ("exception", (2,))
    assert not any("no rank failed" in str(cause.verdict) for cause in found.causes)


RESTARTED = (
    "[rank7]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
    "W0304 api.py:900] [default] Worker group FAILED. 3/3 attempts left; will restart worker group"
    "\n{later}\n"
)


def test_what_one_log_tells_of_the_last_start_comes_first(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(RESTARTED.format(later="[rank3]: KeyError: 'x'"))
    found = diagnosed(gather([tmp_path]))
    assert found.causes[0].ranks == (3,)
    assert any("an earlier start" in str(note) and "rank 7" in str(note) for note in found.notes)


def test_of_a_log_that_ends_with_a_new_start_the_end_before_is_told(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(RESTARTED.format(later="step 1"))
    assert diagnosed(gather([tmp_path])).causes[0].ranks == (7,)


AGAIN = (
    "I1128 12:40:00.3 900 torch/distributed/elastic/agent/server/api.py:968] [default] Worker "
    "group FAILED. 2/3 attempts left; will restart worker group"
)
CLOSED = "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:5272"


def test_of_a_job_that_was_resized_what_killed_a_rank_of_the_start_before_is_a_note(
    tmp_path: Path,
) -> None:
    lost = "[rank{}]: " + CLOSED + "\n"
    for rank in range(4):
        line = "step 5\n" if rank == 3 else lost.format(rank)
        write(tmp_path / "none_ab" / "attempt_0" / str(rank) / "stderr.log", line)
    for rank in range(3):
        write(tmp_path / "none_ab" / "attempt_1" / str(rank) / "stderr.log", lost.format(rank))
    write(tmp_path / "console.log", "\n".join([ENDED.format(-9, 3, 934), AGAIN, ""]))
    write(tmp_path / "none_ab" / "attempt_1" / "0" / "stdout.log", "Connection closed by peer\n")
    told = diagnosed(gather([tmp_path]))
    assert [cause.ranks for cause in told.causes if cause.ranks] == [(3,)]

    write(tmp_path / "none_ab" / "attempt_1" / "1" / "stderr.log", f"{BAD_LABEL}\n")
    found = diagnosed(gather([tmp_path]))
    assert [cause.ranks for cause in found.causes if cause.ranks] == [(1,)]
    assert str(found.notes[-1]).startswith("an earlier start of the job, now over: signal 9")
