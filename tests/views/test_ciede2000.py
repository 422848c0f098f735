"""The measure of how far colours lie apart, held to the pairs that its authors publish."""

from __future__ import annotations

import numpy as np
import pytest

from tests.views.ciede2000 import cielab, difference

# Sharma, Wu and Dalal 2005, table 1: pairs 1, 4, 7, 10, 13, 17, 19, 25 and 34.
PUBLISHED = [
    ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
    ((50.0, -1.3802, -84.2814), (50.0, 0.0, -82.7485), 1.0000),
    ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
    ((50.0, 2.4900, -0.0010), (50.0, -2.4900, 0.0010), 7.1792),
    ((50.0, -0.0010, 2.4900), (50.0, 0.0009, -2.4900), 4.8045),
    ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
    ((50.0, 2.5, 0.0), (56.0, -27.0, -3.0), 31.9030),
    ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
]


@pytest.mark.parametrize(("one", "other", "apart"), PUBLISHED)
def test_published_pairs_lie_as_far_apart_as_published(
    one: tuple[float, ...], other: tuple[float, ...], apart: float
) -> None:
    assert difference(np.array(one), np.array(other)) == pytest.approx(apart, abs=5e-4)


def test_white_is_white() -> None:
    assert cielab(np.ones(3)) == pytest.approx([100, 0, 0], abs=1e-6)
