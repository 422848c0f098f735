"""``serried explain``: a word of parallel training, with the numbers of a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from serried.launch.request import LayoutRequest
from serried.plan.job_plan import JobPlan
from serried.views.cli.count import COUNT
from serried.views.cli.job import request_of
from serried.views.cli.language import lang_option
from serried.views.cli.options import job_options, size_options
from serried.views.cli.output import (
    PATH,
    TABLE_OR_JSON,
    OutputChoice,
    as_json,
    form_option,
    output_option,
    width,
)
from serried.views.cli.plan.options import plan_constants, plan_options, plan_words
from serried.views.learn.cards import card, card_keys, key_of
from serried.views.learn.lessons import job_of, lessons
from serried.views.sentences import tell


@click.command()
@click.argument("term", required=False, metavar="[TERM]")
@click.argument("file", required=False, type=PATH)
@click.option("--rank", type=COUNT, help="Say where this rank stands and which group it is in.")
@size_options
@job_options
@plan_options
@lang_option
@form_option(TABLE_OR_JSON)
@output_option
def explain(term: str | None, file: Path | None, **options: Any) -> int:
    """Explains a word of parallel training with the numbers of a job: dp, etp, zero, bubble …

    Without TERM it lists them all. FILE is a launch script or config; without it and sizes the job
    has 16 GPUs. With --model and --cluster what a dimension costs is told in seconds of a step.

    \b
    serried explain
    serried explain dp --world-size 64 --tp 8
    serried explain "expert tensor parallel"
    serried explain tp train.sh --cluster h100
    serried explain zero --world-size 16 --tp 2 --model llama3-8b --cluster h100 \\
        --sequence 8192 --global-batch 64 --format json
    """
    output = OutputChoice.of(options, TABLE_OR_JSON)
    form, lang = output.form_among(TABLE_OR_JSON), output.lang
    if term is None:
        _list_all(output, form)
        return 0
    key = key_of(term)
    asked = _job(key, file, options)
    layout, placement = asked.laid_out()
    plan = _plan(asked, options)
    found = card(key, layout, placement, lang=lang, rank=options["rank"], plan=plan)
    if form == "json":
        from serried.views.learn.document import card_document

        output.write(as_json(card_document(found), depth=1))
    else:
        from serried.views.learn.text import card_text

        output.write(card_text(found, width(), lang=lang))
    return 0


def _list_all(output: OutputChoice, form: str) -> None:
    """Shows every card by name, or the lessons as JSON."""
    lang = output.lang
    if form == "json":
        from serried.views.learn.document import lessons_document

        output.write(as_json(lessons_document(lessons(lang)), depth=1))
        return
    from serried.views.learn.text import cards_table

    cards = [card(key, *job_of(key).laid_out(), lang=lang) for key in card_keys()]
    output.show(cards_table(cards, lang=lang), "", tell("one of them: serried explain TERM", lang))


def _job(key: str, file: Path | None, options: Mapping[str, Any]) -> LayoutRequest:
    """Returns the job that is asked for; without sizes that of the term's lesson."""
    asked = request_of(file, options)
    is_told = bool(file or asked.given or asked.framework or options["settings"] or asked.hosts)
    return asked if is_told else job_of(key)


def _plan(asked: LayoutRequest, options: Mapping[str, Any]) -> JobPlan | None:
    """Returns the plan that words ask for; None where there are none."""
    words = plan_words(options)
    if not words.keys() & {"model", "cluster", "sequence", "global_batch"}:
        return None
    from serried.plan.asked import plan_request
    from serried.plan.job_plan import job_plan

    return job_plan(plan_request(asked, words), plan_constants(options))
