"""One step under a sharding as a table: an event a row, what it sends, what the rank then holds."""

from __future__ import annotations

from math import ceil

from serried.finding import Sentence, said
from serried.plan.model_states import HeldStates
from serried.plan.sharded_step import ShardedStep, StepEvent, What
from serried.units import bytes_text
from serried.views.sentences import say, tell
from serried.views.table import Table

WORDS: dict[What, Sentence] = {
    "gather": said("gather"),
    "forward": said("forward"),
    "backward": said("backward"),
    "free": said("free"),
    "reduce": said("reduce"),
    "join": said("join copies"),
    "step": said("optimizer step"),
}


def step_verdict(found: ShardedStep, microbatches: int) -> Sentence:
    """Returns what a rank sends in the step, and when it holds most."""
    peak = found.peak
    told = {
        "microbatches": microbatches,
        "sent": bytes_text(ceil(found.sent_bytes)),
        "what": _named(peak),
        "held": bytes_text(peak.held.total),
    }
    if microbatches == 1:
        return said(
            "a step of 1 microbatch sends {sent} from each rank; after {what} it holds most, "
            "{held}",
            **told,
        )
    return said(
        "a step of {microbatches:,} microbatches sends {sent} from each rank; after {what} it "
        "holds most, {held}",
        **told,
    )


def _named(event: StepEvent) -> Sentence:
    if event.layer < 0:
        return WORDS[event.what]
    return said("{what} of layer {layer}", what=WORDS[event.what], layer=event.layer)


def step_table(found: ShardedStep, *, lang: str = "en") -> Table:
    """Returns a row per event, what is held before the first one above them."""
    rows = Table()
    for heading in (tell("event", lang), tell("layer", lang), tell("microbatch", lang)):
        rows.add_column(heading, no_wrap=True)
    rows.add_column(tell("collective", lang))
    rows.add_column(tell("over", lang))
    rows.add_column(tell("sends", lang), justify="right")
    for heading in (tell("parameters", lang), tell("gradients", lang), tell("optimizer", lang)):
        rows.add_column(heading, justify="right")
    rows.add_row(tell("begin", lang), "", "", "", "", "", *_held(found.begin))
    for event in found.events:
        rows.add_row(*_row(event, lang))
    return rows


def _row(event: StepEvent, lang: str) -> list[str]:
    layer = str(event.layer) if event.layer >= 0 else ""
    microbatch = str(event.microbatch) if event.microbatch >= 0 else ""
    moved = event.moved
    sent = ["", "", ""]
    if moved:
        sent = [moved.collective, " x ".join(moved.over), bytes_text(ceil(moved.sent_bytes))]
    return [say(WORDS[event.what], lang), layer, microbatch, *sent, *_held(event.held)]


def _held(held: HeldStates) -> list[str]:
    """Returns parameters (gathered and near ones among them), gradients and optimizer state."""
    parameters = held.parameters + held.gathered + held.near
    return [bytes_text(each) for each in (parameters, held.gradients, held.optimizer)]
