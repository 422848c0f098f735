"""``--step``: one training step under the sharding of a layout, event by event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serried.launch.request import LayoutRequest
from serried.views.cli.output import TABLE_OR_JSON, OutputChoice, as_json, width
from serried.views.job.layers import layers_of
from serried.views.sharding.answer import StepAnswer


def step(request: LayoutRequest, options: Mapping[str, Any], output: OutputChoice) -> int:
    """Shows one training step: what is gathered, freed, reduced, and what a rank then holds."""
    layout, lang = request.layout(), output.lang
    split = layers_of(request, layout)
    layers = split.num_layers if split else None
    found = StepAnswer.of(layout, options, layers=layers, microbatches=options["step"])
    if output.form_among(TABLE_OR_JSON) == "json":
        output.write(as_json(found.document(lang)))
    else:
        output.show(*found.parts(width(), lang))
    return 0
