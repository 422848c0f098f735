"""Asks a framework for a layout in one line of words, as the tables of these tests do."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

from serried import frameworks
from serried.frameworks import Sizes
from serried.mesh import Layout

NEUTRAL = {each.name for each in dataclasses.fields(Sizes)} - {"world_size", "options"}


def asked(line: str) -> Layout:
    """Returns the layout of ``NAME[@VERSION] WORLD key=value …``.

    A key is a neutral size (``tp=2``) or, where there is none of that name, a setting of the
    framework, as ``--set`` takes it. Words are split as a shell does; a backslash and n in a
    setting make a new line.
    """
    name, world, *words = shlex.split(line)
    sizes: dict[str, Any] = {}
    options: dict[str, str] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key in NEUTRAL:
            sizes[key] = value if key == "order" else int(value)
        else:
            options[key] = value.replace("\\n", "\n")
    return frameworks.layout(name, Sizes(int(world), **sizes, options=options))
