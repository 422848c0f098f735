"""A search for the terminal: the best layout, the ranked table, and why the others lose.

best of 10,004 layouts, of which 940 fit: tp 8 pp 32 cp 2 dp 2, zbv, 37.7 s a step …
    layout                     schedule  micro  ZeRO  recompute   step   memory    why not
 1  tp 8 pp 32 cp 2 dp 2       zbv           1     1  none      37.7 s  49.7 GiB
 2  tp 8 pp 16 cp 2 dp 4       zbv           1     1  none      38.0 s  59.1 GiB  dp +317 ms
"""

from __future__ import annotations

from typing import Any

from serried.errors import listed
from serried.finding import Sentence, said
from serried.plan.request import PlanRequest
from serried.plan.search.search import FoundLayout, SearchResult
from serried.units import duration_text, memory_text
from serried.views.plan.document import asked_document
from serried.views.plan.doubts import doubts
from serried.views.plan.words import OFFLOADED, RECOMPUTED, time_word
from serried.views.sentences import say, tell
from serried.views.table import Table

SCHEMA = "serried.search/1"


def layout_name(asked: PlanRequest) -> str:
    """Returns the degrees of a layout that are above 1.

    >>> from serried.plan.catalog import cluster_named, model_named
    >>> from serried.plan.degrees import Degrees
    >>> degrees = Degrees(tp=2, pp=4, dp=8, chunks=2)
    >>> told = model_named("llama3-8b"), cluster_named("h100")
    >>> layout_name(PlanRequest(*told, degrees, global_batch=8, schedule="interleaved-1f1b"))
    'tp 2 pp 4 dp 8'
    """
    degrees = asked.degrees
    names = ["tp", "pp", "cp", "dp", *(("ep", "etp") if asked.model.experts else ())]
    told = {name: getattr(degrees, name) for name in names}
    return " ".join(f"{name} {size}" for name, size in told.items() if size > 1) or "dp 1"


def schedule_name(asked: PlanRequest) -> str:
    """Returns the schedule, with its chunks where they can be chosen: interleaved-1f1b x4."""
    chunks = f" x{asked.degrees.chunks}" if asked.schedule == "interleaved-1f1b" else ""
    return f"{asked.schedule}{chunks}"


def search_verdict(found: SearchResult, *, lang: str = "en") -> list[str]:
    """Returns the best layout, or the nearest miss and what would make it fit."""
    if found.best:
        first = found.best[0]
        told = said(
            "best of {count:,} layouts, of which {fitting:,} fit: {name}, {schedule}, microbatch "
            "{micro}, ZeRO {zero}, recompute {recompute}: {step} a step, {tokens:,.0f} "
            "tokens/s/GPU, at most {memory} of {card}",
            count=found.num_layouts,
            fitting=found.num_fitting,
            **_told(first),
        )
        plan = first.plan
        asked = first.request
        further = (*_spared(asked), *_placed(asked), *(doubts(plan) if plan else ()))
        return [say(each, lang) for each in (told, *further)]
    miss = found.misses[0]
    return [
        say(
            said(
                "none of {count:,} layouts fits; the nearest lacks {lack} on each GPU of its "
                "fullest stage: {name}, {schedule}, microbatch {micro}, ZeRO {zero}, recompute "
                "{recompute}",
                count=found.num_layouts,
                lack=memory_text(round(miss.lacks)),
                **_told(miss),
            ),
            lang,
        ),
        say(_cure(miss), lang),
    ]


def _spared(asked: PlanRequest) -> list[Sentence]:
    """Returns which modules are recomputed, and what lies in the host's memory."""
    found = []
    if asked.recompute.modules:
        found.append(
            said("recomputed selectively: {modules}", modules=listed(asked.recompute.modules))
        )
    if asked.offload != "none":
        found.append(said("in the host's memory: {what}", what=OFFLOADED[asked.offload]))
    return found


def _placed(asked: PlanRequest) -> list[Sentence]:
    """Returns the order that ranks are numbered in, and what of it then lies nearer."""
    if not asked.order:
        return []
    inner = said("stages") if asked.inner == "pp" else said("replicas")
    return [
        said("order of ranks: {order}, so that {inner} are nearer", order=asked.order, inner=inner)
    ]


def search_table(found: SearchResult, *, lang: str = "en") -> Table:
    """Returns a row for each of the best, and what each loses to the first."""
    return _table(found.best, [_loss(each, lang) for each in found.best], lang)


def miss_table(found: SearchResult, *, lang: str = "en") -> Table:
    """Returns a row for each of those that lack least: how much memory, and on which stage."""
    return _table(found.misses, [_lack(each, lang) for each in found.misses], lang)


def pareto_table(found: SearchResult, *, lang: str = "en") -> Table:
    """Returns a row for each layout that none beats in both time and memory."""
    return _table(found.pareto, [_loss(each, lang) for each in found.pareto], lang)


def search_document(
    found: SearchResult, *, lang: str = "en", only_front: bool = False
) -> dict[str, Any]:
    """Returns the ``serried.search/1`` document; bytes and seconds.

    ``only_front`` leaves the best and the misses out: what is asked for is what none beats in both.
    """
    head = {
        "schema": SCHEMA,
        "verdict": ("；" if lang == "zh" else "; ").join(search_verdict(found, lang=lang)),
        "layouts": found.num_layouts,
        "fitting": found.num_fitting,
    }
    front = {"pareto": [_document(each, _loss(each, lang)) for each in found.pareto]}
    if only_front:
        return head | front
    best = {"best": [_document(each, _loss(each, lang)) for each in found.best]}
    misses = {"misses": [_document(each, _lack(each, lang)) for each in found.misses]}
    return head | best | front | misses


def _told(each: FoundLayout) -> dict[str, object]:
    asked = each.request
    return {
        "name": layout_name(asked),
        "schedule": schedule_name(asked),
        "micro": asked.micro_batch,
        "zero": asked.zero,
        "recompute": RECOMPUTED[asked.recompute.kind],
        "step": duration_text(each.step_s * 1e9),
        "tokens": each.tokens_per_gpu_s,
        "memory": memory_text(round(each.in_use)),
        "card": memory_text(round(each.card)),
    }


def _loss(each: FoundLayout, lang: str) -> str:
    """Returns what a layout loses to the best, and on which part of the step most."""
    if not each.slower_part:
        return ""
    more = duration_text(each.slower_s * 1e9)
    return tell("{part} +{more}", lang, part=time_word(each.slower_part), more=more)


def _lack(each: FoundLayout, lang: str) -> str:
    """Returns what a layout that does not fit lacks, and on which stage."""
    stages = "+".join(map(str, each.fullest_stages))
    size = memory_text(round(each.lacks))
    return tell("lacks {size} on stage {stages}", lang, size=size, stages=stages)


def _cure(miss: FoundLayout) -> Sentence:
    """Says what would make the nearest miss fit."""
    times = miss.in_use / miss.card
    return said(
        "its fullest GPU needs {times:.2f} times what a card has; GPUs of more memory, more of "
        "them or a shorter sequence would make it fit",
        times=times,
    )


def _table(found: tuple[FoundLayout, ...], reasons: list[str], lang: str) -> Table:
    rows = Table()
    rows.add_column("", justify="right")
    rows.add_column(tell("layout", lang), no_wrap=True)
    rows.add_column(tell("schedule", lang))
    for word in ("micro", "ZeRO"):
        rows.add_column(tell(word, lang), justify="right")
    rows.add_column(tell("recompute", lang))
    for word in ("step", "memory"):
        rows.add_column(tell(word, lang), justify="right")
    is_away = any(each.request.offload != "none" for each in found)
    if is_away:
        rows.add_column(tell("on the host", lang))
    # Where all lie alike the line above says so.
    is_placed = len({each.request.inner for each in found}) > 1
    if is_placed:
        rows.add_column(tell("nearer", lang))
    rows.add_column(tell("why not", lang))
    for number, (each, reason) in enumerate(zip(found, reasons, strict=True), 1):
        asked = each.request
        rows.add_row(
            str(number),
            layout_name(asked),
            schedule_name(asked),
            str(asked.micro_batch),
            str(asked.zero),
            say(RECOMPUTED[asked.recompute.kind], lang),
            duration_text(each.step_s * 1e9),
            memory_text(round(each.in_use)),
            *([say(OFFLOADED[asked.offload], lang)] if is_away else []),
            *([asked.inner] if is_placed else []),
            reason,
        )
    return rows


def _document(each: FoundLayout, reason: str) -> dict[str, Any]:
    return {
        "asked": asked_document(each.request),
        "step_s": each.step_s,
        "parts_s": dict(each.parts),
        "tokens_per_s_gpu": each.tokens_per_gpu_s,
        "peak_bytes": round(each.in_use),
        "card_bytes": round(each.card),
        "lacks_bytes": round(each.lacks),
        "why_not": reason,
    }
