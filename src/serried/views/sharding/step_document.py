"""One step under a sharding as JSON: every event, what it moves, and what a rank holds after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import ceil
from typing import Any

from serried.mesh import Layout
from serried.plan.precision import Precision
from serried.plan.sharded_step import Moved, ShardedStep, StepEvent
from serried.views.sentences import say
from serried.views.sharding.step_text import step_verdict


def step_document(
    layout: Layout,
    found: ShardedStep,
    layers: Sequence[int],
    precision: Precision,
    *,
    microbatches: int,
    lang: str,
) -> dict[str, Any]:
    """Returns the ``serried.sharded-step/1`` document; bytes that are no whole number round up."""
    sharding = layout.sharding
    return {
        "schema": "serried.sharded-step/1",
        "framework": layout.framework,
        "world_size": layout.world_size,
        "verdict": say(step_verdict(found, microbatches), lang),
        "stage": sharding.stage if sharding else None,
        "precision": precision.name,
        "layers": list(layers),
        "microbatches": microbatches,
        "sent": ceil(found.sent_bytes),
        "peak": found.events.index(found.peak),
        "begin": asdict(found.begin),
        "events": [_event(event) for event in found.events],
    }


def _event(event: StepEvent) -> dict[str, Any]:
    return {
        "what": event.what,
        "layer": event.layer if event.layer >= 0 else None,
        "microbatch": event.microbatch if event.microbatch >= 0 else None,
        "moved": _moved(event.moved) if event.moved else None,
        "held": asdict(event.held),
    }


def _moved(moved: Moved) -> dict[str, Any]:
    return {
        "collective": moved.collective,
        "over": list(moved.over),
        "ranks": moved.ranks,
        "size": moved.size_bytes,
        "sent": ceil(moved.sent_bytes),
    }
