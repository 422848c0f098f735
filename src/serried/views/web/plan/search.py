"""The best layouts of the panel's model and batch on as many GPUs as the job in view has."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from typing import Any

from serried.plan.asked import option_of, plan_request
from serried.plan.search.cloud import Cloud, cloud_of
from serried.plan.search.search import search
from serried.plan.search.space import SearchSpace
from serried.views.plan.search_text import search_document
from serried.views.plan.words import RECOMPUTED
from serried.views.sentences import say
from serried.views.web.plan.query import named_words
from serried.views.web.wire.plan_words import given, settings_of
from serried.views.web.wire.query import Query, Words, read_each, read_word, request_of

SENT = ("tp", "pp", "cp", "dp", "ep", "etp", "chunks", "micro_batch", "order")
"""Columns of the cloud that make a layout."""
KEPT = (
    *("model", "cluster", "sequence", "global_batch", "compute"),
    *("states", "lora", "sequence_parallel", "flash_attention"),
)
"""Words of the panel that a search keeps; it varies all others, and every degree."""


def search_answer(query: Query, words: Words, lang: str) -> dict[str, Any]:
    """Returns the ``serried.search/1`` document, and the command that prints it.

    Raises InputError as ``serried search`` does.
    """
    world = query.request.sizes().world_size
    told = {name: text for name, text in given(words).items() if name in KEPT}
    job = {name: words.get(name, ()) for name in ("framework", "set")}
    space = SearchSpace(world, offloads=("none",))  # the panel has no field for it
    asked = request_of({**job, "world_size": ["1"]})
    asked = replace(asked, settings={**asked.settings, **settings_of(words)})
    found = search(plan_request(asked, named_words(told)), space)
    return {
        **search_document(found, lang=lang),
        "command": _command(world, told, words),
        "words": {"recompute": {kind: say(word, lang) for kind, word in RECOMPUTED.items()}},
        "cloud": _cloud(cloud_of(found)),
    }


def _cloud(cloud: Cloud) -> dict[str, Any]:
    """Returns the layouts behind the best as columns; ``manner`` numbers the manners.

    ``order`` numbers a manner's orders of axes; -1 is none.
    """
    layers = cloud.manners[0].model.layers if cloud.manners else 0
    return {
        "manners": [
            {
                "schedule": each.schedule,
                "zero": each.zero,
                "recompute": asdict(each.recompute),
                "orders": list(orders),
            }
            for each, orders in zip(cloud.manners, cloud.orders, strict=True)
        ],
        "manner": cloud.manner.tolist(),
        **{name: cloud.rows[name].tolist() for name in SENT},
        "is_even": (layers % (cloud.rows["pp"] * cloud.rows["chunks"]) == 0).tolist(),
        "step_s": [float(f"{each:.6g}") for each in cloud.step.tolist()],
        "peak_bytes": [round(each) for each in cloud.in_use.tolist()],
    }


def _command(world: int, told: dict[str, str], words: Words) -> str:
    options = [part for name, text in told.items() for part in (option_of(name), text)]
    options += ["--world-size", str(world), "--offload", "none"]
    if framework := read_word(words, "framework"):
        options += ["--framework", framework]
    sets = [*read_each(words, "set"), *map("=".join, settings_of(words).items())]
    options += [part for each in sets for part in ("--set", each)]
    return shlex.join(["serried", "search", *options])
