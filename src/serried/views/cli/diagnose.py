"""``serried diagnose``: which rank hung, which is slow, and why."""

from __future__ import annotations

from pathlib import Path

import click

from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.views.cli.language import lang_option
from serried.views.cli.output import (
    PATH,
    TABLE_OR_JSON,
    OutputChoice,
    as_json,
    printed_form_option,
    width,
)
from serried.views.cli.progress import told
from serried.views.diagnose.document import diagnosis_document
from serried.views.diagnose.text import diagnosis_lines


@click.command("diagnose")
@click.argument("what", nargs=-1, required=True, type=PATH)
@printed_form_option
@lang_option
def diagnose(what: tuple[Path, ...], form: str, lang: str) -> int:
    """Says which rank hung, which is slow, and why; or what evidence is missing.

    Reads logs, flight-recorder dumps, stacks and records, in files and folders, any mixture.
    Exits with 1 where something was found.

    \b
    serried diagnose logs/
    serried diagnose console.log /tmp/nccl_trace_rank_* stacks/ --format json
    """
    output = OutputChoice(lang, form)
    found = diagnosed(gather(what, told(lang)))
    if output.form_among(TABLE_OR_JSON) == "json":
        output.write(as_json(diagnosis_document(found, lang)))
    else:
        output.write("\n".join(diagnosis_lines(found, lang=lang, width=width())) + "\n")
    return 1 if found.found else 0
