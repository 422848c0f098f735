"""Every schedule by its name: equal to the packages that run it, valid, and refused with reason."""

from __future__ import annotations

import pytest
from hypothesis import given

from serried.errors import InputError
from serried.pipeline import ENTRIES, Request, Schedule, faults, generate, peaks, simulate
from tests.pipeline.goldens import ALL, EXECUTED, METRICS, REFUSED, SETTINGS, Golden
from tests.pipeline.strategies import schedules

SEARCHED = {"v-half", "v-min", "1f1b-v", "group-interleaved", "auto"}
"""Families where a list as good is as right."""
AGREED = [golden for golden in EXECUTED if not golden.file.startswith("zb_zbv")]
"""The scheduler of zero-bubble puts ZB-V's last weight halves elsewhere than PyTorch, no better."""
RUN_BY_MEGATRON = {"torch_1F1B_p4_m2_v1.json", "torch_1F1B_p8_m3_v1.json"}
"""PyTorch refuses fewer microbatches than ranks; Megatron runs them."""


def made(golden: Golden) -> Schedule:
    return generate(golden.name, golden.request)


def texts(schedule: Schedule) -> list[list[str]]:
    return [schedule.texts(rank) for rank in range(schedule.num_ranks)]


def test_the_goldens_cover_the_packages() -> None:
    assert len(ALL) == 59
    assert {golden.name for golden in EXECUTED} >= SEARCHED | {"dualpipe", "zbv", "1f1b"}


@pytest.mark.parametrize("golden", AGREED, ids=lambda golden: golden.file)
def test_a_schedule_is_the_list_that_its_package_runs(golden: Golden) -> None:
    assert texts(made(golden)) == golden.ranks


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("golden", EXECUTED, ids=lambda golden: golden.file)
def test_a_schedule_is_no_worse_than_its_package(golden: Golden, setting: str) -> None:
    theirs = METRICS[golden.file][setting]
    schedule = made(golden)
    assert simulate(schedule, SETTINGS[setting]).makespan <= theirs["makespan"]
    ours = peaks(schedule)
    assert (ours.to_weight <= theirs["peak_F_to_W"]).all()
    assert (ours.to_input <= theirs["peak_F_to_I"]).all()


@pytest.mark.parametrize("golden", REFUSED, ids=lambda golden: golden.file)
def test_what_no_package_runs_is_refused(golden: Golden) -> None:
    if golden.file in RUN_BY_MEGATRON:
        assert not list(faults(made(golden)))
    else:
        with pytest.raises(InputError, match=r"cannot be; "):
            made(golden)


@given(schedules())
def test_every_schedule_passes_the_validator(case: tuple[Schedule, Request]) -> None:
    assert [str(fault) for fault in faults(case[0])] == []


@pytest.mark.parametrize("name", ENTRIES)
def test_every_schedule_refuses_no_ranks_and_no_microbatches(name: str) -> None:
    with pytest.raises(InputError, match=rf"^{name} with 0 ranks cannot be; it needs at least 1$"):
        generate(name, Request(0, 8))
    with pytest.raises(InputError, match=rf"^{name} with 0 microbatches cannot be; "):
        generate(name, Request(4, 0))


@pytest.mark.parametrize(
    ("name", "request_", "sentence"),
    [
        ("zb-h2", Request(4, 6), "zb-h2 with 6 microbatches cannot be; it needs at least 7"),
        ("dualpipe", Request(3, 8), "dualpipe with 3 ranks cannot be; it needs a multiple of 2, "
                                    "such as 2 or 4"),
        ("dualpipe", Request(4, 9), "dualpipe with 9 microbatches cannot be; it needs a multiple "
                                    "of 2, such as 8 or 10"),
        ("chimera", Request(4, 6), "chimera with 6 microbatches cannot be; it needs a multiple of "
                                   "4, such as 4 or 8"),
        ("chimera", Request(1, 4), "chimera with 1 ranks cannot be; it needs a multiple of 2, "
                                   "such as 2"),
        ("hanayo", Request(4, 4, 3), "hanayo with 3 chunks cannot be; it needs a multiple of 2, "
                                     "such as 2 or 4"),
        ("zbv", Request(4, 4, 3), "zbv with 3 chunks cannot be; it needs exactly 2"),
        ("group-interleaved", Request(4, 8, 2, 1), "group-interleaved with groups of 1 cannot be; "
                                                   "groups are 2 to 4"),
        ("interleaved-zb", Request(4, 9), "interleaved-zb with 4 ranks and 9 microbatches in "
                                          "groups of 4 cannot be; groups must be full and hold at "
                                          "least 4: groups that work are 9"),
        ("interleaved-1f1b", Request(4, 9), "interleaved-1f1b with 4 ranks and 9 microbatches in "
                                            "groups of 4 cannot be; the last group must be full or "
                                            "hold at least 4: groups that work are 5, 9"),
        ("interleaved-1f1b", Request(4, 8, 2, 0), "interleaved-1f1b with groups of 0 cannot be; "
                                                  "groups are 1 to 8"),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be_name_those_that_can(
    name: str, request_: Request, sentence: str
) -> None:
    with pytest.raises(InputError) as error:
        generate(name, request_)
    assert str(error.value) == sentence


def test_more_actions_than_memory_holds_are_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"^gpipe with 4 ranks, 1000000000 microbatches and 1 "):
        generate("gpipe", Request(4, 10**9))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"^there is no schedule 'zb-h3'; there are gpipe, 1f1b, "):
        generate("zb-h3", Request(4, 8))
