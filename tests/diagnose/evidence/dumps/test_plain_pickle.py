"""Pickles of dumps: plain values are read; whatever asks for more is refused and never run."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from serried.diagnose.evidence.dumps.plain_pickle import read_plain_pickle
from serried.diagnose.gather import gather
from serried.errors import InputError

PLAIN = {
    "version": "2.10",
    "entries": [{"record_id": 0, "sizes": [(8, 64)], "time": 1_700_000_000_000_000_000, "x": None}],
    "rate": 0.5,
    "on": True,
    "empty": (),
}


class Harmful:
    """Writes a file when a pickle of it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_of_every_protocol_are_read(protocol: int) -> None:
    assert read_plain_pickle(pickle.dumps(PLAIN, protocol), "dump") == PLAIN


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_calls_is_refused_and_does_nothing(tmp_path: Path, protocol: int) -> None:
    touched = tmp_path / "touched"
    harmful = pickle.dumps({"entries": [Harmful(touched)]}, protocol)
    with pytest.raises(InputError, match="no dump does"):
        read_plain_pickle(harmful, "fr_trace_0")
    assert not touched.exists()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("is_bare", [True, False])
def test_a_harmful_dump_is_named_and_the_others_are_read(
    tmp_path: Path, protocol: int, is_bare: bool
) -> None:
    touched = tmp_path / "touched"
    harmful = Harmful(touched) if is_bare else {"entries": [Harmful(touched)]}
    (tmp_path / "fr_trace_0").write_bytes(pickle.dumps(harmful, protocol))
    entry = {"process_group": ["0", "default_pg"], "profiling_name": "nccl:all_reduce"}
    whole = {"version": "2.10", "entries": [{**entry, "collective_seq_id": 1, "record_id": 0}]}
    (tmp_path / "fr_trace_1").write_bytes(pickle.dumps(whole, 2))
    found = gather([tmp_path])
    assert not touched.exists()
    assert [str(note) for note in found.notes if "fr_trace_0" in str(note)]
    assert found.state is not None and found.state.ranks[1].issued


@pytest.mark.parametrize("kept", [1, 10, -1])
def test_a_cut_off_pickle_is_damaged(kept: int) -> None:
    with pytest.raises(InputError, match="breaks off or is damaged"):
        read_plain_pickle(pickle.dumps(PLAIN, 2)[:kept], "fr_trace_0")


def test_a_memo_with_a_huge_number_takes_no_memory() -> None:
    with pytest.raises(InputError):
        read_plain_pickle(b"\x80\x02}r\xff\xff\xff\x7f.", "fr_trace_0")
