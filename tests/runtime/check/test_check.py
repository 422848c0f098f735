"""A check on real gloo ranks: members, times, tables, and ranks that do not answer."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from serried.errors import InputError, SerriedError
from serried.plan.busbw import OPERATIONS
from serried.runtime.check.check import Told, check
from serried.runtime.check.findings import wrong_groups
from serried.runtime.check.report import CheckReport, Membership, Seated, StepBegun
from serried.runtime.check.settings import CheckSettings, sizes_of, waves
from serried.views.runs.check_document import check_document
from tests.frameworks.asking import asked
from tests.runtime.rank_processes import all_ended, watch
from tests.schemas.conform import conform

SETTINGS = CheckSettings(
    asked("paddle 4 'hybrid_parallel_topo_order=pp_first' tp=2"),
    sizes_bytes=(512, 1 << 16),
    iterations=2,
    rounds=4,
    window_size=3,
    ranks_per_node=2,
    device="cpu",
)


PACES = ("slow-rank", "slow-node", "slow-link")
"""What is found by times."""


class Checked(NamedTuple):
    """What one check told, step by step, and its report."""

    events: list[Told]
    report: CheckReport


@pytest.fixture(scope="module")
def checked() -> Checked:
    events: list[Told] = []
    return Checked(events, check(SETTINGS, events.append))


def test_ranks_say_where_they_are_before_anything_is_timed(checked: Checked) -> None:
    first = checked.events[0]
    assert isinstance(first, Seated)
    assert [(seat.rank, seat.node, seat.device) for seat in first.seats] == [
        (0, 0, "cpu"),
        (1, 0, "cpu"),
        (2, 1, "cpu"),
        (3, 1, "cpu"),
    ]
    assert len({seat.pid for seat in first.seats}) == 4


def test_every_step_that_was_announced_began(checked: Checked) -> None:
    steps = [event for event in checked.events if isinstance(event, StepBegun)]
    assert [step.number for step in steps] == list(range(1, steps[0].total + 1))
    assert steps[0].name == f"members of {SETTINGS.whole.kinds[0].name}"


def test_every_group_has_its_members(checked: Checked) -> None:
    of_groups = [each for each in checked.report.findings if each.kind not in PACES]
    assert of_groups == []


@pytest.mark.soak  # whoever else uses the machine may slow a link down
def test_an_even_machine_names_nobody(checked: Checked) -> None:
    assert checked.report.findings == ()


def test_each_set_of_groups_is_timed_once_with_every_operation_and_size(checked: Checked) -> None:
    report = checked.report
    timed = [(each.kind, each.operation, each.size_bytes) for each in report.timings]
    assert timed == [
        (kind, operation, size)
        for kind in SETTINGS.timed
        for operation in OPERATIONS
        for size in SETTINGS.sizes_bytes
    ]
    assert not set(SETTINGS.timed) & set(report.same_as)
    assert all((each.times_ns[~np.isnan(each.times_ns)] > 0).all() for each in report.timings)


def test_windows_are_checked_of_a_framework_that_has_none(checked: Checked) -> None:
    assert SETTINGS.whole.groups("nettest").lists() == [[0, 1, 2], [3]]
    (shape, *others) = {(e.sizes, e.nodes) for e in checked.report.timings if e.kind == "nettest"}
    assert (shape, others) == (((3, 1), (2, 1)), [])


def test_links_between_nodes_and_inside_are_told_apart(checked: Checked) -> None:
    found = {(link.source, link.target): link.is_inter for link in checked.report.links}
    across, inside = ((0, 2), (2, 0), (1, 3), (3, 1)), ((0, 1), (1, 0), (2, 3), (3, 2))
    assert found == {**dict.fromkeys(across, True), **dict.fromkeys(inside, False)}


def test_the_busbw_table_has_a_row_for_each_shape(checked: Checked) -> None:
    table = checked.report.busbw_table("2026-01-01")
    assert "gloo" in table.source and "2026-01-01" in table.source
    assert {row.operation for row in table.rows} == set(OPERATIONS)
    assert table.time_ns("all_reduce", ranks=2, nodes=1, size_bytes=512) > 0


def test_the_document_holds_a_map_of_nodes_and_paths(checked: Checked) -> None:
    document = check_document(checked.report, SETTINGS.whole, "en")
    conform(document, "serried.check/1")
    slow = {r for each in checked.report.findings if each.kind == "slow-node" for r in each.ranks}
    assert [(n["node"], n["ranks"], n["is_slow"]) for n in document["map"]["nodes"]] == [
        (0, [0, 1], bool(slow & {0, 1})),
        (1, [2, 3], bool(slow & {2, 3})),
    ]
    paths = {(path["from"], path["to"]) for path in document["map"]["paths"]}
    assert paths == {(0, 0), (0, 1), (1, 0), (1, 1)}


# ------------------------------------------------------------------------------- wrong groups


def test_a_group_that_answers_with_other_ranks_is_found() -> None:
    layout = asked("megatron 4 tp=2")
    right = [Membership("tp", 0, (0, 1), 1), Membership("tp", 1, (2, 3), 5)]
    assert wrong_groups(layout, right * 2) == []
    (order,) = wrong_groups(layout, [right[0], Membership("tp", 1, (3, 2), 5)])
    assert str(order) == ("tp group 1 answers with ranks [3 2] and the sum 5; the layout has [2 3]")
    (odd,) = wrong_groups(layout, [right[0], Membership("tp", 0, (0, 1), 4)])
    assert "the sum 4" in str(odd) and odd.ranks == (0, 1)


# ------------------------------------------------------------------------------- lost ranks


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        (signal.SIGSTOP, "rank 2 does not answer: stopped by a signal, such as SIGSTOP, or by a "),
        (signal.SIGKILL, "rank 2 ended by signal SIGKILL without a word; the other ranks were"),
    ],
)
def test_a_rank_that_is_lost_is_named_and_none_lives_on(how: signal.Signals, sentence: str) -> None:
    watched: list[int] = []

    def tell(event: Told) -> None:
        if isinstance(event, Seated):
            watched.extend(watch(seat.pid for seat in event.seats))
            os.kill(event.seats[2].pid, how)

    with pytest.raises(SerriedError) as lost:
        check(replace(SETTINGS, timeout_s=6, rounds=200), tell)
    assert str(lost.value).startswith(sentence)
    assert all_ended(watched)


# ------------------------------------------------------------------------------- settings


def test_groups_that_share_ranks_are_timed_one_wave_after_another() -> None:
    layout = asked(
        "megatron@0.9.0 6 tp=2 pp=2 encoder_tensor_model_parallel_size=1 "
        "encoder_pipeline_model_parallel_size=2"
    )
    groups = next(
        layout.groups(kind.name)
        for kind in layout.kinds
        if len(waves(layout.groups(kind.name))) > 1
    )
    for wave in waves(groups):
        ranks = [rank for number in wave for rank in groups[number].tolist()]
        assert len(ranks) == len(set(ranks))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rounds": 0}, "rounds=0; it is at least 1"),
        ({"timeout_s": 0.0}, "timeout=0.0; it is above zero"),
        (
            {"operations": ("gossip",)},
            "operation 'gossip' is not timed; those that are: all_reduce, all_gather, "
            "reduce_scatter, all_to_all, sendrecv",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        replace(SETTINGS, **change)  # type: ignore[arg-type]
    assert str(refused.value) == sentence


@pytest.mark.parametrize("text", ["4KiB,", "4 kilo", "0", "-1"])
def test_sizes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--sizes takes sizes such as 4KiB,1MiB,16MiB; it got"):
        sizes_of(text)
