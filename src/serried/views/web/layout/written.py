"""The launch config of a layout, as ``serried plan --emit`` writes it."""

from __future__ import annotations

from typing import Any

from serried.launch.write import WRITERS, write
from serried.views.web.wire.query import Query

OTHERWISE = "torchrun"
"""What starts a framework that has no config of its own for sizes."""


def written_answer(query: Query) -> dict[str, Any]:
    """Returns the launch config of a layout, in its framework's form or as a command of torchrun.

    Raises InputError for a layout that no file of its framework holds.

    >>> from serried.views.web.wire.query import read_query
    >>> answer = written_answer(read_query({"world_size": ["16"], "tp": ["2"]}))
    >>> "--tensor-model-parallel-size 2" in answer["text"], answer["target"]
    (True, 'megatron')
    """
    name = query.layout.framework
    target = name if name in WRITERS else OTHERWISE
    text = write(target, query.layout, query.placement, sizes=query.request.sizes())
    return {"schema": "serried.launch-text/1", "target": target, "text": text}
