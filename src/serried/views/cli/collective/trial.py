"""``serried collective NAME --try``: its steps as messages of real ranks, beside torch's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from serried.collective.placed_group import PlacedGroup
from serried.errors import InputError, SerriedError
from serried.limits import TRIAL_RANKS
from serried.mesh import Placement
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json, width
from serried.views.explain.plain import wrap
from serried.views.job.collective import FIELDS, CollectiveWords
from serried.views.sentences import say

if TYPE_CHECKING:
    from serried.runtime.job.report import Place
    from serried.runtime.trial.report import TrialReport
    from serried.runtime.trial.settings import TrialSettings

DEFAULT_BYTES = "1MiB"


def try_collective(name: str, options: Mapping[str, Any], output: OutputChoice) -> int:
    """Runs the collective ``name`` as options ask, and answers; returns 1 where it is wrong.

    Without a launcher this process starts all ranks; else it is one of them, and ends here.
    """
    from serried.runtime.run import worker
    from serried.runtime.trial import trial

    place = worker.place_of_launcher()
    settings = settings_of(name, options, place)
    output.form_among(TABLE_OR_JSON)  # one that it has not is refused before ranks start
    if place is None:
        return _answer(settings, trial.try_locally(settings), output)
    heard: list[TrialReport] = []
    try:
        trial.join(settings, place, heard.append)
        code = max((_answer(settings, report, output) for report in heard), default=0)
    except SerriedError as error:
        click.echo(f"serried: rank {place.rank}: {say(error, output.lang)}", err=True)
        code = error.exit_code
    return worker.leave(code)


def settings_of(name: str, options: Mapping[str, Any], place: Place | None) -> TrialSettings:
    """Returns what is tried: the algorithm asked for, or all that messages can run.

    Raises InputError for what cannot be.
    """
    from serried.runtime.trial.settings import NEEDS_SWITCH, CollectiveTrial, TrialSettings

    words = {field: options.get(field) or "" for field in FIELDS} | {"name": name}
    words["bytes"] = words["bytes"] or DEFAULT_BYTES
    asked = CollectiveWords(words).question(_group_of(place, options))
    if place is None and asked.group.size > TRIAL_RANKS.most:
        raise InputError(
            "--try starts at most {most} ranks on this machine; it was asked for {ranks}, which "
            "torchrun can start on several",
            most=TRIAL_RANKS.most,
            ranks=asked.group.size,
        )
    # Whether each of them can be as it is asked for is answered as for their price.
    ways = {way.entry.name: way for way in asked.ways()}
    names = [each for each in ways if each != NEEDS_SWITCH or asked.algorithm]
    root = 0 if asked.root is None else asked.group.ranks.index(asked.root)
    trials = tuple(
        CollectiveTrial(
            ways[each].entry.collective,
            each,
            asked.group,
            asked.size_bytes,
            root,
            asked.channels,
            asked.chunks,
        )
        for each in names
    )
    return TrialSettings(trials, asked.group.size, device=options["device"])


def _group_of(place: Place | None, options: Mapping[str, Any]) -> PlacedGroup | None:
    """Returns the ranks that a launcher started, on its nodes; None where there is none."""
    if place is None:
        return None
    if options["ranks"] not in (None, str(place.world_size)):
        raise InputError(
            "--ranks {ranks} differs from the {world} ranks that the launcher started; leave it "
            "out",
            ranks=options["ranks"],
            world=place.world_size,
        )
    placement = Placement(place.world_size, place.local_world_size)
    return PlacedGroup.of(range(place.world_size), placement)


def _answer(settings: TrialSettings, report: TrialReport, output: OutputChoice) -> int:
    from serried.views.collective.trial import (
        trial_document,
        trial_legend,
        trial_table,
        trial_verdict,
    )

    lang = output.lang
    if output.form_among(TABLE_OR_JSON) == "json":
        output.write(as_json(trial_document(settings, report), depth=1))
    else:
        verdict = wrap(trial_verdict(settings, report, lang=lang), width())
        table = trial_table(settings, report, lang=lang)
        output.show(*verdict, "", table, "", *wrap(trial_legend(report, lang=lang), width()))
    return int(any(outcome.wrong for outcome in report.outcomes))
