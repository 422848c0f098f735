"""Clocks of two real hosts, drawn wrong: what alignment states holds, by what crossed between."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest

from serried.views.cli.main import run
from tests.runtime.clock_draws import (
    MICROBATCHES,
    STEPS,
    WITH,
    Draw,
    Outcome,
    Ways,
    calm,
    even,
    outcome,
    outcomes,
    record_draws,
    uneven,
)
from tests.runtime.hosts import delayed, hosts, lacking

LACKING = lacking() or ("" if os.access("/dev/net/tun", os.W_OK) else "/dev/net/tun")
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"this machine lacks {LACKING}")


def drawn(folder: Path, *, jobs: Sequence[str], ways: Ways, seed: int) -> list[Draw]:
    """Returns the draws of jobs that two hosts on a wire have recorded."""
    with hosts(2) as made, delayed(made, 1, 0.0) as wire:
        return record_draws(random.Random(seed), made, wire, folder, jobs=jobs, ways=ways)


def told(found: Sequence[dict[str, Outcome]], name: str) -> str:
    """Returns the figures of one kind of trace, for whoever reads the log of a soak."""
    each = [outcomes[name] for outcomes in found]
    error, stated, figure = (
        median(values)
        for values in (
            [one.error_ns for one in each],
            [one.stated_ns for one in each],
            [one.symmetric_ns for one in each],
        )
    )
    holds = sum(one.error_ns <= one.stated_ns for one in each)
    holds_symmetric = sum(one.error_ns <= one.symmetric_ns for one in each)
    return (
        f"{name}: stated holds in {holds} of {len(each)}, even in {holds_symmetric}; "
        f"medians: error {error / 1e3:.1f} us, stated {stated / 1e3:.1f} us, "
        f"even {figure / 1e3:.1f} us; {sum(one.violations for one in each)} of "
        f"{sum(one.checked for one in each)} early"
    )


@pytest.fixture(scope="module")
def draws(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Draw]]:
    """Returns a few jobs of each kind, all of one launch."""
    jobs = ["messages"] * 3 + ["record", "train"]
    seed = random.randrange(2**32)
    found = drawn(tmp_path_factory.mktemp("draws"), jobs=jobs, ways=uneven, seed=seed)
    return {job: [each for each in found if each.job == job] for job in jobs}


def test_a_few_draws_of_clocks_and_wires_are_covered_whatever_crossed(
    draws: dict[str, list[Draw]],
) -> None:
    for draw in draws["messages"]:
        found = outcomes(draw)
        assert {name: each.source for name, each in found.items()} == {name: name for name in WITH}
        for each in found.values():
            assert each.error_ns <= each.stated_ns
            assert each.violations == 0
        assert found["messages"].checked >= 2 * STEPS * MICROBATCHES


@pytest.mark.parametrize(("job", "source"), [("record", "pings"), ("train", "pings+messages")])
def test_a_job_on_two_hosts_compares_their_clocks_by_itself(
    draws: dict[str, list[Draw]], job: str, source: str
) -> None:
    (draw,) = draws[job]
    found = outcome(draw)
    assert (found.source, found.violations) == (source, 0)
    assert (found.checked > 0) == (job == "train")
    assert found.error_ns <= found.stated_ns


def test_what_a_job_s_clocks_were_is_told_host_by_host(
    draws: dict[str, list[Draw]], capfd: pytest.CaptureFixture[str]
) -> None:
    (draw,) = draws["train"]
    assert run(["trace", "stats", str(draw.folder), "--all"]) == 0
    told = capfd.readouterr().out
    assert re.search(r"clocks of 2 hosts: aligned to \S+ .?s; 0 of \d+ messages received", told)
    assert re.search(
        r"\n  host-\d: by pings and messages between hosts, moved .*"
        r" (drift .* ppm|no drift seen); within ",
        told,
    )
    assert run(["trace", "stats", str(draw.folder), "--format", "json"]) == 0
    clocks = json.loads(capfd.readouterr().out)["alignment"]["clocks"]
    assert [each["source"] for each in clocks] == ["own", "pings+messages"]
    assert 0 < clocks[1]["even_us"] <= clocks[1]["uncertainty_us"]


@pytest.mark.soak
@pytest.mark.parametrize("ways", [uneven, even, calm])
def test_100_draws_are_covered_by_at_most_five_times_their_error(
    tmp_path: Path, ways: Ways
) -> None:
    seed = random.randrange(2**32)
    draws = drawn(tmp_path, jobs=["messages"] * 100, ways=ways, seed=seed)
    found = [outcomes(each) for each in draws]
    print(f"\n{ways.__name__} ways, seed {seed}")  # noqa: T201
    for name in WITH:
        print(told(found, name))  # noqa: T201
    # Without jitter or pings, what is left is how hosts send: that need not be alike either way.
    for name in WITH if ways is not calm else ("pings", "pings+messages"):
        each = [outcomes_of_draw[name] for outcomes_of_draw in found]
        assert sum(one.error_ns <= one.stated_ns for one in each) >= 95
        assert not any(one.violations for one in each)
        # Which figure is to be held against the error is what is known of the ways.
        figures = [one.stated_ns if ways is uneven else one.symmetric_ns for one in each]
        errors = [one.error_ns for one in each]
        assert sum(error <= figure for error, figure in zip(errors, figures, strict=True)) >= 95
        assert median(figures) <= 5 * median(errors)
