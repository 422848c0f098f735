"""How far two colours lie apart for an eye: CIEDE2000 over CIE L*a*b* of sRGB under D65.

Sharma, Wu and Dalal, "The CIEDE2000 color-difference formula", Color Research and Application 30
(2005), with the pairs of their table 1 in ``test_ciede2000.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)


def cielab(light: Floats) -> Floats:
    """Returns L*, a* and b* of linear sRGB, shape (..., 3)."""
    xyz = np.clip(light, 0, 1) @ _XYZ.T / _XYZ.sum(axis=1)
    root = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    x, y, z = np.moveaxis(root, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def difference(one: Floats, other: Floats) -> float:
    """Returns how far two points of CIE L*a*b* lie apart."""
    (light1, a1, b1), (light2, a2, b2) = one, other
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    grey = 1 + 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    chroma1, chroma2 = np.hypot(a1 * grey, b1), np.hypot(a2 * grey, b2)
    hue1 = np.degrees(np.arctan2(b1, a1 * grey)) % 360
    hue2 = np.degrees(np.arctan2(b2, a2 * grey)) % 360
    is_grey = chroma1 * chroma2 == 0
    turn = 0.0 if is_grey else (hue2 - hue1 + 180) % 360 - 180
    light, chroma = (light1 + light2) / 2, (chroma1 + chroma2) / 2
    hue = hue1 + hue2 if is_grey else (hue1 + turn / 2) % 360
    weight = (
        1
        - 0.17 * np.cos(np.radians(hue - 30))
        + 0.24 * np.cos(np.radians(2 * hue))
        + 0.32 * np.cos(np.radians(3 * hue + 6))
        - 0.20 * np.cos(np.radians(4 * hue - 63))
    )
    by_light = (light2 - light1) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    by_chroma = (chroma2 - chroma1) / (1 + 0.045 * chroma)
    by_hue = (
        2
        * np.sqrt(chroma1 * chroma2)
        * np.sin(np.radians(turn / 2))
        / (1 + 0.015 * chroma * weight)
    )
    bend = np.radians(60 * np.exp(-(((hue - 275) / 25) ** 2)))
    turned = -2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7)) * np.sin(bend)
    return float(np.sqrt(by_light**2 + by_chroma**2 + by_hue**2 + turned * by_chroma * by_hue))
