"""A job is made to fit its framework: what it lacks goes, what is merely wrong stays to be read."""

from __future__ import annotations

import pytest

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import Sizes
from serried.mesh.sizes import COUNTS
from serried.views.web.layout.fitted import fitted_answer, sizes_taken
from serried.views.web.wire.query import read_query

EVERYTHING = {
    "world_size": ["64"],
    **{name: ["2"] for name in ("tp", "pp", "cp", "ep", "etp", "zero1", "nettest")},
    "zero": ["1"],
    "order": ["tp-cp-ep-pp-dp"],
    "set": ["num_experts=8", "plugin=moe"],
    "dims": ["dp,tp,pp,cp,ep"],
    "kind": ["embd", "nettest"],
}
"""What no framework takes as a whole."""


@pytest.mark.parametrize("name", frameworks.FRAMEWORKS)
def test_what_is_left_is_nothing_that_the_framework_lacks(name: str) -> None:
    asked = EVERYTHING | {"framework": [name]}
    changed = fitted_answer(asked)["words"]
    left = fitted_answer({**asked, **changed})
    # A kind can only be missed once the sizes fit; then nothing is left to take away.
    assert fitted_answer({**asked, **changed, **left["words"]})["told"] == []
    taken = sizes_taken(frameworks.find(name), {})
    assert {axis for axis in COUNTS if axis in changed} <= {*COUNTS} - {*taken} | {"zero"}


@pytest.mark.parametrize("name", frameworks.FRAMEWORKS)
def test_an_axis_that_is_not_taken_is_always_refused(name: str) -> None:
    framework = frameworks.find(name)
    lacking = {*COUNTS} - {*sizes_taken(framework, {}), "zero"}
    for axis in lacking:
        with pytest.raises(InputError):
            frameworks.layout(name, Sizes.of({"world_size": 4, axis: 2}, {}))


def test_settings_and_versions_decide_what_is_taken() -> None:
    assert "ep" not in sizes_taken(frameworks.find("nanotron"), {})
    assert "ep" in sizes_taken(frameworks.find("nanotron@0.4"), {})
    assert "etp" not in sizes_taken(frameworks.find("megatron@0.4.0"), {})
    assert "order" in sizes_taken(frameworks.find("megatron"), {})
    assert "order" not in sizes_taken(frameworks.find("internlm"), {})


def test_it_says_what_went_and_the_rest_can_be_laid_out() -> None:
    asked = {
        **{"framework": ["fsdp"], "world_size": ["16"], "tp": ["2"], "pp": ["4"], "zero": ["1"]},
        **{"dims": ["dp,tp,pp"], "kind": ["embd"]},
    }
    found = fitted_answer(asked)
    assert found["words"] == {"pp": ["1"], "zero": [""], "dims": ["dp,tp"], "kind": []}
    assert found["told"] == [
        "Set to 1, as FSDP2 / HSDP has no such axis: pp=4",
        "Left out, as FSDP2 / HSDP does not have it: zero=1, embd",
    ]
    assert fitted_answer(asked | {"lang": ["zh"]})["told"][0].endswith("已改为 1：pp=4")
    layout = read_query({**asked, **found["words"]}).layout
    assert (layout.sizes["tp"], layout.sizes["dp"]) == (2, 8)


def test_sizes_that_only_do_not_divide_are_left_for_the_user() -> None:
    asked = {"framework": ["megatron"], "world_size": ["16"], "tp": ["3"], "dims": ["dp,cp"]}
    assert fitted_answer(asked) == {"words": {}, "told": []}
