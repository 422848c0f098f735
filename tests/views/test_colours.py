"""The palette: every group a colour of its own, families apart for every kind of eye."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from serried.action import ActionKind
from serried.views.colours import (
    ACTIONS,
    FAMILIES,
    OTHERS,
    WAIT,
    Family,
    balance_colours,
    family,
    order_colours,
    shades,
)
from tests.views.ciede2000 import cielab, difference

Floats = NDArray[np.float64]
ALL = {**FAMILIES, **{f"other {i}": look for i, look in enumerate(OTHERS)}}
LETTERS = 0x10151D
LIGHT_PAGE, DARK_PAGE = 0xFFFFFF, 0x181C23
LIGHT_CELL = 0xF3F5F8

PAIRS = list(combinations(("dp", "tp", "pp", "cp"), 2))

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
EYES = {
    "usual": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritan": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}


def linear(rgb: NDArray[np.uint32] | int) -> Floats:
    """Returns 0xRRGGBB as linear light, shape (..., 3)."""
    packed = np.asarray(rgb)
    channels = np.stack([packed >> 16 & 255, packed >> 8 & 255, packed & 255], axis=-1) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def oklab(light: Floats) -> Floats:
    to_lms = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    to_lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    lab: Floats = np.cbrt(np.clip(light, 0, 1) @ to_lms.T) @ to_lab.T
    return lab


def contrast(one: int, other: int) -> float:
    """Returns the contrast ratio of two colours (WCAG 2)."""
    low, high = sorted(float(linear(rgb) @ [0.2126, 0.7152, 0.0722]) for rgb in (one, other))
    return (high + 0.05) / (low + 0.05)


def number(colour: str) -> int:
    return int(colour.removeprefix("#"), 16)


@pytest.mark.parametrize("look", ALL.values(), ids=ALL)
def test_each_group_has_a_colour_of_its_own(look: Family) -> None:
    assert len(set(shades(look, 256).tolist())) == 256


@pytest.mark.parametrize("look", FAMILIES.values(), ids=FAMILIES)
def test_the_first_sixteen_groups_can_be_told_apart(look: Family) -> None:
    lab = oklab(linear(shades(look, 16)))
    nearest = min(float(np.linalg.norm(a - b)) for a, b in combinations(lab, 2))
    assert nearest > 0.03
    neighbours = np.linalg.norm(np.diff(lab, axis=0), axis=1)
    assert neighbours.min() > 0.06


@pytest.mark.parametrize("look", ALL.values(), ids=ALL)
def test_dark_letters_can_be_read_on_every_shade(look: Family) -> None:
    assert min(contrast(LETTERS, shade) for shade in shades(look, 256).tolist()) >= 4.5


@pytest.mark.parametrize("colour", ACTIONS.values(), ids=[kind.name for kind in ACTIONS])
def test_dark_letters_can_be_read_on_every_action(colour: str) -> None:
    assert contrast(LETTERS, number(colour)) >= 4.5


def test_every_action_has_a_colour() -> None:
    assert set(ACTIONS) == set(ActionKind)


@pytest.mark.parametrize("look", ALL.values(), ids=ALL)
def test_ink_stands_out_on_light_and_on_dark_pages(look: Family) -> None:
    assert contrast(number(look.ink), LIGHT_PAGE) >= 4.5
    assert contrast(number(look.ink_on_dark), DARK_PAGE) >= 4.5


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_families_stay_apart_for_every_eye(eye: str, one: str, other: str) -> None:
    seen = [
        oklab(linear(shades(FAMILIES[dim], 64)) @ EYES[eye].T).mean(axis=0) for dim in (one, other)
    ]
    assert float(np.linalg.norm(seen[0] - seen[1])) > 0.05


@pytest.mark.parametrize("eye", EYES)
def test_kinds_of_work_stay_apart_for_every_eye_and_from_idle_time(eye: str) -> None:
    kinds = (ActionKind.F, ActionKind.B, ActionKind.I, ActionKind.W)
    colours = [number(ACTIONS[kind]) for kind in kinds] + [LIGHT_CELL]
    seen = oklab(linear(np.array(colours)) @ EYES[eye].T)
    nearest = min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2))
    assert nearest > 0.12


def nearest_actions(eye: str) -> tuple[float, str, str]:
    """Returns how far the two nearest colours of actions lie apart, and which they are."""
    colours = sorted({*ACTIONS.values()})
    seen = cielab(linear(np.array([number(each) for each in colours])) @ EYES[eye].T)
    pairs = combinations(range(len(colours)), 2)
    return min((difference(seen[i], seen[j]), colours[i], colours[j]) for i, j in pairs)


@pytest.mark.parametrize(
    ("eye", "apart"), [("usual", 10), ("protan", 5), ("deutan", 5), ("tritan", 4.5)]
)
def test_colours_of_any_two_actions_lie_well_apart(eye: str, apart: float) -> None:
    found, *pair = nearest_actions(eye)
    assert found >= apart, pair


def test_what_shares_a_colour_is_one_work_in_two_directions() -> None:
    kinds = list(ACTIONS)
    alike = {
        (one.name, other.name)
        for one, other in combinations(kinds, 2)
        if ACTIONS[one] == ACTIONS[other]
    }
    assert alike == {("SEND_F", "SEND_B"), ("RECV_F", "RECV_B"), ("UNSHARD", "RESHARD")}


def test_nothing_is_paler_than_a_wait() -> None:
    luminance = {
        kind: float(linear(number(ACTIONS[kind])) @ [0.2126, 0.7152, 0.0722]) for kind in ACTIONS
    }
    assert ACTIONS[ActionKind.RECV_F] == WAIT
    assert max(luminance, key=lambda kind: luminance[kind]) == ActionKind.RECV_F


def test_every_look_has_a_mark_of_its_own() -> None:
    marks = [look.mark for look in ALL.values()]
    assert len(set(marks)) == len(marks)


def test_a_kind_that_is_no_dimension_takes_the_others_in_turn() -> None:
    assert [family("mp", place=i) for i in range(5)] == [*OTHERS, OTHERS[0]]
    assert family("tp", place=3) is FAMILIES["tp"]


@pytest.mark.parametrize("look", ALL.values(), ids=ALL)
def test_the_colours_of_small_cells_stand_out_from_their_page_in_order(look: Family) -> None:
    light, dark = order_colours(look, on_dark=False), order_colours(look, on_dark=True)
    assert min(contrast(number(each), LIGHT_PAGE) for each in light) >= 3
    assert min(contrast(number(each), DARK_PAGE) for each in dark) >= 3
    lightness = [float(oklab(linear(number(each)))[0]) for each in light]
    assert lightness == sorted(lightness)


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("on_dark", [False, True])
def test_below_and_above_the_usual_stay_apart_for_every_eye(eye: str, on_dark: bool) -> None:
    ramp = [linear(number(each)) for each in balance_colours(on_dark=on_dark)]
    low, middle, high = (oklab(ramp[i] @ EYES[eye].T) for i in (0, 4, 8))
    assert min(np.linalg.norm(low - high), np.linalg.norm(low - middle)) > 0.12
    page = DARK_PAGE if on_dark else LIGHT_PAGE
    assert (
        min(contrast(number(each), page) for each in balance_colours(on_dark=on_dark)[::4]) >= 2.6
    )
