"""What is measured of a trace, as documents: all of it, its periods, its GPUs, its sharding.

whole_answer        as ``serried trace stats --format json`` prints it
period_answer       of a job without a pipeline every rank's period, in place of a bubble
gpus_answer         of a profile of GPUs, as ``serried trace stats PROFILE`` prints it
sharding_of_trace   what a rank gathered and reduced in a step under ZeRO, beside its plan
"""

from __future__ import annotations

from typing import Any

from serried.errors import InputError
from serried.plan.recorded_step import read_rank_steps
from serried.plan.traffic.reference import with_references
from serried.views.trace.document import analysis_document, stats_document
from serried.views.trace.gpu.document import gpu_document
from serried.views.trace.gpu.text import finding_lines
from serried.views.trace.periods import by_own_time, periods_document
from serried.views.trace.recorded_step import RecordedStep
from serried.views.trace.words import host_text
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.wire.query import Words, read_count, read_language, read_rank


def whole_answer(named: NamedTrace) -> dict[str, Any]:
    """Returns the ``serried.trace-stats/1`` document; times are microseconds.

    Of a large trace it is measured of the last steps, as the findings are.
    """
    trace, analysis = named.answers.judged
    return {
        **stats_document(trace, analysis.statistics, analysis.replayed),
        **analysis_document(analysis),
    }


def period_answer(named: NamedTrace) -> dict[str, Any]:
    """Returns periods as ``serried.trace-period/1``; None where there is a pipeline.

    Of a large trace they are of its last steps, as many as are measured in some seconds.
    """
    schema = "serried.trace-period/1"
    trace, analysis = named.answers.judged
    if analysis.periods is None:
        return {"schema": schema, "periods": None}
    late = {each.rank: each.waited_for_ns for each in analysis.paces}
    periods = periods_document(analysis.periods)
    assert periods is not None  # there are some
    rows = {each["rank"]: each for each in periods["ranks"]}
    # The page draws rows as they come: those first that wait least.
    periods["ranks"] = [
        {
            **rows[each.rank],
            "host": host_text(trace, each.rank),
            "waited_for_us": max(0.0, late.get(each.rank) or 0.0) / 1e3,
        }
        for each in by_own_time(analysis.periods)
    ]
    return {"schema": schema, "periods": periods}


def gpus_answer(named: NamedTrace, words: Words) -> dict[str, Any]:
    """Returns the ``serried.gpu-stats/1`` document, its verdict in the language of the page.

    Raises InputError for a trace that is no profile of GPUs.
    """
    if named.gpus is None:
        raise InputError(
            "trace '{name}' is no profile of GPUs; serried trace stats measures its steps",
            name=named.name,
        )
    found = named.gpu_analysis
    lines = finding_lines(found, lang=read_language(words))
    document = gpu_document(named.gpus, found, with_references(found.traffic, None, None))
    return {**document, "verdict": {"lines": lines}, "idlest": found.idlest.rank}


def sharding_of_trace(named: NamedTrace, words: Words) -> dict[str, Any]:
    """Returns the ``serried.recorded-step/1`` document of one rank, of ``step`` where it is given.

    Raises InputError where the records or their plan are not there, and as their reader does.
    """
    if named.place is None or not named.place.is_dir():
        raise InputError("trace '{name}' does not lie in a folder of records", name=named.name)
    found = read_rank_steps(named.place, read_rank(words))
    return RecordedStep.of(*found, read_count(words, "step")).document(read_language(words))
