"""``serried collective --try`` runs steps on real ranks, and says whether torch agrees."""

from __future__ import annotations

import json

import pytest

from serried.collective.placed_group import PlacedGroup
from serried.runtime.trial.report import RankOutcome, TrialOutcome, TrialReport
from serried.runtime.trial.settings import CollectiveTrial, TrialSettings
from serried.views.collective.trial import trial_table, trial_verdict
from tests.conftest import Call
from tests.schemas.conform import conform

RIGHT, WRONG = (RankOutcome(rank, not rank, 1e-8, 1e-7, 10**6, 10**5) for rank in (0, 1))


def test_every_algorithm_that_messages_can_run_agrees_with_torch(serried: Call) -> None:
    done = serried("collective", "all-reduce", "--ranks", "3", "--try", "--format", "json")
    told = json.loads(done.out)
    conform(told, "serried.collective-trial/1")
    assert told["backend"] == "gloo"
    assert [(each["algorithm"], each["wrong_ranks"]) for each in told["algorithms"]] == [
        ("ring", []),
        ("tree", []),
        ("recursive", []),
        ("hierarchical", []),
    ]


def test_the_verdict_names_algorithms_whose_results_are_not_torchs() -> None:
    group = PlacedGroup.first(2)
    settings = TrialSettings(
        tuple(CollectiveTrial("all-reduce", name, group, 4096) for name in ("ring", "tree")), 2
    )
    report = TrialReport(
        (TrialOutcome(0, "gloo", 1024, (RIGHT,)), TrialOutcome(1, "gloo", 1024, (RIGHT, WRONG)))
    )
    assert trial_verdict(settings, report) == (
        "all-reduce ran on 2 ranks by gloo, 4.00 KiB: other results than torch.distributed's own "
        "by tree"
    )
    *_, last = trial_table(settings, report).lines(100)
    assert last.split() == ["tree", "9", "1.00", "ms", "100", "us", "1.0e-08", "1"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("all-reduce --algorithm switch", "needs a switch that adds"),
        ("attention --algorithm ring", "attention is more than messages"),
        ("all-sum", "there is no collective 'all-sum'"),
        ("all-reduce --ranks 65", "--try starts at most 64 ranks on this machine"),
        ("broadcast --root 9", "rank 9 is not in the group"),
    ],
)
def test_what_ranks_cannot_run_is_refused_before_any_starts(
    serried: Call, words: str, sentence: str
) -> None:
    refused = serried("collective", *words.split(), "--try")
    assert refused.code == 2
    assert sentence in refused.err


def test_a_launcher_says_how_many_ranks_there_are(
    serried: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "4")
    refused = serried("collective", "all-reduce", "--ranks", "8", "--try")
    assert refused.code == 2
    assert "--ranks 8 differs from the 4 ranks that the launcher started" in refused.err
