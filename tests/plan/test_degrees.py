from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.frameworks import Sizes, layout
from serried.plan.degrees import Degrees


def test_degrees_of_a_layout_multiply_to_its_world() -> None:
    made = layout("megatron", Sizes(64, tp=2, pp=4, cp=2, ep=2))
    assert Degrees.of(made, chunks=3) == Degrees(tp=2, pp=4, cp=2, dp=4, ep=2, etp=2, chunks=3)
    assert Degrees.of(made).world_size == 64


def test_experts_that_do_not_divide_a_stage_are_refused() -> None:
    with pytest.raises(InputError, match="ep=3 x etp=1 does not divide the 8 ranks"):
        Degrees(dp=8, ep=3)
