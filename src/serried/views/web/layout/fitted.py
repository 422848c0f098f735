"""A job made to fit its framework: what the framework does not have is left out, and said.

framework=fsdp  tp=2 pp=4 zero=1       tp=2
                                       Set to 1, as FSDP2 / HSDP has no such axis: pp=4
                                       Left out, as FSDP2 / HSDP does not take it: zero=1
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from serried import frameworks
from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.frameworks import Framework
from serried.frameworks.sharding import MODULES as STAGED
from serried.launch.request import DEFAULT_FRAMEWORK, LAYER_SETTINGS
from serried.mesh import Layout
from serried.mesh.sizes import COUNTS, SIZES, TABLE, Sizes, read_settings
from serried.views.sentences import say
from serried.views.web.wire.query import Words, read_each, read_language, read_word, request_of

REFUSALS = (
    "{axis}={size}, but {framework} has no {axis}; it takes {takes}",
    "ep={ep} cannot be on nanotron main: tp x cp x dp x pp is the whole world there, "
    "and the grid has ep besides; nanotron@0.4 takes it",
    "megatron {version} has no setting '{key}'; versions that do: {when}",
)
"""How frameworks refuse an axis that they do not have; others of their sentences say what would
work, and are for the user to read."""
TRIED = 2
"""The size that an axis is tried with, over as many ranks."""


def fitted_answer(words: Words) -> dict[str, Any]:
    """Returns the words that a question changes to fit its framework, and the sentences on them.

    Both are empty where nothing is foreign: what is wrong then is for the user to mend.

    >>> found = fitted_answer({"framework": ["fsdp"], "world_size": ["8"], "pp": ["4"]})
    >>> found["words"], found["told"]
    ({'pp': ['1']}, ['Set to 1, as FSDP2 / HSDP has no such axis: pp=4'])
    """
    framework = frameworks.find(read_word(words, "framework") or DEFAULT_FRAMEWORK)
    settings = read_settings(text for text in words.get("set", ()) if text.strip())
    known = {key: each for key, each in settings.items() if key in framework.options}
    foreign = [name for name in SIZES if _is_foreign(framework, known, name, words)]
    changed = {name: [_usual(name)] for name in foreign}
    if known != settings:
        changed["set"] = [f"{key}={each}" for key, each in known.items()]
    gone = _gone({**words, **changed})
    for name, names in gone.items():
        kept = [each for each in _shown(words, name) if each not in names]
        changed[name] = [",".join(kept)] if name == "dims" else kept
    axes = [f"{name}={read_word(words, name)}" for name in foreign if _usual(name)]
    others = [
        *(f"{name}={read_word(words, name)}" for name in foreign if not _usual(name)),
        *(f"{key}={each}" for key, each in settings.items() if key not in known),
        *(each for names in gone.values() for each in names if each not in foreign),
    ]
    lang = read_language(words)
    return {"words": changed, "told": [say(each, lang) for each in _told(framework, axes, others)]}


def sizes_taken(framework: Framework, settings: Mapping[str, str]) -> list[str]:
    """Returns the axes that a framework has, at its version and under these settings.

    ``zero`` is among them where the stage says what is shared, ``order`` where it can be chosen.

    >>> sizes_taken(frameworks.find("fsdp"), {})
    ['tp', 'dp', 'zero']
    """
    return list(_taken(framework.name, framework.version, tuple(settings.items())))


@lru_cache(maxsize=256)
def _taken(name: str, version: str, settings: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    framework = frameworks.FRAMEWORKS[name].at(version)
    axes = [axis for axis in COUNTS if axis != "zero"]
    taken = [axis for axis in axes if not _lacks(framework, dict(settings), axis)]
    stage = ("zero",) if name in STAGED else ()
    return (*taken, *stage, *(("order",) if _orders(framework) else ()))


def _orders(framework: Framework) -> bool:
    """Tells whether a framework takes any order of axes but its own."""
    own = framework.default_order
    separator = "-" if "-" in own else ","
    reversed_ = separator.join(reversed(own.split(separator)))
    others = {*framework.orders, reversed_} - {own}
    tried = (_tried(framework, {}, {"world_size": TRIED, "order": each}) for each in others)
    return any(isinstance(each, Layout) for each in tried)


def _is_foreign(framework: Framework, settings: Mapping[str, str], name: str, words: Words) -> bool:
    """Tells whether a size that was asked for is none that the framework has."""
    told = read_word(words, name)
    if name == "world_size" or told in ("", _usual(name)):
        return False
    if name in COUNTS and name != "zero":
        return _lacks(framework, settings, name)
    # A stage or an order, which no other size makes right.
    asked = {"world_size": TRIED, name: TABLE[name].read(told)}
    return isinstance(_tried(framework, {}, asked), InputError)


def _lacks(framework: Framework, settings: Mapping[str, str], axis: str) -> bool:
    """Tells whether a framework has no such axis under some settings."""
    told = {key: each for key, each in settings.items() if key not in LAYER_SETTINGS}
    found = _tried(framework, told, {"world_size": TRIED, axis: TRIED})
    return isinstance(found, InputError) and found.template in REFUSALS


def _tried(
    framework: Framework, settings: Mapping[str, str], asked: Mapping[str, object]
) -> Layout | InputError:
    """Returns a layout, or why the framework refuses it."""
    try:
        at = f"{framework.name}@{framework.version}"
        return frameworks.layout(at, Sizes.of(asked, settings))
    except InputError as error:
        return error


def _gone(words: Words) -> dict[str, list[str]]:
    """Returns what was in view that the layout does not have: dimensions, other kinds."""
    try:
        layout = request_of(words).layout()
    except InputError:
        return {}
    dims = [dim for dim in _shown(words, "dims") if dim not in layout.dims]
    known = {kind.name for kind in layout.kinds}
    kinds = [kind for kind in _shown(words, "kind") if kind not in known]
    return {name: each for name, each in (("dims", dims), ("kind", kinds)) if each}


def _shown(words: Words, name: str) -> list[str]:
    if name == "dims":
        return [each for each in read_word(words, name).split(",") if each.strip()]
    return list(read_each(words, name))


def _told(framework: Framework, axes: list[str], others: list[str]) -> list[Sentence]:
    """Returns what to say of axes that were set to 1 and of what was left out."""
    title = framework.title
    found = []
    if axes:
        given = listed(axes, limit=20)
        found.append(
            said("Set to 1, as {framework} has no such axis: {given}", framework=title, given=given)
        )
    if others:
        given = listed(others, limit=20)
        found.append(
            said("Left out, as {framework} does not have it: {given}", framework=title, given=given)
        )
    return found


def _usual(name: str) -> str:
    """Returns what a size is where nothing is said of it, "" where others decide."""
    usual = TABLE[name].default
    return "" if usual is None else str(usual)
