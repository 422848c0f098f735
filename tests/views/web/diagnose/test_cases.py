from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from serried.diagnose.diagnosis import Cause, CauseClass, Diagnosis, Waiting
from serried.errors import InputError
from serried.finding import said
from serried.views.web.diagnose.cases import (
    NamedCase,
    case_payload,
    cases_answer,
    read_case,
    states_of,
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
    assert told["in"]["en"]["ranks"] == [5]
    assert told["in"]["zh"]["verdict"] != told["in"]["en"]["verdict"]
    assert told["question"]["world_size"] == "6"


def test_the_states_go_out_as_a_figure_of_the_map_and_a_finding_there_is_not_is_refused() -> None:
    header, columns = unpack(case_payload([case(HUNG)], {"case": ["0"]}))
    assert (header["unit"], columns["value"][2]) == ("state", 3.0)
    with pytest.raises(InputError, match="no finding 4 here; 1 were made"):
        case_payload([case(HUNG)], {"finding": ["4"]})
    with pytest.raises(InputError, match="no diagnosis 1 here; 1 are open"):
        case_payload([case(HUNG)], {"case": ["1"]})
