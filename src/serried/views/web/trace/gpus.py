"""What is measured of the GPUs of an open profile, as ``serried trace stats PROFILE`` prints it."""

from __future__ import annotations

from typing import Any

from serried.errors import InputError
from serried.plan.traffic_reference import with_references
from serried.views.trace.gpu.document import gpu_document
from serried.views.trace.gpu.text import finding_lines
from serried.views.web.trace.payload import NamedTrace
from serried.views.web.wire.query import Words, read_language


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
