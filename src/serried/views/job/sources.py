"""Where each size of the job that was asked for came from, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from serried.errors import listed
from serried.finding import said
from serried.frameworks import Sizes
from serried.launch.request import LayoutRequest
from serried.mesh import Layout
from serried.mesh.sizes import BESIDE_WORLD, TABLE
from serried.views.layout.sources import SizeSource
from serried.views.sentences import phrase, say, tell

if TYPE_CHECKING:
    from serried.launch.facts.found import Found

WORDS = {
    "en": {"default": "default", "others": "what the other sizes leave", "option": "option {name}"}
    | {"rule": "the framework's own rule"},
    "zh": {"default": "默认值", "others": "由其他大小得出", "option": "选项 {name}"}
    | {"rule": "框架自己的规则"},
}


def sources_of(request: LayoutRequest, lang: str, layout: Layout | None) -> list[SizeSource]:
    """Returns every size and setting with its value and place.

    Without a layout, because sizes are missing or refused, those that are known.
    """
    return list(_sources(request, lang, layout))


def _size_source(
    request: LayoutRequest, name: str, sizes: Sizes | None, layout: Layout | None, lang: str
) -> SizeSource | None:
    """Returns where one size came from; None for a size that the job does not have."""
    fields = request.config.fields if request.config else {}
    option = request.sizes_given.get(name)
    found = fields.get(name) if _counts(request, name) else None
    told = found.value if found else None
    value = getattr(sizes, name) if sizes else option or told
    # The layout also knows sizes that the framework worked out itself.
    shown = layout.sizes.get(name, value) if layout else value
    if shown is None:
        return None
    words = WORDS[lang]
    if option is not None:
        return SizeSource(name, shown, words["option"].format(name=TABLE[name].option))
    if found:
        return SizeSource(name, shown, say(found.where, lang))
    # A dense model has no experts to cut.
    is_dense = layout is not None and layout.sizes.get("ep", 1) == 1
    if name == "etp" and is_dense:
        return None
    # Nobody gave this size. A value that only the layout has is the framework's own rule.
    rule = "others" if name == "dp" else "rule" if value is None else "default"
    return SizeSource(name, shown, words[rule])


def _sources(request: LayoutRequest, lang: str, layout: Layout | None) -> Iterator[SizeSource]:
    sizes = None if request.missing() else request.sizes()
    # A launch file may not tell its framework; until somebody names it there is no row for it.
    if request.framework or request.config is None or request.config.framework:
        yield SizeSource("framework", request.framework_at, _framework(request, lang))
    yield from _world(request, sizes, lang)
    for name in BESIDE_WORLD:
        if (source := _size_source(request, name, sizes, layout, lang)) is not None:
            yield source
    yield from _settings(request, sizes, lang)
    yield from _others(request, lang)
    yield from _encodings(request, lang)


def _counts(request: LayoutRequest, name: str) -> bool:
    """Tells whether a size of the file is in force, no option having put it out."""
    # LayoutRequest drops the same fields: a world size or hosts put the file's dp out of force,
    # and an order of axes means nothing under another framework.
    if name == "dp" and ("world_size" in request.given or request.hosts):
        return False
    return not (name == "order" and request.is_translated)


def _framework(request: LayoutRequest, lang: str) -> str:
    if request.framework:
        return WORDS[lang]["option"].format(name="--framework")
    return format_name(request.config.format, lang) if request.config else WORDS[lang]["default"]


def format_name(name: str, lang: str) -> str:
    """Returns what a launch file is called; one that names another is called by both.

    >>> format_name("torchrun command line, nanotron YAML", "zh")
    'torchrun 命令行、nanotron YAML'
    """
    return say(listed(phrase(part, lang) for part in name.split(", ")), lang)


def _world(request: LayoutRequest, sizes: Sizes | None, lang: str) -> Iterator[SizeSource]:
    """Yields the world size, where it is known."""
    found: Found | None = request.config.world_size if request.config else None
    if "world_size" in request.hosts:
        found = request.hosts["world_size"]
    if sizes:
        value: int | str = sizes.world_size
    elif (given := request.number("world_size")) is not None:
        value = given
    elif found:
        value = found.value
    else:
        return
    # An option and a hostfile that both tell it are equal; the hostfile is then its source.
    if "world_size" in request.given and "world_size" not in request.hosts:
        yield SizeSource("world_size", value, WORDS[lang]["option"].format(name="--world-size"))
    else:
        yield SizeSource(
            "world_size", value, say(found.where, lang) if found else WORDS[lang]["others"]
        )


def _settings(request: LayoutRequest, sizes: Sizes | None, lang: str) -> Iterator[SizeSource]:
    # Settings of the file belong to its own framework: under another one none of them counts.
    told = request.config.options if request.config and not request.is_translated else {}
    options = {**{key: str(found.value) for key, found in told.items()}, **request.settings}
    for key, value in (sizes.options if sizes else options).items():
        if key in request.settings:
            yield SizeSource(key, value, WORDS[lang]["option"].format(name="--set"))
        elif key in told:
            yield SizeSource(key, value, say(told[key].where, lang))


def _others(request: LayoutRequest, lang: str) -> Iterator[SizeSource]:
    """Yields what a file says beside the layout: nodes, layers."""
    for name in ("nodes", "gpus_per_node", "layers", "chunks"):
        found = _said(request.hosts, name)
        if found is None and request.config:
            found = _said(request.config.fields, name)
        given = request.given.get(name)
        if given is not None:
            # Layers and GPUs per node may be lists, shown as they are typed: 8, or 4,1.
            row = TABLE[name]
            shown = row.write(given) if isinstance(given, tuple) else given
            yield SizeSource(name, shown, WORDS[lang]["option"].format(name=row.option))
        elif found:
            yield SizeSource(name, found.value, say(found.where, lang))


def _said(fields: Mapping[str, Found], name: str) -> Found | None:
    """Returns what files say under a name; GPUs of a node may be told node by node."""
    each = fields.get("node_gpus") if name == "gpus_per_node" else None
    return each or fields.get(name)


def _encodings(request: LayoutRequest, lang: str) -> Iterator[SizeSource]:
    """Yields how files were read that are not in UTF-8."""
    encodings = request.config.encodings if request.config else {}
    if encodings:
        names = listed(dict.fromkeys(encodings.values()))
        yield SizeSource("encoding", say(names, lang), say(listed(encodings), lang))


def footer(request: LayoutRequest, lang: str) -> list[str]:
    """Returns the lines that say what was read, with its remarks; none without a file."""
    config = request.config
    notes = [tell("note: {remark}", lang, remark=note) for note in remarks(request, lang)]
    if config is None:
        return notes
    read = tell(
        "read from {file}: {format}; --sources says where each size stands",
        lang,
        file=config.file,
        format=format_name(config.format, lang),
    )
    return [read, *notes]


def remarks(request: LayoutRequest, lang: str) -> list[str]:
    """Returns what reading the files has to remark, and what another framework leaves out."""
    notes = [say(note, lang) for note in request.notes]
    if request.is_translated and request.config:
        left_out = said(
            "settings of {file} and its order are left out under {framework}",
            file=request.config.framework,
            framework=request.framework_at,
        )
        notes.append(say(left_out, lang))
    return notes
