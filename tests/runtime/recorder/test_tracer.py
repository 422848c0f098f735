"""The parts of a span are named once: what keeps one takes them in that order."""

from __future__ import annotations

import inspect

from serried.runtime.recorder.tracer import KeepSpan, SpanParts
from serried.trace.model.record_writer import Add


def parts_of(call: object) -> list[tuple[str, object]]:
    """Returns the names and defaults that a call takes, times by their names alone."""
    (_, *parameters) = inspect.signature(call).parameters.values()  # type: ignore[arg-type]
    return [(each.name.removesuffix("_ns"), each.default) for each in parameters]


def test_what_keeps_a_span_takes_its_parts_in_their_order() -> None:
    none = inspect.Parameter.empty
    parts = [(name, SpanParts._field_defaults.get(name, none)) for name in SpanParts._fields]
    assert parts.pop()[0] == "moves"  # which are kept behind the span
    assert parts_of(KeepSpan.__call__) == parts[:-1]  # of the step that runs
    assert parts_of(Add.__call__)[:-1] == parts[:-1]
    assert parts_of(Add.__call__)[-1][0] == parts[-1][0]
