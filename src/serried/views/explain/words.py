"""The legend that is always in view, and what travels in each kind of group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from serried.errors import listed
from serried.frameworks import FRAMEWORKS
from serried.mesh import GroupKind, Layout
from serried.views.explain.content import Entry, line, localized, pairs, table
from serried.views.explain.filling import filled
from serried.views.explain.frameworks import MEGATRON_NAMES
from serried.views.explain.practice import practice
from serried.views.sentences import require_language, say


class Basic(NamedTuple):
    """Says what one colour means for a dimension, or, as ``stage``, how to read stages."""

    dim: str
    text: str


def basics(layout: Layout, lang: str) -> tuple[Basic, ...]:
    """Returns the legend of a layout: its framework's dimensions, and ``stage``.

    >>> from serried.frameworks import Sizes, layout
    >>> [basic.dim for basic in basics(layout("fsdp", Sizes(8)), "en")]
    ['dp', 'tp']
    """
    done = practice(layout)
    written = table(localized("words", lang)["basics"])
    dims = FRAMEWORKS[layout.framework].dims
    known = {dim for dim in written if dim in dims or (dim == "stage" and "pp" in dims)}
    return tuple(
        Basic(dim, line(filled(str(text), done, lang).strip()))
        for dim, text in written.items()
        if dim in known
    )


def kind_note(layout: Layout, kind: str, lang: str) -> str:
    """Returns what the ranks of ``kind`` share and what travels among them, and when.

    It says what holds under the layout's settings. A number in a kind's name, as in
    ``HYBRID_DP_CP_GROUP_4``, is spoken of in the note. Returns "" for a kind that nothing is
    written on; raises InputError for an unknown ``lang``.

    >>> from serried.frameworks import Sizes, layout
    >>> moe = layout("internlm", Sizes(8, options={"num_experts": "8"}))
    >>> kind_note(moe, "expert_data", "en")[:24]
    'Gradients of the experts'
    """
    family, number = _numbered(kind)
    notes = _notes(layout.framework, require_language(lang))
    other_names = pairs(MEGATRON_NAMES) if layout.framework == "megatron" else {}
    # A note on the very name goes before one on its family, HYBRID_DP_CP_GROUP_{n}.
    for name in (kind, family):
        note = notes.get(other_names.get(name, name))
        if note is not None:
            text = filled(str(note), practice(layout), lang)
            return line(text).replace("{n}", number)
    return ""


def note_in(layout: Layout, kind: str, lang: str) -> str:
    """Returns the note on a kind of ``layout``: the written one, else one made by rule.

    Rules speak of kinds that a user names: axes, axes folded into one, lists of ranks, hosts.

    >>> from serried.frameworks import Sizes, layout
    >>> mine = layout("custom", Sizes(4, options={"axes": "blue=2 red=2"}))
    >>> note_in(mine, "blue", "en")[:58]
    'An axis of your own: ranks that differ along blue and in n'
    """
    made = layout.kind(kind)
    return kind_note(layout, kind, lang) or _by_rule(made, lang)


OPTIMIZER = "shards of the optimizer state"

ABOUT_OPEN = {
    "same weights, other batches": "other batches",
    "same dense weights": "other batches",
    "one whole copy of the model": "all stages and parts of layers",
    "overflow checks of one whole model": "overflow checks",
}
"""What a table says of kinds, and what is true whether or not the weights are sharded."""

ABOUT_SHARDED = ABOUT_OPEN | {
    "same weights": "same parts of the weights",
    "whole copies of the weights": "copies of a shard",
    "one copy of all experts": "all experts at one place",
    OPTIMIZER: "shards of the weights",
}
"""What is true where the weights are sharded over data ranks."""


def about_in(layout: Layout, kind: GroupKind, lang: str) -> str:
    """Returns the clause of a kind's ``about`` in ``lang``, as it holds under the settings.

    >>> from serried.frameworks import Sizes, layout
    >>> mine = layout("deepspeed", Sizes(8, zero=3))
    >>> about_in(mine, mine.kind("data"), "en"), about_in(mine, mine.kind("model"), "zh")
    ('shards of the weights, other batches', '每层的各个部分')
    """
    about = _about(layout, kind)
    if require_language(lang) == "en" or not about:
        return about
    family, number = _numbered(about, anywhere=True)
    return pairs(f"abouts.{lang}").get(family, about).replace("{n}", number)


def _about(layout: Layout, kind: GroupKind) -> str:
    done = practice(layout)
    if kind.about == "parts of every layer or sequence":
        is_cut = done.facts["splits"] == "plain"
        return "parts of every layer" if is_cut else "parts of the same sequences"
    replica = done.facts["replica"]
    if replica == "whole":
        return kind.about
    if kind.about == OPTIMIZER and done.facts["holds"] == "weight":
        # The weights are sharded over another group; this one still shares the optimizer state.
        return kind.about
    others = ABOUT_SHARDED if replica == "sharded" else ABOUT_OPEN
    about = others.get(kind.about, kind.about)
    is_shard = replica == "sharded" and kind.name == done.names["shards"]
    return f"shards of the weights, {about}" if is_shard and about == "other batches" else about


NAMED_BY_USERS = {"devicemesh": "named", "custom": "named"}
"""Frameworks whose kinds are what the user calls them: their notes go by common names."""


def _notes(framework: str, lang: str) -> Mapping[str, Entry]:
    """Returns what is written on a framework's kinds; nothing for one that is not known."""
    file = f"kinds/{NAMED_BY_USERS.get(framework, framework)}"
    return localized(file, lang) if framework in FRAMEWORKS else {}


def _by_rule(kind: GroupKind, lang: str) -> str:
    axes = say(listed(kind.axes, last="and"), lang)
    if kind.mesh == "hosts":
        rule = "host"
    elif kind.name.startswith("axis:"):
        rule = "list"
    else:
        rule = "axis" if len(kind.axes) == 1 else "merged"
    written = line(localized("kinds/by_rule", lang)[rule])
    return written.replace("{axes}", axes).replace("{name}", kind.name)


def _numbered(text: str, *, anywhere: bool = False) -> tuple[str, str]:
    """Returns a name with its last number replaced by ``{n}``, and that number.

    The number ends the name, but for a closing bracket; ``anywhere`` takes any other too.

    >>> _numbered("HYBRID_DP_CP_GROUP_16"), _numbered("pp[2]")
    (('HYBRID_DP_CP_GROUP_{n}', '16'), ('pp[{n}]', '2'))
    """
    number = re.search(r"\b\d+\b" if anywhere else r"\d+(?=\]?$)", text)
    if number is None:
        return text, ""
    return f"{text[: number.start()]}{{n}}{text[number.end() :]}", number[0]
