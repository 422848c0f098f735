"""A plan for the terminal: the verdict, then memory by stage, time by part, and what travels."""

from __future__ import annotations

from rich.cells import cell_len

from serried.errors import listed
from serried.finding import Sentence, said
from serried.plan.job_plan import CONVENTION, JobPlan
from serried.plan.memory.rank_memory import PlannedMemory
from serried.units import bytes_text, duration_text, memory_text
from serried.views.explain.plain import wrap
from serried.views.plan.doubts import doubts
from serried.views.plan.words import MEMORY, TIME, memory_word, time_word, traffic_word
from serried.views.sentences import say, tell
from serried.views.table import Table

LEAST = 0.03
"""Share of the fullest stage below which an item of memory is counted among the others."""


def fit_verdict(plan: JobPlan) -> Sentence:
    """Says whether it fits, where it is fullest, when and by what."""
    fullest = plan.memory.fullest
    told: dict[str, object] = {
        "stages": _stages_text(fullest),
        "rank": fullest.first_rank,
        "peak": memory_text(fullest.total),
        "card": memory_text(fullest.card_bytes),
        "moment": fullest.moment,
        "items": listed(
            [
                said("{what} {size}", what=memory_word(each.name), size=memory_text(each.num_bytes))
                for each in fullest.largest
            ]
        ),
    }
    if fullest.fits:
        return said(
            "fits: at most {peak} of {card}, on stage {stages} (rank {rank}) at {moment}; most of "
            "it {items}",
            **told,
        )
    return said(
        "does not fit: {peak} of {card} on stage {stages} (rank {rank}) at {moment}, {lack} too "
        "much; most of it {items}",
        lack=memory_text(-fullest.room),
        **told,
    )


def time_verdict(plan: JobPlan) -> Sentence:
    """Says how long a step takes, and what that is in tokens and FLOP/s."""
    low, high = plan.interval_s
    return said(
        "step {step} (9 of 10 lie within {low} to {high}): {tokens:,.0f} tokens/s/GPU, {flops:.0f} "
        "TFLOP/s/GPU, MFU {mfu:.1%} ({convention} attention), HFU {hfu:.1%}",
        step=duration_text(plan.step_s * 1e9),
        low=duration_text(low * 1e9),
        high=duration_text(high * 1e9),
        tokens=plan.tokens_per_s_gpu,
        flops=plan.flops_per_s_gpu() / 1e12,
        mfu=plan.mfu(),
        convention=CONVENTION,
        hfu=plan.hfu,
    )


def job_line(plan: JobPlan) -> Sentence:
    """Says what is planned: the model, the cluster, the layout and the batch."""
    asked, degrees = plan.asked, plan.asked.degrees
    axes = ("tp", "pp", "cp", "dp", *(("ep", "etp") if asked.model.experts else ()))
    sizes = {name: getattr(degrees, name) for name in axes}
    told = " ".join(f"{name} {size}" for name, size in sizes.items() if size > 1) or "dp 1"
    return said(
        "{model} on {world:,} GPUs of {cluster}: {sizes}, ZeRO {zero}, {schedule}, {micro} x "
        "{times:,} microbatches of {sequence:,} tokens, {compute}",
        model=asked.model.name,
        world=degrees.world_size,
        cluster=asked.cluster.name,
        sizes=told,
        zero=_zero(plan),
        schedule=asked.schedule,
        micro=asked.micro_batch,
        times=asked.num_microbatches,
        sequence=asked.sequence,
        compute=asked.compute,
    )


def _zero(plan: JobPlan) -> Sentence | int:
    """Says the ZeRO stage, and over how many ranks states are cut where not over all that could."""
    asked = plan.asked
    cut, could = asked.shard_ranks, asked.degrees.shard_ranks
    if not asked.zero or cut is None or cut >= could:
        return asked.zero
    return said("{zero} over {cut:,} of {could:,} ranks", zero=asked.zero, cut=cut, could=could)


def plan_parts(plan: JobPlan, *, columns: int, lang: str = "en") -> list[str | Table]:
    """Returns the verdicts, then a table each of memory, time and traffic."""
    head: list[str | Table] = []
    for each in (fit_verdict(plan), time_verdict(plan), *doubts(plan), job_line(plan)):
        head += wrap(say(each, lang), columns)
    memory = memory_table(plan, columns=columns, lang=lang)
    parts = [*head, "", memory, "", time_table(plan, lang=lang)]
    return [*parts, "", traffic_table(plan, lang=lang)] if plan.traffic else parts


def memory_table(plan: JobPlan, *, columns: int = 0, lang: str = "en") -> Table:
    """Returns a row for each place in the pipeline: its layers, items, sum, and room.

    Where it is wider than ``columns``, the smallest items are counted among the others; 0 is any
    width.
    """
    names = _shown(plan)
    rows = _memory_rows(plan, names, lang)
    while columns and len(names) > 1 and max(map(cell_len, rows.lines(columns))) > columns:
        names.remove(min(names, key=lambda name: _most(plan, name)))
        rows = _memory_rows(plan, names, lang)
    return rows


def _memory_rows(plan: JobPlan, names: list[str], lang: str) -> Table:
    rows = Table()
    rows.add_column("stage", no_wrap=True)
    rows.add_column(tell("layers", lang), justify="right")
    for name in names:
        rows.add_column(say(memory_word(name), lang), justify="right")
    for word in (said("other"), said("sum"), said("room")):
        rows.add_column(say(word, lang), justify="right")
    for each in plan.memory.of_ranks:
        shown = [each.bytes_of(name) for name in names]
        layers = sum(plan.asked.stages[number].num_layers for number in set(each.stages))
        room = memory_text(abs(each.room))
        rows.add_row(
            _stages_text(each),
            str(layers),
            *map(memory_text, shown),
            memory_text(each.total - sum(shown)),
            memory_text(each.total),
            room if each.fits else f"-{room}",
        )
    return rows


def time_table(plan: JobPlan, *, lang: str = "en") -> Table:
    """Returns a row for each part of a step: how long, and its share."""
    rows = Table()
    rows.add_column(tell("part of a step", lang))
    rows.add_column(tell("time", lang), justify="right")
    rows.add_column(tell("share", lang), justify="right")
    known = [name for name in TIME if plan.parts.get(name, 0.0) > 0]
    for name in (*known, *(name for name in plan.parts if name not in TIME)):
        seconds = plan.parts[name]
        share = f"{seconds / plan.step_s:.1%}"
        rows.add_row(say(time_word(name), lang), duration_text(seconds * 1e9), share)
    rows.add_row(tell("step", lang), duration_text(plan.step_s * 1e9), "100.0%")
    return rows


def traffic_table(plan: JobPlan, *, lang: str = "en") -> Table:
    """Returns a row for each collective: its ranks, bytes, how often, and over which link."""
    rows = Table()
    for word in (said("group"), said("collective")):
        rows.add_column(say(word, lang), no_wrap=True)
    for word in (said("ranks"), said("bytes"), said("times a step"), said("sent a step")):
        rows.add_column(say(word, lang), justify="right")
    for word in (said("link"), said("runs beside")):
        rows.add_column(say(word, lang))
    for each in plan.traffic:
        rows.add_row(
            each.kind,
            each.collective,
            str(each.ranks),
            bytes_text(round(each.size_bytes)),
            f"{each.times:,.0f}",
            bytes_text(round(each.step_bytes)),
            say(traffic_word(each.link), lang),
            say(traffic_word(each.beside), lang),
        )
    return rows


def _shown(plan: JobPlan) -> list[str]:
    """Returns the items of memory that have a column of their own."""
    fullest = plan.memory.fullest
    return [name for name in MEMORY if _most(plan, name) >= LEAST * fullest.total]


def _most(plan: JobPlan, name: str) -> int:
    """Returns the most bytes that any place has of an item."""
    return max(each.bytes_of(name) for each in plan.memory.of_ranks)


def _stages_text(memory: PlannedMemory) -> str:
    """Returns the stages of a place, such as 0 or 0+4."""
    return "+".join(map(str, memory.stages))
