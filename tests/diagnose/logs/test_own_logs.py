"""What logs of ranks tell by being there: who ended first, and who stood where."""

from __future__ import annotations

from pathlib import Path

import pytest

from serried.diagnose.diagnosis import Diagnosis
from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed

WHERE = {
    "step": ("train.py", 13, "step", "torch/_tensor.py", 623, "backward"),
    "save": ("train.py", 15, "save", "torch/distributed/distributed_c10d.py", 5356, "barrier"),
}
CLOSED = "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:5272"
LATE = "[gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 18000ms for recv operation"


def traceback(rank: int, where: str, words: str) -> str:
    file, line, name, inner, at, call = WHERE[where]
    rows = [
        "Traceback (most recent call last):",
        f'  File "{file}", line {line}, in {name}',
        f'  File "/site-packages/{inner}", line {at}, in {call}',
        f"RuntimeError: {words} to complete",
    ]
    return "\n".join(f"[rank{rank}]: {row}" for row in rows)


def read(folder: Path, *logs: str) -> Diagnosis:
    for rank, text in enumerate(logs):
        place = folder / "none_x" / "attempt_0" / str(rank)
        place.mkdir(parents=True)
        (place / "stderr.log").write_text(f"step {7 + rank}\n{text}\n")
    return diagnosed(gather([folder]))


@pytest.mark.parametrize("ended", [0, 2])
def test_who_lost_no_peer_where_all_others_did_ended_first(ended: int, tmp_path: Path) -> None:
    found = read(tmp_path, *("" if r == ended else traceback(r, "step", CLOSED) for r in range(4)))
    assert (found.causes[0].kind, found.causes[0].ranks) == ("dead", (ended,))


@pytest.mark.parametrize(
    "words", ["", "ValueError: bad label", "Killed"], ids=["silent", "raised", "killed"]
)
def test_of_two_that_lost_no_peer_neither_is_named_for_its_silence(
    words: str, tmp_path: Path
) -> None:
    lost = [traceback(r, "step", CLOSED) for r in range(2)]
    kinds = {cause.kind for cause in read(tmp_path, *lost, "", words).causes}
    assert "dead" not in kinds


def test_where_ranks_gave_up_at_other_lines_it_is_said_who_stood_where(tmp_path: Path) -> None:
    late = [traceback(r, "save" if r == 2 else "step", LATE) for r in range(3)]
    first = read(tmp_path / "apart", *late).causes[0]
    assert (first.kind, first.ranks) == ("timeout_unknown", None)
    assert [str(each) for each in first.chain] == [
        "ranks 0 and 1 stood in backward at train.py:13",
        "rank 2 stood in barrier at train.py:15",
    ]
    alike = read(tmp_path / "alike", *(traceback(r, "step", LATE) for r in range(3))).causes[0]
    assert alike.chain == ()
