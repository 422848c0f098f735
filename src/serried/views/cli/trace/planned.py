"""``serried trace compare RUN --planned FILE``: which constant of the plan of a run was wrong."""

from __future__ import annotations

from pathlib import Path

from serried.plan.retime.constants import plan_error, read_retimed_file
from serried.plan.retime.observed import observe
from serried.trace.model.trace import Trace
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json, width
from serried.views.plan.plan_error_text import error_document, error_parts


def tell_planned(run: Trace, file: Path, output: OutputChoice) -> None:
    """Prints how far the run's step is from the plan in ``file``, by constant."""
    planned = read_retimed_file(file)
    found = plan_error(planned, observe(run))
    if output.form_among(TABLE_OR_JSON) == "json":
        output.write(as_json(error_document(found, planned, run.run, lang=output.lang)))
    else:
        output.show(*error_parts(found, planned, columns=width(), lang=output.lang))
