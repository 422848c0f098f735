"""What the page shows of a launch file: each size with its place, what is missing, the job.

It is what ``serried groups FILE --sources`` and ``--advice`` print, made by the same functions,
and beside it the model and its training, as ``serried plan FILE`` takes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from serried.errors import InputError
from serried.finding import Finding, said
from serried.frameworks import Sizes
from serried.launch.facts.config import LaunchConfig
from serried.launch.facts.found import Missing
from serried.launch.formats.recipe import recipes
from serried.launch.read import read, read_among
from serried.launch.request import LayoutRequest
from serried.mesh import Layout
from serried.mesh.advice import advise
from serried.mesh.sizes import SIZES
from serried.plan.asked import SHARDS_BY_CHOICE
from serried.views.job.layers import layers_of
from serried.views.job.sources import format_name, remarks, sources_of
from serried.views.layout.document import advice_document
from serried.views.layout.sources import SizeSource
from serried.views.sentences import say
from serried.views.web.layout.training import assumed, training_of, training_sources
from serried.views.web.wire.dropped import Dropped
from serried.views.web.wire.query import (
    Words,
    read_language,
    read_query,
    read_word,
    request_of,
    words_of,
)

RECIPE = "recipe"
"""The word that says which config of a Python module is meant."""

TYPES = ("dp", "tp", "pp", "cp")
"""Dimensions that are brought into view where the job splits along them."""


def launch_answer(
    files: Sequence[Dropped], words: Words, *, reads_folders: bool = False
) -> dict[str, Any]:
    """Returns the ``serried.launch/1`` document of files, ``words`` going before what they say.

    ``words`` are answers to what was missing: a framework, sizes by their neutral names, and
    settings. ``job`` is what the page's own form would hold, None while something is missing, and
    ``training`` what its other forms would; ``reads_folders`` says whether a model's folder on
    this machine tells its shape.
    Raises InputError where the command line would, but leaves a refusal of sizes that are all
    known to the question that the page asks with them.
    """
    lang = read_language(words)
    if (several := _recipes(files)) and not read_word(words, RECIPE):
        return _which(files[0].name, several, lang)
    request = dropped_request(files, words)
    # Sizes exist only where nothing is missing, and a layout only where the page's own question
    # would not be refused; the document tells as much as there is.
    missing = request.missing()
    sizes = None if missing else request.sizes()
    layout = _layout(request, sizes) if sizes else None
    findings, notes = _findings(request, layout) if layout else ([], [])
    config = request.config
    assert config is not None
    training, faults = _training(request, layout, reads_folders)
    sources = [*sources_of(request, lang, layout), *training_sources(config, training, lang)]
    return {
        "schema": "serried.launch/1",
        "file": config.file,
        "format": format_name(config.format, lang),
        "sources": [_source(each, request) for each in sources],
        "missing": [_missing(each, lang) for each in missing],
        "notes": [*remarks(request, lang), *(say(note, lang) for note in (*notes, *faults))],
        "findings": advice_document(layout, findings, lang)["findings"] if layout else [],
        "job": _job(request, sizes, layout) if sizes else None,
        "training": training,
        "assumed": say(assumed(config, training), lang) if layout else "",
    }


def launch_words(
    files: Sequence[Dropped], words: Words, *, reads_folders: bool = False
) -> dict[str, list[str]]:
    """Returns the words of the job that files and ``words`` ask for, and those of its training.

    Raises InputError for what is missing, and as ``dropped_request`` does.
    """
    request = dropped_request(files, words)
    sizes = request.sizes()
    layout = _layout(request, sizes)
    training, _ = _training(request, layout, reads_folders)
    return _job(request, sizes, layout) | {name: [text] for name, text in training.items()}


def dropped_request(files: Sequence[Dropped], words: Words) -> LayoutRequest:
    """Returns what files and words ask for; raises InputError for what cannot be read."""
    return request_of(words, _config(files, read_word(words, RECIPE)))


def _config(files: Sequence[Dropped], chosen: str) -> LaunchConfig:
    """Reads one file, or the one launch file among several, as of a folder.

    ``chosen`` is the config that is meant where the one file is a module that makes several.
    """
    if len(files) == 1:
        name = f"{files[0].name}:{chosen}" if chosen else files[0].name
        return read(files[0].text(), name=name)
    return read_among(_texts(files), called=said("what was given"))


def _recipes(files: Sequence[Dropped]) -> tuple[str, ...]:
    """Returns the configs that a dropped Python module makes, where they are several."""
    if len(files) != 1 or not files[0].name.endswith(".py"):
        return ()
    names = tuple(recipes(files[0].text()))
    return names if len(names) > 1 else ()


def _which(file: str, names: Sequence[str], lang: str) -> dict[str, Any]:
    """Returns the document that asks which of several configs is meant, and says no more."""
    because = said("{file} holds {count} configs", file=file, count=len(names))
    asked = {"name": RECIPE, "kind": "choice", "because": say(because, lang)}
    return {
        "schema": "serried.launch/1",
        "file": file,
        "format": format_name("Python module", lang),
        "sources": [],
        "missing": [asked | {"choices": list(names)}],
        "notes": [],
        "findings": [],
        "job": None,
        "training": {},
        "assumed": "",
    }


def _texts(files: Sequence[Dropped]) -> Mapping[str, str]:
    """Returns the texts among files; as in a folder, what is none is no launch file either."""
    texts = {}
    for each in files:
        try:
            texts[each.name] = each.text()
        except InputError:
            continue
    return texts


def _layout(request: LayoutRequest, sizes: Sizes) -> Layout | None:
    """Returns the layout; None where the page's own question will be refused, and say why.

    Raises InputError for what only the file says, such as a dp that the others do not leave.
    """
    try:
        read_query(_words(request, sizes))
    except InputError:
        return None
    return request.layout()


def _findings(request: LayoutRequest, layout: Layout) -> tuple[list[Finding], list[InputError]]:
    """Returns all advice, and what is wrong with how layers divide, which moves no rank."""
    placement = request.placement(layout.world_size, layout.ranks_per_host)
    try:
        return advise(layout, placement, layers=layers_of(request, layout)), []
    except InputError as error:
        return advise(layout, placement), [error]


def _words(request: LayoutRequest, sizes: Sizes) -> dict[str, list[str]]:
    return words_of(request.framework_at, sizes, request.placement(sizes.world_size))


def _job(request: LayoutRequest, sizes: Sizes, layout: Layout | None) -> dict[str, list[str]]:
    """Returns the words of the page's form, its split dimensions in view."""
    dims = list(layout.dims) if layout else [*TYPES]
    known = layout.sizes if layout else {name: getattr(sizes, name) or 1 for name in TYPES}
    # A job that splits nothing still has its first dimension in view, so the map shows groups.
    split = [dim for dim in TYPES if dim in dims and known.get(dim, 1) > 1]
    told = _words(request, sizes) | {"dims": [",".join(split or dims[:1])]}
    # A plan of sizes alone shards by stage 1 with these; a file that leaves it out may not.
    by_choice = request.framework_at.partition("@")[0] in SHARDS_BY_CHOICE
    if sizes.zero is None and layout and by_choice:
        return told | {"zero": [str(layout.sharding.stage if layout.sharding else 0)]}
    return told


def _training(
    request: LayoutRequest, layout: Layout | None, reads_folders: bool
) -> tuple[dict[str, str], list[InputError]]:
    """Returns what a file says of its training, and what of that cannot be read."""
    if layout is None or request.config is None:
        return {}, []
    return training_of(request.config, layout, reads_folders=reads_folders)


def _source(told: SizeSource, request: LayoutRequest) -> dict[str, Any]:
    settings = {*request.settings, *(request.config.options if request.config else ())}
    return {
        "name": told.name,
        "value": str(told.value),
        "from": told.where,
        "is_setting": told.name in settings,
    }


def _missing(missing: Missing, lang: str) -> dict[str, str]:
    is_size = missing.name in SIZES
    kind = "size" if is_size else "framework" if missing.name == "framework" else "setting"
    return {
        "name": missing.name,
        "kind": kind,
        "because": say(missing.because, lang),
    }
