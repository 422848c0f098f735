"""Every control is alive: each field, select, box and button of the page changes an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from serried import frameworks
from tests.page import Open
from tests.soaked import rows
from tests.views.web.workbench import Workbench

WALK = (Path(__file__).parent / "walk.js").read_text(encoding="utf-8")
BASE = {"world_size": "16", "tp": "1", "pp": "1", "gpus_per_node": "4", "dims": "dp"}
OTHERS = ({"sharded": "1"}, {"tp": "2", "dims": "dp,tp"})
SITUATIONS = {
    # Its replicas are said in a setting, and nothing else then fits but the axis beside it.
    "accelerate": ({"sharded": "1"}, {"set": "dp_shard_size=8"}),
    "paddle": (*OTHERS, {"set": "sharding_degree=16\nmoe_sharding_degree=8"}),
    "megatron": (*OTHERS, {"ep": "2"}),
    "internlm": (*OTHERS, {"kind": "nettest"}),
    "internevo": (*OTHERS, {"kind": "nettest"}),
}
"""Jobs beside the plain one: some sizes say something only where another does."""
QUICK = "megatron"
"""The framework with the most controls; all others are walked by `make soak`."""


def jobs_of(name: str) -> list[str]:
    """Returns the addresses in which the form is walked for a framework."""
    jobs = ({}, *SITUATIONS.get(name, OTHERS))
    return [f"?{urlencode({'framework': name, **BASE, **job, 'lang': 'en'})}" for job in jobs]


def walked(workbench: Workbench, call: str, *values: object) -> Any:
    """Calls a function of ``walk.js`` in the page."""
    return workbench.page.evaluate(f"(values) => ({WALK}).{call}(...values)", list(values))


@pytest.mark.parametrize("name", rows(frameworks.FRAMEWORKS, {*frameworks.FRAMEWORKS} - {QUICK}))
def test_every_control_of_the_form_changes_what_a_framework_makes(
    page_of: Open, plain: str, name: str
) -> None:
    workbench = page_of(plain, "lang=en", width=700, height=500)
    walk = walked(workbench, "form", jobs_of(name))
    assert walk["dead"] == []
    always = {"#type", "#world_size", "#gpus_per_node", "#gpus_per_rank", "#nvlink_domain", "#set"}
    assert always - set(walk["walked"]) == set()
