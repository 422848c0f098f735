"""The ranks of a group stand for the list of them, and are made only when they are looked at."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serried.frameworks import Sizes, layout
from serried.mesh import Mesh
from serried.mesh.members import Members, place_within

AXES = ("a", "b", "c", "d")


@st.composite
def members(draw: st.DrawFn) -> Members:
    sizes = {axis: draw(st.integers(1, 4)) for axis in AXES}
    mesh = Mesh(sizes, draw(st.integers(0, 3)))
    if draw(st.booleans()):
        mesh = Mesh(sizes, explicit=tuple(draw(st.permutations(range(mesh.num_ranks)))))
    kept = draw(st.permutations(AXES))[: draw(st.integers(0, 4))]
    dropped = [axis for axis in AXES if axis not in kept]
    count = mesh.groups(*kept).shape[0]
    first = draw(st.integers(0, count - 1))
    rows = range(first, draw(st.integers(first + 1, count)))
    by = tuple(draw(st.permutations(dropped)))
    return Members(mesh, rows, tuple(kept), by, tuple(draw(st.permutations(kept))))


@given(members(), st.data())
def test_members_are_those_of_the_rows(made: Members, data: st.DataObject) -> None:
    table = made.mesh.groups(*made.axes, by=made.by, within=made.within)
    listed = table[made.rows.start : made.rows.stop].reshape(-1).tolist()
    assert made == listed
    assert listed == made
    assert [made[i] for i in range(len(made))] == listed
    cut = data.draw(st.slices(len(listed)))
    assert made[cut] == listed[cut]
    rank = data.draw(st.sampled_from(listed))
    assert made.index(rank) == listed.index(rank)
    assert place_within(made, rank) == sorted(listed).index(rank) == place_within(listed, rank)
    assert -1 not in made


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("megatron", {"tp": 8, "pp": 8, "cp": 2, "ep": 8}),
        ("megatron@0.19.0", {"tp": 8, "pp": 8, "ep": 8}),
        ("internevo", {"tp": 8, "pp": 8}),
        ("deepspeed", {"tp": 8, "pp": 8, "ep": 8}),
        ("fsdp", {}),
        ("paddle", {"tp": 8, "pp": 8}),
    ],
)
def test_one_rank_of_a_million_lists_no_others(
    name: str, sizes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data group may hold 16,384 ranks and an optimizer instance all: none is listed."""
    made = layout(name, Sizes(1 << 20, **sizes))
    monkeypatch.setattr(Members, "array", None)
    rows, listed = Mesh.rows, []

    def counted(mesh: Mesh, *words: object, **more: object) -> object:
        table = rows(mesh, *words, **more)  # type: ignore[arg-type]
        listed.append(table.size)
        return table

    monkeypatch.setattr(Mesh, "rows", counted)
    found = made.groups_of(77777)
    assert {len(lists) for lists in found.values()} <= {1, 2}
    assert sum(listed) < 1 << 15
