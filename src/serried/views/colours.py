"""One palette for text and web: a hue family and a mark per dimension, a shade per group.

Shades are points of OKLCH (Björn Ottosson, 2020), where equal steps look equally far:

    lightness   a band so light that dark letters on a shade reach a contrast of 4.5
    hue         a band around the family's own; the families of dp, tp, pp and cp stay apart
                for red-, green- and blue-blind eyes too (a test simulates all three)

Colour never stands alone: a dimension has a mark as well, and a group its number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """Says how one kind of groups looks: its mark, and its band of colours in OKLCH."""

    mark: str
    hue: float
    """Middle of the hue band, in degrees."""
    chroma: float
    lightness: tuple[float, float]
    """The darkest and the lightest shade."""

    @property
    def ink(self) -> str:
        """The strong colour of lines and letters on a light page."""
        return _hex(_srgb(0.47, self.chroma * 1.15, self.hue))

    @property
    def ink_on_dark(self) -> str:
        """The strong colour on a dark page."""
        return _hex(_srgb(0.82, self.chroma, self.hue))


FAMILIES = {
    "dp": Family("triangle", 257, 0.137, (0.60, 0.86)),
    "tp": Family("pentagon", 60, 0.149, (0.61, 0.83)),
    "pp": Family("hexagon", 148, 0.135, (0.66, 0.93)),
    "cp": Family("square", 336, 0.115, (0.615, 0.84)),
    "ep": Family("diamond", 105, 0.120, (0.66, 0.90)),
}
"""The dimensions' own looks; every other kind takes one of ``OTHERS`` in turn."""

OTHERS = (
    Family("circle", 20, 0.08, (0.64, 0.88)),
    Family("star", 290, 0.08, (0.64, 0.88)),
    Family("plus", 200, 0.07, (0.64, 0.88)),
    Family("trapezium", 125, 0.07, (0.64, 0.88)),
)

WAIT = "#eef1f5"
"""The colour of a wait on a light page: nearly the page's own, for nothing happens in it."""

ACTIONS = {
    ActionKind.F: "#5093c2",
    ActionKind.B: "#d47d20",
    ActionKind.I: "#eec743",
    ActionKind.W: "#38cbbd",
    ActionKind.SEND_F: "#8d98a6",
    ActionKind.RECV_F: WAIT,
    ActionKind.SEND_B: "#8d98a6",
    ActionKind.RECV_B: WAIT,
    ActionKind.REDUCE_GRAD: "#a686e3",
    ActionKind.OPTIMIZER: "#ecc4b3",
    ActionKind.OVERLAP_F_B: "#ddc8e7",
    ActionKind.UNSHARD: "#84aaa5",
    ActionKind.RESHARD: "#84aaa5",
    ActionKind.RING: "#6db9d6",
    ActionKind.ALL_TO_ALL: "#b5766a",
    ActionKind.ALL_GATHER: "#abb32c",
    ActionKind.REDUCE_SCATTER: "#aeac9e",
    ActionKind.SPAN: "#cde685",
    ActionKind.ALL_REDUCE: "#957b9a",
    ActionKind.BROADCAST: "#928547",
    ActionKind.IN_FLIGHT: "#a9b1fc",
}
"""The colour of a span by what it does: any two lie 10 of CIEDE2000 apart, and 5 for red- and for
green-blind eyes. Waits are palest, for nothing is computed in them; dark on a dark page."""

OF_SIXTEEN = {
    ActionKind.F: "cyan",
    ActionKind.B: "yellow",
    ActionKind.I: "bright_yellow",
    ActionKind.W: "green",
    ActionKind.SEND_F: "white",
    ActionKind.RECV_F: "bright_white",
    ActionKind.REDUCE_GRAD: "magenta",
    ActionKind.OPTIMIZER: "bright_magenta",
    ActionKind.OVERLAP_F_B: "bright_cyan",
}
"""What stands for these on a terminal of 16 colours, where the nearest of F's and W's is one."""

STATES = {"parameters": "#5093c2", "gradients": "#d47d20", "optimizer": "#38cbbd"}
"""The colour of what a rank holds of its weights."""

HUE_BAND_DEGREES = 31.0
_PLASTIC = 1.324717957244746
"""The root of x^3 = x + 1: its powers spread points evenly in two dimensions (Roberts' R2)."""
_START = (0.305, 0.036)
"""Where the points begin: of 1,500 starts the one whose first 16 lie farthest apart."""


def family(dim: str, *, place: int = 0) -> Family:
    """Returns the look of a dimension, or the ``place``-th of the others for any other kind."""
    return FAMILIES.get(dim) or OTHERS[place % len(OTHERS)]


def shades(look: Family, count: int) -> NDArray[np.uint32]:
    """Returns one colour per group as 0xRRGGBB: neighbours in number lie far apart in the band.

    >>> [f"#{shade:06x}" for shade in shades(FAMILIES["tp"], 2)]
    ['#e4705c', '#f3b139']
    """
    number = np.arange(count)
    up = np.mod(_START[0] + number / _PLASTIC**2, 1.0)
    along = np.mod(_START[1] + number / _PLASTIC, 1.0)
    darkest, lightest = look.lightness
    lightness = darkest + (lightest - darkest) * up
    hue = look.hue + HUE_BAND_DEGREES * (2 * along - 1)
    red, green, blue = (np.round(255 * channel) for channel in _srgb(lightness, look.chroma, hue))
    packed: NDArray[np.uint32] = (red * 65536 + green * 256 + blue).astype(np.uint32)
    return packed


ORDER_STEPS = 9
_ORDER_HUES = (-12.0, 60.0)
"""Where the hues of a ramp begin and end, from the family's own."""


def order_colours(look: Family, *, on_dark: bool) -> list[str]:
    """Returns a ramp from the first group of a kind to its last, for maps whose cells are small.

    Neighbours in number look alike, so that thousands of groups make bands and no noise. Every
    colour stands out from its page by a contrast of 3, and lightness alone tells the order.

    >>> order_colours(FAMILIES["tp"], on_dark=False)[::4]
    ['#702f03', '#836105', '#81980c']
    """
    up = np.linspace(0.0, 1.0, ORDER_STEPS)
    lightness = 0.93 - 0.4 * up if on_dark else 0.39 + 0.25 * up
    hue = look.hue + _ORDER_HUES[0] + (_ORDER_HUES[1] - _ORDER_HUES[0]) * up
    red, green, blue = _srgb(lightness, look.chroma, hue)
    return [_hex(each) for each in zip(red, green, blue, strict=True)]


HEAT_STEPS = 9


def heat_colours(*, on_dark: bool) -> list[str]:
    """Returns a ramp from little to much for a figure: lightness alone tells it, whatever the eye.

    What is much stands out from the page: it is darkest on a light one, brightest on a dark one.

    >>> heat_colours(on_dark=False)[::4]
    ['#fff4ca', '#1ea8a5', '#3e2d76']
    """
    up = np.linspace(0.0, 1.0, HEAT_STEPS)
    lightness = 0.32 + 0.62 * up if on_dark else 0.965 - 0.605 * up
    much = 1 - up if on_dark else up
    red, green, blue = _srgb(lightness, 0.12, 95 + 195 * much)
    return [_hex(each) for each in zip(red, green, blue, strict=True)]


def balance_colours(*, on_dark: bool) -> list[str]:
    """Returns a ramp from below to above what is usual: blue, the page's grey, orange.

    Blue and orange stay apart for red-, green- and blue-blind eyes.

    >>> balance_colours(on_dark=False)[::4]
    ['#023e6f', '#9e9e9e', '#612c05']
    """
    away = np.abs(np.linspace(-1.0, 1.0, HEAT_STEPS))
    lightness = 0.54 + 0.24 * away if on_dark else 0.7 - 0.34 * away
    hue = np.where(np.arange(HEAT_STEPS) < HEAT_STEPS // 2, 250.0, 50.0)
    red, green, blue = _srgb(lightness, 0.13 * np.minimum(1.0, 2 * away), hue)
    return [_hex(each) for each in zip(red, green, blue, strict=True)]


def _srgb(
    lightness: Floats | float, chroma: Floats | float, hue: Floats | float
) -> tuple[Floats, Floats, Floats]:
    """Returns sRGB channels in 0..1, the chroma lowered point by point until they fit."""
    light, angle = np.broadcast_arrays(np.asarray(lightness, float), np.radians(hue))
    fitted = np.broadcast_to(np.asarray(chroma, float), light.shape).copy()
    # Forty rounds bring the chroma down to an eighth; what is still outside then is clipped.
    for _ in range(40):
        channels = _linear(light, fitted, angle)
        outside = np.any([(c < 0) | (c > 1) for c in channels], axis=0)
        if not outside.any():
            break
        fitted = np.where(outside, fitted * 0.95, fitted)
    red, green, blue = (_companded(np.clip(c, 0, 1)) for c in channels)
    return red, green, blue


def _linear(light: Floats, chroma: Floats, angle: Floats) -> tuple[Floats, Floats, Floats]:
    """Returns linear sRGB of an OKLCH point, by Ottosson's published matrices."""
    a, b = chroma * np.cos(angle), chroma * np.sin(angle)
    long = (light + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (light - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (light - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )


def _companded(linear: Floats) -> Floats:
    """Returns sRGB from linear light (IEC 61966-2-1)."""
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _hex(channels: tuple[Floats, Floats, Floats]) -> str:
    return "#" + "".join(f"{math.floor(255 * float(c) + 0.5):02x}" for c in channels)


def hue_colour(turn: float) -> str:
    """Returns the colour of one of many alike things, by its part of a turn around the hues.

    All are of one lightness, dark enough for a line on a light page.

    >>> hue_colour(0.0), hue_colour(0.5)
    ('#b35759', '#14888d')
    """
    return _hex(_srgb(0.57, 0.12, 20 + 360 * (turn % 1.0)))
