"""The verdict on a recorded run, in three lines at most: what is wrong, why, and what to run next.

rank 1 on node-1 holds the others up: 40.1 ms of each step of 90.2 ms (44.5%)
it takes longer than they do: loading data 40.3 ms; in 8 of 8 steps
next: serried serve runs/mine
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from serried.errors import listed
from serried.finding import said
from serried.trace.measure.analysis import Analysis
from serried.trace.measure.ranks.slowest import COMPUTING, LEAST_STEPS, NOTHING, RankPace
from serried.trace.measure.verdict import RunVerdict, Trouble
from serried.trace.model.trace import Trace
from serried.units import duration_text
from serried.views.sentences import phrase, say, tell
from serried.views.trace.words import (
    CAUSES,
    LONGER,
    given,
    host_text,
    look_into,
    merging,
    next_line,
    stages_text,
)


def verdict_lines(
    trace: Trace,
    analysis: Analysis,
    verdict: RunVerdict,
    *,
    places: Sequence[object] = (),
    lang: str = "en",
) -> list[str]:
    """Returns the verdict, what bears it out, and a command to run next on ``places``."""
    told = {
        Trouble.UNFINISHED: _unfinished,
        Trouble.SLOW_RANK: _slow_rank,
        Trouble.SLOW_STAGE: _slow_stage,
        Trouble.DATA: _of_period,
        Trouble.COMMUNICATION: _of_period,
        Trouble.UNRECORDED: _unrecorded,
        Trouble.BUBBLE: _bubble,
        Trouble.NONE: _bubble if trace.has_pipeline else _computing,
    }[verdict.trouble](trace, analysis, verdict, lang)
    return [*told, next_line(partial(next_command, trace, verdict), places, lang)]


def verdict_document(
    trace: Trace, analysis: Analysis, verdict: RunVerdict, *, places: Sequence[object] = ()
) -> dict[str, Any]:
    """Returns the verdict as JSON has it: the same lines, in English, and what they are made of."""
    pace = verdict.pace
    return {
        "trouble": verdict.trouble.value,
        "lines": verdict_lines(trace, analysis, verdict, places=places),
        "ranks": list(verdict.ranks),
        "stages": list(verdict.stages),
        "host": verdict.host or None,
        "step_us": verdict.step_ns / 1e3,
        "cost_us": verdict.cost_ns / 1e3,
        "share": verdict.share,
        "longer_us": {} if pace is None else {name: ns / 1e3 for name, ns in pace.longer},
        "next": next_command(trace, verdict, places),
    }


def standing_text(paces: Sequence[RankPace], lang: str, *, has_pipeline: bool) -> str:
    """Returns that no rank stands out among its like, or why that is not known."""
    compared = [each for each in paces if each.waited_for_ns is not None]
    evidence = {each.evidence for each in compared}
    if not paces:
        return tell("whether a rank is slow is not known: its spans hold its waits", lang)
    if not compared:
        return tell(
            "every stage is on one rank, so none can be compared with its like"
            if has_pipeline
            else "the only rank has none to be compared with",
            lang,
        )
    if compared[0].num_steps < LEAST_STEPS:
        return tell("of fewer than {count} steps no rank is judged", lang, count=LEAST_STEPS)
    if evidence == {NOTHING}:
        return tell("what ranks wait for one another was not recorded, so none is judged", lang)
    # Where nobody's waits were compared only the computing is spoken of.
    if evidence == {COMPUTING}:
        return tell(
            "no rank stands out: none computes longer than others of its stage, step after step",
            lang,
        )
    return tell(
        "no rank stands out: none keeps the others of its stage waiting, step after step"
        if has_pipeline
        else "no rank stands out: none keeps the others waiting, step after step",
        lang,
    )


def _standing(trace: Trace, analysis: Analysis, lang: str) -> str:
    return standing_text(analysis.paces, lang, has_pipeline=trace.has_pipeline)


# ----------------------------------------------------------------------- what is wrong


def _unfinished(trace: Trace, analysis: Analysis, verdict: RunVerdict, lang: str) -> list[str]:
    if not trace.has_computations:
        return [
            tell("no forward or backward was recorded, so nothing is measured", lang),
            tell("mark those that are your own: serried.span('F'), serried.span('B')", lang),
        ]
    lines = [tell("no step was finished by every rank, so nothing is measured", lang)]
    if verdict.ranks:
        rank = verdict.ranks[0]
        lines.append(
            tell(
                "{ranks} on {host} recorded least, up to step {step}"
                if verdict.last_step >= 0
                else "{ranks} on {host} recorded no step",
                lang,
                ranks=_ranks(verdict.ranks, lang),
                host=host_text(trace, rank),
                step=verdict.last_step,
            )
        )
    return lines


def _slow_rank(trace: Trace, _: Analysis, verdict: RunVerdict, lang: str) -> list[str]:
    pace = verdict.pace
    assert pace is not None  # it is what names the rank
    is_waited_for = pace.evidence != COMPUTING
    head = tell(
        "rank {rank} on {host} (stage {stages}) computes {slower:.1%} longer than its like: "
        "{cost} a step"
        if not is_waited_for
        else "rank {rank} on {host} (stage {stages}) holds the others up: {cost} of each step of "
        "{step} ({share:.1%})"
        if trace.has_pipeline
        else "rank {rank} on {host} holds the others up: {cost} of each step of {step} "
        "({share:.1%})",
        lang,
        rank=pace.rank,
        host=host_text(trace, pace.rank),
        stages=stages_text(pace.stages),
        slower=pace.slower or 0.0,
        cost=duration_text(verdict.cost_ns),
        step=duration_text(verdict.step_ns),
        share=verdict.share,
    )
    steps = pace.waited_for_steps if is_waited_for else pace.slower_steps
    parts = listed(
        tell("{part} {more}", lang, part=phrase(LONGER[name], lang), more=duration_text(ns))
        for name, ns in pace.longer
    )
    why = tell(
        "it takes longer than they do: {parts}; in {steps} of {total} steps"
        if pace.longer
        else "in {steps} of {total} steps",
        lang,
        parts=say(parts, lang),
        steps=steps,
        total=pace.num_steps,
    )
    return [head, why + _crowded(trace, pace.rank, lang)]


def _crowded(trace: Trace, rank: int, lang: str) -> str:
    """Returns that a rank's host has fewer cores than ranks, any of which that alone makes late."""
    node = trace.placement.node(rank)
    there = sum(trace.placement.node(each) == node for each in trace.ranks)
    if not 0 < trace.job.cores < there:
        return ""
    return tell(
        "; {ranks} ranks share {cores} cores there, which may be why"
        if trace.job.cores > 1
        else "; {ranks} ranks share one core there, which may be why",
        lang,
        ranks=there,
        cores=trace.job.cores,
    )


def _slow_stage(trace: Trace, analysis: Analysis, verdict: RunVerdict, lang: str) -> list[str]:
    stage = verdict.stage
    assert stage is not None  # it is what the verdict is about
    head = tell(
        "stage {stages} ({ranks} on {host}) computes {time} a step, {slower:.1%} longer than the "
        "others",
        lang,
        stages=stages_text(stage.stages),
        ranks=_ranks(stage.ranks, lang),
        host=host_text(trace, stage.ranks[0]),
        time=duration_text(stage.compute_ns),
        slower=stage.slower,
    )
    why = tell(
        "even stages would save {cost} of each step of {step} ({share:.1%}); it has more to do, "
        "or is slower"
        if verdict.cost_ns
        else "it has more layers or the loss to compute, or its device is slower",
        lang,
        cost=duration_text(verdict.cost_ns),
        step=duration_text(verdict.step_ns),
        share=verdict.share,
    )
    return [head, why]


def _of_period(trace: Trace, analysis: Analysis, verdict: RunVerdict, lang: str) -> list[str]:
    head = tell(
        "loading data takes {cost} of each step of {step} ({share:.1%}), the mean of all ranks"
        if verdict.trouble is Trouble.DATA
        else "communication that nothing hides takes {cost} of each step of {step} ({share:.1%})",
        lang,
        cost=duration_text(verdict.cost_ns),
        step=duration_text(verdict.step_ns),
        share=verdict.share,
    )
    return [head, _standing(trace, analysis, lang)]


def _unrecorded(trace: Trace, _: Analysis, verdict: RunVerdict, lang: str) -> list[str]:
    head = tell(
        "of {cost} in each step of {step} ({share:.1%}) nothing was recorded, the most of all its "
        "idle time"
        if trace.has_pipeline
        else "of {cost} in each step of {step} ({share:.1%}) nothing was recorded",
        lang,
        cost=duration_text(verdict.cost_ns),
        step=duration_text(verdict.step_ns),
        share=verdict.share,
    )
    return [head, how_to_record(lang)]


def how_to_record(lang: str) -> str:
    """Returns what to write into a program so that time which was not recorded is."""
    return tell(
        "record it: serried.record(loader, DIR) around the loop, with serried.span(NAME): in it",
        lang,
    )


def _bubble(trace: Trace, analysis: Analysis, verdict: RunVerdict, lang: str) -> list[str]:
    found, planned = analysis.statistics, analysis.planned
    assert found.bubbles is not None  # else the verdict is that nothing was finished
    share = found.bubbles.of_makespan
    least = found.ideal if planned is None else (planned.own_times or planned.uniform).of_makespan
    step = duration_text(verdict.step_ns)
    schedule = analysis.schedule if planned is None else said("{what}", what=planned.schedule)
    cause = phrase(CAUSES[verdict.cause], lang) if verdict.cause else ""
    if least is None:
        head = tell(
            "the bubble is {share:.1%} of a step of {step}, most of it {cause}",
            lang,
            share=share,
            step=step,
            cause=cause,
        )
    else:
        head = tell(
            "the bubble is {share:.1%} of a step of {step}; {schedule} itself has {least:.1%}, so "
            "{cost} more"
            if verdict.trouble is Trouble.BUBBLE
            else "the bubble is {share:.1%} of a step of {step}; {schedule} itself has {least:.1%}",
            lang,
            share=share,
            step=step,
            schedule=schedule or "",
            least=float(least),
            cost=duration_text(verdict.cost_ns),
        )
    return [head, _standing(trace, analysis, lang)]


def _computing(trace: Trace, analysis: Analysis, verdict: RunVerdict, lang: str) -> list[str]:
    periods = analysis.periods
    head = tell(
        "ranks compute for {share:.1%} of each step of {step}",
        lang,
        share=0.0 if periods is None else periods.mean.share("compute"),
        step=duration_text(verdict.step_ns),
    )
    return [head, _standing(trace, analysis, lang)]


def _ranks(ranks: Sequence[int], lang: str) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return tell("ranks {ranks}", lang, ranks=say(listed(ranks, limit=4), "en"))


# ----------------------------------------------------------------------- what to run next


def next_command(trace: Trace, verdict: RunVerdict, places: Sequence[object] = ()) -> str:
    """Returns the command that looks further into what the verdict says."""
    if verdict.trouble is Trouble.COMMUNICATION:
        sizes = trace.job.sizes
        words = [f"--{axis} {sizes[axis]}" for axis in ("tp", "cp") if sizes.get(axis, 1) > 1]
        return " ".join(["serried check --nproc", str(trace.job.world_size), *words])
    of_plan = (Trouble.SLOW_STAGE, Trouble.BUBBLE, Trouble.NONE)
    if trace.has_pipeline and verdict.trouble in of_plan:
        # A comparison takes one place; several folders of one run are merged into a store first.
        if len(places) > 1:
            return merging(places)
        return f"serried trace compare {given(places)} --plan"
    return look_into(places)
