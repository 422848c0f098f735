from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serried.diagnose.diagnosis import Cause, CauseClass, Diagnosis, Waiting
from serried.errors import InputError
from serried.finding import said
from serried.views.web.diagnose.cases import (
    MOST_CULPRITS,
    NamedCase,
    case_payload,
    cases_answer,
    read_case,
    states_of,
    whole_answer,
)
from serried.views.web.wire.payload import unpack

KILLED = (
    "E0325 20:57:27.620000 2606 torch/distributed/elastic/multiprocessing/api.py:869] failed "
    "(exitcode: -9) local_rank: 5 (pid: 2630) of binary: python\n"
)


def case(cause: Cause) -> NamedCase:
    return NamedCase("job", Diagnosis((cause,), ranks_heard=(0, 1, 2, 3)), {}, 6)


HUNG = Cause(
    CauseClass.HANG,
    "never_arrived",
    (2,),
    said("rank 2 never arrived"),
    0.9,
    waiting=(
        Waiting(0, (2,), said("all-reduce 6")),
        Waiting(1, (0,), said("barrier 2"), directly=False),
    ),
)


def test_each_rank_is_a_culprit_or_waits_for_one_or_stands_apart_or_is_not_heard_of() -> None:
    states = states_of(case(HUNG), HUNG)
    assert states[:4].tolist() == [2.0, 1.0, 3.0, 0.0]
    assert np.isnan(states[4:]).all()


def test_where_no_culprit_can_be_told_nobody_is_marked_as_one() -> None:
    unknown = replace(HUNG, ranks=None)
    assert 3.0 not in states_of(case(unknown), unknown)


def test_a_folder_of_logs_is_told_in_both_languages_with_a_layout_for_the_map(
    tmp_path: Path,
) -> None:
    (tmp_path / "job.log").write_text(KILLED)
    read = read_case(tmp_path)
    [told] = cases_answer([read])["cases"]
    [english], [chinese] = (told["in"][lang]["findings"] for lang in ("en", "zh"))
    assert english["ranks"] == [5]
    assert chinese["verdict"] != english["verdict"]
    assert told["question"]["world_size"] == "6"


def test_the_states_go_out_as_a_figure_of_the_map_and_a_finding_there_is_not_is_refused() -> None:
    header, columns = unpack(case_payload([case(HUNG)], {"case": ["0"]}))
    assert (header["unit"], columns["value"][2]) == ("state", 3.0)
    with pytest.raises(InputError, match="no finding 4 here; 1 were made"):
        case_payload([case(HUNG)], {"finding": ["4"]})
    with pytest.raises(InputError, match="no diagnosis 1 here; 1 are open"):
        case_payload([case(HUNG)], {"case": ["1"]})


def test_what_the_page_lists_at_once_is_small_however_many_ranks_wait() -> None:
    what = said("all_reduce 6")
    waiting = tuple(Waiting(rank, (0,), what) for rank in range(2000, 60_000))
    many = replace(HUNG, ranks=tuple(range(2000)), waiting=waiting)
    hung = NamedCase("job", Diagnosis((many,), ranks_heard=tuple(range(60_000))), {}, 60_000)
    answer = cases_answer([hung])
    assert len(json.dumps(answer)) < 50_000
    assert len(answer["cases"][0]["in"]["en"]["findings"][0]["ranks"]) == MOST_CULPRITS
    _, columns = unpack(case_payload([hung], {}))
    assert (columns["value"] == 3.0).sum() == 2000
    assert columns["target"][1999:2001].tolist() == [-1, 0]
    whole = whole_answer([hung], {})["in"]["zh"]
    assert len(whole["waiting"]) == 58_000


def test_whom_a_rank_waits_for_goes_out_with_its_state() -> None:
    _, columns = unpack(case_payload([case(HUNG)], {}))
    assert columns["target"].tolist() == [2, 0, -1, -1, -1, -1]
    assert columns["directly"].tolist() == [1, 0, 0, 0, 0, 0]
