"""The table of groups leads with the kinds of dimensions, in the order of the workbench."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from serried import frameworks
from serried.frameworks import FRAMEWORKS
from serried.mesh.sizes import Sizes
from serried.views.cli.groups.kinds import main_kinds

FIELDS = files("serried.views.web") / "static" / "desk" / "state" / "fields.js"
ONE_GPU = Sizes(world_size=1)


def offered() -> list[str]:
    """Returns the dimensions in the order in which the page offers them."""
    found = re.search(r"^const ORDER = \[(.+)\];$", FIELDS.read_text(encoding="utf-8"), re.M)
    assert found
    return re.findall(r'"(\w+)"', found[1])


@pytest.mark.parametrize("name", sorted(set(FRAMEWORKS) - {"custom"}))
def test_the_terminal_lists_dimensions_in_the_order_of_the_page(name: str) -> None:
    layout = frameworks.layout(name, ONE_GPU)
    order = [layout.dims[dim] for dim in offered() if dim in layout.dims]
    assert main_kinds(layout)[: len(set(order))] == list(dict.fromkeys(order))
