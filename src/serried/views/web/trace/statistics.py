"""All that is measured of a trace, as ``serried trace stats --format json`` prints it."""

from __future__ import annotations

from typing import Any

from serried.views.trace.document import analysis_document, stats_document
from serried.views.web.trace.payload import NamedTrace


def whole_answer(named: NamedTrace) -> dict[str, Any]:
    """Returns the ``serried.trace-stats/1`` document; times are microseconds.

    Of a large trace it is measured of the last steps, as the findings are.
    """
    trace, analysis = named.answers.judged
    return {
        **stats_document(trace, analysis.statistics, analysis.replayed),
        **analysis_document(analysis),
    }
