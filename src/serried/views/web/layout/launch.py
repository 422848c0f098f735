"""What the page shows of a launch file: each size with its place, what is missing, the job.

It is what ``serried groups FILE --sources`` and ``--advice`` print, made by the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serried.errors import InputError
from serried.finding import Finding, said
from serried.frameworks import Sizes
from serried.launch import LaunchConfig, Missing, read, read_among
from serried.mesh import Layout
from serried.mesh.advice import advise
from serried.views.job.job import OPTIONS, UNASKED, Asked, option_key
from serried.views.job.layers import layers_of
from serried.views.job.sources import format_name, remarks, sources_of
from serried.views.layout.document import advice_document
from serried.views.layout.sources import Told
from serried.views.sentences import say
from serried.views.web.wire.dropped import Dropped
from serried.views.web.wire.query import (
    Words,
    read_count,
    read_language,
    read_query,
    read_settings,
    read_word,
    words_of,
)

TYPES = ("dp", "tp", "pp", "cp")
"""Dimensions that are brought into view where the job splits along them."""


def launch_answer(files: Sequence[Dropped], words: Words) -> dict[str, Any]:
    """Returns the ``serried.launch/1`` document of files, ``words`` going before what they say.

    ``words`` are answers to what was missing: a framework, sizes by their neutral names, and
    settings. ``job`` is what the page's own form would hold, None while something is missing.
    Raises InputError where the command line would, but leaves a refusal of sizes that are all
    known to the question that the page asks with them.
    """
    lang = read_language(words)
    asked = asked_of(files, words)
    missing = asked.missing()
    sizes = None if missing else asked.sizes()
    layout = _layout(asked, sizes) if sizes else None
    findings, notes = _findings(asked, layout) if layout else ([], [])
    config = asked.config
    assert config is not None
    return {
        "schema": "serried.launch/1",
        "file": config.file,
        "format": format_name(config.format, lang),
        "sources": [_source(each, asked) for each in sources_of(asked, lang, layout)],
        "missing": [_missing(each, lang) for each in missing],
        "notes": [*remarks(asked, lang), *(say(note, lang) for note in notes)],
        "findings": advice_document(layout, findings, lang)["findings"] if layout else [],
        "job": _job(asked, sizes, layout) if sizes else None,
    }


def asked_of(files: Sequence[Dropped], words: Words) -> Asked:
    """Returns what was asked by files and by words; raises InputError for what cannot be read."""
    options = dict(UNASKED)
    options["framework"] = read_word(words, "framework") or None
    options["order"] = read_word(words, "order") or None
    world_size = read_count(words, "world_size")
    options["world_size"] = None if world_size is None else (world_size,)
    for name in set(OPTIONS) - {"order"}:
        options[option_key(name)] = read_count(words, name)
    return Asked.of(_config(files), options, settings=read_settings(words))


def _config(files: Sequence[Dropped]) -> LaunchConfig:
    """Reads one file, or the one launch file among several, as of a folder."""
    if len(files) == 1:
        return read(files[0].text(), name=files[0].name)
    return read_among(_texts(files), called=said("what was given"))


def _texts(files: Sequence[Dropped]) -> Mapping[str, str]:
    """Returns the texts among files; as in a folder, what is none is no launch file either."""
    texts = {}
    for each in files:
        try:
            texts[each.name] = each.text()
        except InputError:
            continue
    return texts


def _layout(asked: Asked, sizes: Sizes) -> Layout | None:
    """Returns the layout; None where the page's own question will be refused, and say why.

    Raises InputError for what only the file says, such as a dp that the others do not leave.
    """
    try:
        read_query(_words(asked, sizes)).layout()
    except InputError:
        return None
    return asked.layout()


def _findings(asked: Asked, layout: Layout) -> tuple[list[Finding], list[InputError]]:
    """Returns all advice, and what is wrong with how layers divide, which moves no rank."""
    placement = asked.placement(layout.world_size)
    try:
        return advise(layout, placement, layers=layers_of(asked, layout)), []
    except InputError as error:
        return advise(layout, placement), [error]


def _words(asked: Asked, sizes: Sizes) -> dict[str, list[str]]:
    return words_of(asked.framework, sizes, asked.placement(sizes.world_size))


def _job(asked: Asked, sizes: Sizes, layout: Layout | None) -> dict[str, list[str]]:
    """Returns the words of the page's form, its split dimensions in view."""
    dims = list(layout.dims) if layout else [*TYPES]
    known = layout.sizes if layout else {name: getattr(sizes, name) or 1 for name in TYPES}
    split = [dim for dim in TYPES if dim in dims and known.get(dim, 1) > 1]
    return _words(asked, sizes) | {"dims": [",".join(split or dims[:1])]}


def _source(told: Told, asked: Asked) -> dict[str, Any]:
    settings = {*asked.settings, *(asked.config.options if asked.config else ())}
    return {
        "name": told.name,
        "value": str(told.value),
        "from": told.where,
        "is_setting": told.name in settings,
    }


def _missing(missing: Missing, lang: str) -> dict[str, str]:
    is_size = missing.name in (*OPTIONS, "world_size")
    kind = "size" if is_size else "framework" if missing.name == "framework" else "setting"
    return {
        "name": missing.name,
        "kind": kind,
        "because": say(missing.because, lang),
    }
