"""Two plans side by side: what was asked otherwise, and what follows of it.

               A         B        change
tp             2         4
step           4.00 s    4.31 s   +7.7%
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from serried.finding import Sentence, said
from serried.plan.job_plan import JobPlan
from serried.units import duration_text, memory_text
from serried.views.plan.document import asked_document
from serried.views.plan.words import memory_word, time_word
from serried.views.sentences import say, tell

SCHEMA = "serried.plans/1"
ASKED: Mapping[str, Sentence] = {
    "sequence": said("sequence length"),
    "global_batch": said("global batch"),
    "micro_batch": said("microbatch size"),
    "microbatches": said("microbatches"),
    "schedule": said("schedule"),
    "order": said("order"),
    "zero": said("ZeRO stage"),
    "compute": said("compute"),
    "stage_layers": said("layers of the stages"),
}
"""What is asked of a plan, and what it is called."""
LEAST_PART = 0.002
"""The share of a step from which a part has a row."""


@dataclass(frozen=True)
class ComparedRow:
    """Holds one line: what it is, both values as text, and how far the second is off."""

    name: str
    a: str
    b: str
    differs: bool
    change: str = ""


def plans_document(a: JobPlan, b: JobPlan, *, lang: str) -> dict[str, Any]:
    """Returns the document: a verdict, what was asked of each, and what each comes to."""
    return {
        "schema": SCHEMA,
        "verdict": _verdict(a, b, lang),
        "asked": [asdict(row) for row in _asked_rows(a, b, lang)],
        "found": [asdict(row) for row in _found_rows(a, b, lang)],
    }


def _verdict(a: JobPlan, b: JobPlan, lang: str) -> str:
    change = b.step_s / a.step_s - 1
    room = b.memory.fullest.total - a.memory.fullest.total
    quicker = tell(
        "a step of B takes {change} {longer}, and its fullest rank {size} {way}",
        lang,
        change=f"{abs(change):.1%}",
        longer=say(said("longer") if change > 0 else said("less time"), lang),
        size=memory_text(abs(room)),
        way=say(said("more") if room > 0 else said("less"), lang),
    )
    misfits = [name for name, plan in (("A", a), ("B", b)) if not plan.memory.fits]
    if not misfits:
        return quicker
    joint = "；" if lang == "zh" else "; "
    return quicker + joint + tell("does not fit: {names}", lang, names=", ".join(misfits))


def _asked_rows(a: JobPlan, b: JobPlan, lang: str) -> Iterator[ComparedRow]:
    one, other = _told(a, lang), _told(b, lang)
    for name in one | other:
        left, right = one.get(name, ""), other.get(name, "")
        yield ComparedRow(name, left, right, left != right)


def _told(plan: JobPlan, lang: str) -> dict[str, str]:
    """Returns what was asked, by what it is called, as text."""
    asked = asked_document(plan.asked)
    sizes = {name: str(size) for name, size in asked["sizes"].items()}
    told = {
        say(said("model"), lang): asked["model"]["name"],
        say(said("cluster"), lang): asked["cluster"]["name"],
        say(said("world size"), lang): str(asked["world_size"]),
        **sizes,
    }
    for name, word in ASKED.items():
        value = asked[name]
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        told[say(word, lang)] = text
    return told | {say(said("recomputation"), lang): asked["recompute"]["kind"]}


def _found_rows(a: JobPlan, b: JobPlan, lang: str) -> Iterator[ComparedRow]:
    yield _seconds(tell("step", lang), a.step_s, b.step_s)
    rates = (f"{plan.tokens_per_s_gpu:,.0f}" for plan in (a, b))
    ratio = b.tokens_per_s_gpu / a.tokens_per_s_gpu - 1
    yield _row(tell("tokens of a GPU per second", lang), *rates, change=f"{ratio:+.1%}")
    points = tell("{points:+.1f} points", lang, points=100 * (b.mfu() - a.mfu()))
    yield _row("MFU", f"{a.mfu():.1%}", f"{b.mfu():.1%}", change=points)
    for name in a.parts:
        one, other = a.parts[name], b.parts.get(name, 0.0)
        if max(one / a.step_s, other / b.step_s) >= LEAST_PART:
            yield _seconds(say(time_word(name), lang), one, other)
    left, right = a.memory.fullest, b.memory.fullest
    yield _bytes(tell("fullest rank", lang), left.total, right.total)
    names = dict.fromkeys(each.name for each in (*left.items, *right.items))
    for name in names:
        one_bytes, other_bytes = left.bytes_of(name), right.bytes_of(name)
        if max(one_bytes, other_bytes) >= left.total / 100:
            yield _bytes(say(memory_word(name), lang), one_bytes, other_bytes)


def _seconds(name: str, a: float, b: float) -> ComparedRow:
    return _row(name, duration_text(a * 1e9), duration_text(b * 1e9), change=_ratio(a, b))


def _bytes(name: str, a: int, b: int) -> ComparedRow:
    return _row(name, memory_text(a), memory_text(b), change=_ratio(a, b))


def _ratio(a: float, b: float) -> str:
    return f"{b / a - 1:+.1%}" if a else ""


def _row(name: str, a: str, b: str, *, change: str) -> ComparedRow:
    differs = a != b
    return ComparedRow(name, a, b, differs, change if differs else "")
