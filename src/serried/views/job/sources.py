"""Where each size of the job that was asked for came from, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from serried.errors import listed
from serried.finding import said
from serried.frameworks import Sizes
from serried.launch import Found
from serried.mesh import Layout
from serried.views.job.job import OPTIONS, Asked, option_key
from serried.views.layout.sources import Told
from serried.views.sentences import phrase, say, tell

WORDS = {
    "en": {"default": "default", "others": "what the other sizes leave", "option": "option {name}"}
    | {"rule": "the framework's own rule"},
    "zh": {"default": "默认值", "others": "由其他大小得出", "option": "选项 {name}"}
    | {"rule": "框架自己的规则"},
}


def sources_of(asked: Asked, lang: str, layout: Layout | None) -> list[Told]:
    """Returns every size and setting with its value and place.

    Without a layout, because sizes are missing or refused, those that are known.
    """
    return list(_sources(asked, lang, layout))


def _sources(asked: Asked, lang: str, layout: Layout | None) -> Iterator[Told]:
    sizes = None if asked.missing() else asked.sizes()
    words = WORDS[lang]
    if asked.options["framework"] or asked.config is None or asked.config.framework:
        yield Told("framework", asked.framework, _framework(asked, lang))
    yield from _world(asked, sizes, lang)
    for name in OPTIONS:
        option = asked.options[option_key(name)]
        found = asked.config.fields.get(name) if asked.config and _counts(asked, name) else None
        told = found.value if found else None
        value = getattr(sizes, name) if sizes else option or told
        shown = layout.sizes.get(name, value) if layout else value
        if shown is None:
            continue
        if option is not None:
            yield Told(name, shown, words["option"].format(name=OPTIONS[name]))
        elif found:
            yield Told(name, shown, say(found.where, lang))
        else:
            rule = "others" if name == "dp" else "rule" if value is None else "default"
            yield Told(name, shown, words[rule])
    yield from _settings(asked, sizes, lang)
    yield from _others(asked, lang)
    yield from _encodings(asked, lang)


def _counts(asked: Asked, name: str) -> bool:
    """Tells whether a size of the file is in force, no option having put it out."""
    if name == "dp" and (asked.world_sizes or asked.hosts):
        return False
    return not (name == "order" and asked.is_translated)


def _framework(asked: Asked, lang: str) -> str:
    if asked.options["framework"]:
        return WORDS[lang]["option"].format(name="--framework")
    return format_name(asked.config.format, lang) if asked.config else WORDS[lang]["default"]


def format_name(name: str, lang: str) -> str:
    """Returns what a launch file is called; one that names another is called by both.

    >>> format_name("torchrun command line, nanotron YAML", "zh")
    'torchrun 命令行、nanotron YAML'
    """
    return say(listed(phrase(part, lang) for part in name.split(", ")), lang)


def _world(asked: Asked, sizes: Sizes | None, lang: str) -> Iterator[Told]:
    """Yields the world size, where it is known."""
    found: Found | None = asked.config.world_size if asked.config else None
    if "world_size" in asked.hosts:
        found = asked.hosts["world_size"]
    if sizes:
        value: int | str = sizes.world_size
    elif asked.world_sizes:
        value = asked.world_sizes[0]
    elif found:
        value = found.value
    else:
        return
    if asked.world_sizes and "world_size" not in asked.hosts:
        yield Told("world_size", value, WORDS[lang]["option"].format(name="--world-size"))
    else:
        yield Told("world_size", value, say(found.where, lang) if found else WORDS[lang]["others"])


def _settings(asked: Asked, sizes: Sizes | None, lang: str) -> Iterator[Told]:
    told = asked.config.options if asked.config and not asked.is_translated else {}
    options = {**{key: str(found.value) for key, found in told.items()}, **asked.settings}
    for key, value in (sizes.options if sizes else options).items():
        if key in asked.settings:
            yield Told(key, value, WORDS[lang]["option"].format(name="--set"))
        elif key in told:
            yield Told(key, value, say(told[key].where, lang))


def _others(asked: Asked, lang: str) -> Iterator[Told]:
    """Yields what a file says beside the layout: nodes, layers."""
    for name in ("nodes", "gpus_per_node", "layers", "chunks"):
        found = _said(asked.hosts, name)
        if found is None and asked.config:
            found = _said(asked.config.fields, name)
        option = asked.options.get(name)
        if option is not None:
            shown = option if isinstance(option, int) else ",".join(map(str, option))
            name_of = f"--{name.replace('_', '-')}"
            yield Told(name, shown, WORDS[lang]["option"].format(name=name_of))
        elif found:
            yield Told(name, found.value, say(found.where, lang))


def _said(fields: Mapping[str, Found], name: str) -> Found | None:
    """Returns what files say under a name; GPUs of a node may be told node by node."""
    each = fields.get("node_gpus") if name == "gpus_per_node" else None
    return each or fields.get(name)


def _encodings(asked: Asked, lang: str) -> Iterator[Told]:
    """Yields how files were read that are not in UTF-8."""
    encodings = asked.config.encodings if asked.config else {}
    if encodings:
        names = listed(dict.fromkeys(encodings.values()))
        yield Told("encoding", say(names, lang), say(listed(encodings), lang))


def footer(asked: Asked, lang: str) -> list[str]:
    """Returns the lines that say what was read, with its remarks; none without a file."""
    config = asked.config
    notes = [tell("note: {remark}", lang, remark=note) for note in remarks(asked, lang)]
    if config is None:
        return notes
    read = tell(
        "read from {file}: {format}; --sources says where each size stands",
        lang,
        file=config.file,
        format=format_name(config.format, lang),
    )
    return [read, *notes]


def remarks(asked: Asked, lang: str) -> list[str]:
    """Returns what reading the files has to remark, and what another framework leaves out."""
    notes = [say(note, lang) for note in asked.notes]
    if asked.is_translated and asked.config:
        left_out = said(
            "settings of {file} and its order are left out under {framework}",
            file=asked.config.framework,
            framework=asked.framework,
        )
        notes.append(say(left_out, lang))
    return notes
