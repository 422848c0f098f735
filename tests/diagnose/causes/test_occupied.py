"""A rank that is stuck in its own code is told what it is busy with, where its stack tells."""

from __future__ import annotations

import pytest

from serried.diagnose.causes.occupied import occupied
from serried.diagnose.evidence.stacks.stack import Frame

TORCH = "/venv/lib/python3.12/site-packages/torch"
MINE = Frame("train", "/job/train.py", 20)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["utils/data/_utils/fetch.py", "utils/data/dataloader.py"], "data loader"),
        (["serialization.py"], "checkpoint"),
        (["distributed/checkpoint/state_dict_saver.py"], "checkpoint"),
        (["_inductor/async_compile.py", "_dynamo/convert_frame.py"], "compiler"),
        (["utils/cpp_extension.py"], "compiler"),
    ],
)
def test_what_a_stack_goes_through_tells(files: list[str], words: str) -> None:
    inner = [Frame("work", f"{TORCH}/{file}", 7) for file in files]
    found = occupied([Frame("poll", "selectors.py", 4), *inner, MINE])
    assert found is not None
    assert words in str(found.sentence)
    assert found.cures


def test_a_data_set_that_reads_in_the_rank_itself_is_told_with_the_call_that_asked_for_it() -> None:
    inner = [Frame("fetch", f"{TORCH}/utils/data/_utils/fetch.py", 52)]
    asked = Frame("__next__", f"{TORCH}/utils/data/dataloader.py", 708)
    found = occupied([Frame("__getitem__", "/job/data.py", 9), *inner, asked, MINE])
    assert found is not None
    assert "(__next__)" in str(found.sentence)


def test_compiled_code_that_runs_is_no_compiling() -> None:
    runs = Frame("_fn", f"{TORCH}/_dynamo/eval_frame.py", 574)
    assert occupied([Frame("forward", "/job/model.py", 3), runs, MINE]) is None
