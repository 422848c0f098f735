"""Text and marks stand out of what is behind them, in both themes, as WCAG 2.2 asks: 4.5 and 3."""

from __future__ import annotations

import re

import pytest

from serried.frameworks import FRAMEWORKS
from serried.views.colours import family
from serried.views.web.diagnose.cases import COLOURS as STATES
from serried.views.web.edition import STATIC

THEMES = ("light", "dark")
GROUNDS = ("panel", "ground", "cell")
TEXTS = [(ink, ground) for ink in ("text", "faint") for ground in GROUNDS]
TEXTS += [("accent", "panel"), ("on-accent", "accent"), ("alarm", "panel"), ("accent", "cell")]
TEXTS += [("alarm", "alarm-ground"), ("notice", "notice-ground")]
MARKS = [("border", ground) for ground in GROUNDS] + [("wait-line", "wait"), ("accent", "ground")]


def variables() -> dict[str, dict[str, str]]:
    """Returns the colours of each theme; what dark does not say is as in light."""
    style = (STATIC / "style" / "base.css").read_text(encoding="utf-8")
    themes = re.search(
        r":root \{(.*?)\}.*?prefers-color-scheme: dark\) \{\s*:root\S* \{(.*?)\}", style, re.S
    )
    assert themes, "base.css begins with light's colours, then dark's"
    light, dark = themes.groups()
    said = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part)) for part in (light, dark)]
    return {"light": said[0], "dark": said[0] | said[1]}


COLOURS = variables()


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(part * each for part, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_black_on_white_has_the_most_contrast_that_there_is() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("ink", "ground"), TEXTS)
def test_text_can_be_read(theme: str, ink: str, ground: str) -> None:
    assert contrast(COLOURS[theme][ink], COLOURS[theme][ground]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("mark", "ground"), MARKS)
def test_edges_of_controls_and_waits_can_be_seen(theme: str, mark: str, ground: str) -> None:
    assert contrast(COLOURS[theme][mark], COLOURS[theme][ground]) >= 3


@pytest.mark.parametrize("theme", THEMES)
def test_marks_of_all_kinds_can_be_seen(theme: str) -> None:
    for dim in sorted({dim for each in FRAMEWORKS.values() for dim in each.dims}):
        look = family(dim)
        ink = look.ink if theme == "light" else look.ink_on_dark
        for ground in ("panel", "cell"):
            assert contrast(ink, COLOURS[theme][ground]) >= 3, dim


@pytest.mark.parametrize("theme", THEMES)
def test_who_is_in_a_hang_stands_out_of_the_map(theme: str) -> None:
    for colour in STATES[theme][1:]:
        assert contrast(colour, COLOURS[theme]["panel"]) >= 3
