"""What is said of parameters without a gradient: whole names, or their numbers."""

from __future__ import annotations

from serried.diagnose.causes.logs.order import standing_causes
from serried.diagnose.diagnosis import Cause
from serried.diagnose.evidence.log_line import log_line
from serried.diagnose.evidence.text.reader import text_signs

UNUSED = "RuntimeError: Expected to have finished reduction in the prior iteration before starting"


def first_cause(*rows: str) -> Cause:
    lines = (log_line(row, "job.log", number) for number, row in enumerate(rows, 1))
    return next(cause for _, cause in standing_causes(list(text_signs(lines))))


def test_parameters_without_a_gradient_are_named_whole_as_far_as_there_is_room() -> None:
    names = [f"model.down_blocks.{block}.attentions.proj_attn.weight" for block in range(9)]
    cause = first_cause(
        UNUSED, f"Parameters which did not receive grad for rank 3: {', '.join(names)}"
    )
    assert f"({names[0]}, {names[1]}, …)" in str(cause.verdict)


def test_parameters_without_a_name_are_told_by_their_numbers() -> None:
    row = "Parameter indices which did not receive grad for rank 1: 11 16 21"
    cause = first_cause(UNUSED, row)
    assert str(cause.verdict).startswith("on rank 1 parameters numbered 11, 16, 21 got")
    assert "TORCH_DISTRIBUTED_DEBUG=DETAIL" in str(cause.cures[-1])
