"""A collective that ran on real ranks: a verdict, and a row for each algorithm.

all-reduce ran on 4 ranks by gloo, 1.00 MiB: the results of torch.distributed's own by ring
algorithm  steps  time     torch's own  sums apart
ring           6  3.10 ms  1.85 ms      8.9e-08
"""

from __future__ import annotations

from typing import Any

from serried.errors import listed
from serried.runtime.trial.report import TrialOutcome, TrialReport
from serried.runtime.trial.settings import TrialSettings
from serried.units import duration_text, memory_text
from serried.views.sentences import tell
from serried.views.table import Table

SCHEMA = "serried.collective-trial/1"


def trial_verdict(settings: TrialSettings, report: TrialReport, *, lang: str = "en") -> str:
    """Returns whether results are torch's own, and on what they ran."""
    first = settings.trials[0]
    wrong = [settings.trials[each.number].algorithm for each in report.outcomes if each.wrong]
    return tell(
        "{name} ran on {ranks} ranks by {backend}, {size}: other results than torch.distributed's "
        "own by {wrong}"
        if wrong
        else "{name} ran on {ranks} ranks by {backend}, {size}: the results of "
        "torch.distributed's own by {algorithms}",
        lang,
        name=first.name,
        ranks=first.group.size,
        backend=report.outcomes[0].backend,
        size=memory_text(first.size_bytes),
        wrong=listed(wrong, last="and"),
        algorithms=listed((each.algorithm for each in settings.trials), last="and"),
    )


def trial_table(settings: TrialSettings, report: TrialReport, *, lang: str = "en") -> Table:
    """Returns a row for each algorithm: its steps, both times, and how far sums are apart."""
    rows = Table()
    rows.add_column(tell("algorithm", lang))
    numbers = (tell("steps", lang), tell("time", lang), tell("torch's own", lang))
    for name in (*numbers, tell("sums apart", lang)):
        rows.add_column(name, justify="right")
    rows.add_column(tell("wrong ranks", lang))
    for outcome in report.outcomes:
        trial = settings.trials[outcome.number]
        rows.add_row(
            trial.algorithm,
            str(len(trial.collective.steps)),
            duration_text(outcome.moves_ns),
            duration_text(outcome.own_ns),
            f"{outcome.apart:.1e}" if outcome.apart else "0",
            listed(outcome.wrong, limit=8),
        )
    return rows


def trial_legend(report: TrialReport, *, lang: str = "en") -> str:
    """Returns what was compared, and how."""
    most = max(outcome.most_apart for outcome in report.outcomes)
    return tell(
        "whole numbers were compared bit for bit; of others, which the order of summation sets "
        "apart, sums may differ by {most} of what was added without signs"
        if most
        else "whole numbers and others were compared bit for bit",
        lang,
        most=f"{most:.1e}",
    )


def trial_document(settings: TrialSettings, report: TrialReport) -> dict[str, Any]:
    """Returns the trial as the ``serried.collective-trial/1`` document; times are in seconds."""
    first = settings.trials[0]
    return {
        "schema": SCHEMA,
        "name": first.name,
        "ranks": list(first.group.ranks),
        "backend": report.outcomes[0].backend,
        "algorithms": [_of_one(settings, outcome) for outcome in report.outcomes],
    }


def _of_one(settings: TrialSettings, outcome: TrialOutcome) -> dict[str, Any]:
    trial = settings.trials[outcome.number]
    return {
        "algorithm": trial.algorithm,
        "bytes": 4 * outcome.elements,
        "steps": len(trial.collective.steps),
        "time": outcome.moves_ns / 1e9,
        "torch_time": outcome.own_ns / 1e9,
        "wrong_ranks": list(outcome.wrong),
        "sums_apart": outcome.apart,
        "sums_may_be_apart": outcome.most_apart,
    }
