"""Where each size of the job that was asked for came from, in words."""

from __future__ import annotations

from collections.abc import Iterator

from serried.frameworks.launch import Found
from serried.views.cli.job import OPTIONS, Asked
from serried.views.sentences import say
from serried.views.sources_text import Told

WORDS = {
    "en": {"default": "default", "others": "what the other sizes leave", "option": "option {name}"}
    | {"rule": "the framework's own rule"},
    "zh": {"default": "默认值", "others": "由其他大小得出", "option": "选项 {name}"}
    | {"rule": "框架自己的规则"},
}


def sources_of(asked: Asked, lang: str) -> list[Told]:
    """Returns every size and setting with its value and place."""
    return list(_sources(asked, lang))


def _sources(asked: Asked, lang: str) -> Iterator[Told]:
    layout = asked.layout()
    words = WORDS[lang]
    given = "--framework" if asked.options["framework"] else ""
    yield Told("framework", asked.framework, _framework(asked, given, lang))
    yield Told("world_size", layout.world_size, _world(asked, lang))
    for name in OPTIONS:
        value = getattr(asked.sizes(), name)
        shown = layout.sizes.get(name, value)
        if shown is None:
            continue
        found = asked.config.fields.get(name) if asked.config and _counts(asked, name) else None
        if asked.options[OPTIONS[name].lstrip("-").replace("-", "_")] is not None:
            yield Told(name, shown, words["option"].format(name=OPTIONS[name]))
        elif found:
            yield Told(name, shown, say(found.where, lang))
        else:
            rule = "others" if name == "dp" else "rule" if value is None else "default"
            yield Told(name, shown, words[rule])
    yield from _settings(asked, lang)
    yield from _others(asked, lang)


def _counts(asked: Asked, name: str) -> bool:
    """Tells whether a size of the file is in force, no option having put it out."""
    if name == "dp" and (asked.world_sizes or asked.hosts):
        return False
    return not (name == "order" and asked.is_translated)


def _framework(asked: Asked, given: str, lang: str) -> str:
    if given:
        return WORDS[lang]["option"].format(name=given)
    return asked.config.format if asked.config else WORDS[lang]["default"]


def _world(asked: Asked, lang: str) -> str:
    if "world_size" in asked.hosts:
        return say(asked.hosts["world_size"].where, lang)
    if asked.world_sizes:
        return WORDS[lang]["option"].format(name="--world-size")
    found: Found | None = asked.config.world_size if asked.config else None
    return say(found.where, lang) if found else WORDS[lang]["others"]


def _settings(asked: Asked, lang: str) -> Iterator[Told]:
    told = asked.config.options if asked.config and not asked.is_translated else {}
    for key, value in asked.sizes().options.items():
        if key in asked.settings:
            yield Told(key, value, WORDS[lang]["option"].format(name="--set"))
        elif key in told:
            yield Told(key, value, say(told[key].where, lang))


def _others(asked: Asked, lang: str) -> Iterator[Told]:
    """Yields what a file says beside the layout: nodes, layers."""
    for name in ("nodes", "gpus_per_node", "layers", "chunks"):
        found = asked.hosts.get(name) or (asked.config.fields.get(name) if asked.config else None)
        option = asked.options.get(name)
        if option is not None:
            shown = option if isinstance(option, int) else ",".join(map(str, option))
            name_of = f"--{name.replace('_', '-')}"
            yield Told(name, shown, WORDS[lang]["option"].format(name=name_of))
        elif found:
            yield Told(name, found.value, say(found.where, lang))


def footer(asked: Asked, lang: str) -> list[str]:
    """Returns the lines that say what was read, with its remarks; none without a file."""
    config = asked.config
    notes = [f"note: {say(note, lang)}" for note in asked.notes]
    if config is None:
        return notes
    lines = [f"read from {config.file}: {config.format}; --sources says where each size stands"]
    if asked.is_translated:
        notes.append(
            f"note: settings of {config.framework} and its order are left out under "
            f"{asked.framework}"
        )
    return [*lines, *notes]
