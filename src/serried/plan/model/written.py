"""A model written out in one line: a name, and every size that another model would not have.

    mine:layers=96,hidden=12288,heads=96,ffn=49152,vocab=50304,is_gated=false,norm=layer
    └ name    └ fields of ModelShape, experts.* and latent.* those of its parts

An address, a command line and a report can hold such a model, which no catalogue has and whose
launch file lies elsewhere. What follows from other sizes, or is as in Llama, is left out.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from types import MappingProxyType
from typing import Any

from serried.errors import InputError, listed
from serried.limits import MODEL_SIZE
from serried.number import shortened, whole_number
from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape

PARTS = MappingProxyType({"experts": ExpertShape, "latent": LatentAttention})
"""Fields that hold a shape of their own."""
BESIDE = ("name", "source", "left_out", *PARTS)
"""Fields of a shape that are not written as a size is."""
WORDS = MappingProxyType({"norm": ("rms", "layer"), "qk_norm": ("", "head", "whole")})
SWITCH = MappingProxyType({"true": True, "false": False})
NAME_LETTERS = 60
SOURCE = "written out"


def is_written(text: str) -> bool:
    """Tells whether a text is a model that is written out.

    >>> is_written("mine:layers=4,hidden=64,heads=4,vocab=99"), is_written("llama3-8b")
    (True, False)
    """
    return re.search(r":[a-z_.]+=", text) is not None


def text_of(shape: ModelShape) -> str:
    """Returns a model in one line.

    >>> text_of(ModelShape("mine", 4, 64, 8, 8, 8, 256, 99, experts=ExpertShape(8, 2, 128)))
    'mine:layers=4,hidden=64,heads=8,vocab=99,experts.count=8,experts.top_k=2,experts.ffn=128'
    """
    follows = _following(shape.hidden, shape.heads)
    told = [
        f"{each.name}={_text(value)}"
        for each in fields(ModelShape)
        if each.name not in BESIDE
        and (value := getattr(shape, each.name)) != follows.get(each.name, each.default)
    ]
    for part in PARTS:
        held = getattr(shape, part)
        told += [
            f"{part}.{each.name}={_text(getattr(held, each.name))}"
            for each in (fields(held) if held else ())
            if getattr(held, each.name) != each.default
        ]
    # A name of several lines would be several values of an address.
    name = " ".join(shape.name.split())[:NAME_LETTERS]
    return f"{name}:{','.join(told)}"


def shape_of_text(text: str) -> ModelShape:
    """Returns the model that a line writes out.

    >>> shape_of_text("mine:layers=4,hidden=64,heads=8,vocab=99,norm=layer").ffn
    256

    Raises InputError for a size that is missing, unknown, written twice, or none.
    """
    name, _, rest = text.rpartition(":")
    told: dict[str, str] = {}
    for each in rest.split(","):
        key, _, value = (part.strip() for part in each.partition("="))
        if told.setdefault(key, value) != value:
            raise InputError(
                "{name} is written as {one} and as {other}; write it once",
                name=shortened(key),
                one=shortened(told[key]),
                other=shortened(value),
            )
    found = _read(told, ModelShape, "")
    needed = ("layers", "hidden", "heads", "vocab")
    if missing := [each for each in needed if each not in found]:
        raise _lacking(name, missing)
    for part, kind in PARTS.items():
        if any(key.startswith(f"{part}.") for key in told):
            found[part] = _part(told, part, kind, name)
    follows = _following(found["hidden"], found["heads"])
    if "head_dim" not in {**follows, **found}:
        raise InputError(
            "heads={heads} does not divide hidden={hidden}; write head_dim as well",
            heads=found["heads"],
            hidden=found["hidden"],
        )
    return ModelShape(**{"name": name, "source": SOURCE, **follows, **found})


def _following(hidden: int, heads: int) -> dict[str, int]:
    """Returns the sizes that follow from others where nobody says."""
    each, rest = divmod(hidden, max(1, heads))
    return {"kv_heads": heads, "ffn": 4 * hidden} | ({} if rest else {"head_dim": max(1, each)})


def _part(told: dict[str, str], part: str, kind: type, name: str) -> Any:
    found = _read(told, kind, f"{part}.")
    needed = [each.name for each in fields(kind) if each.default is MISSING]
    if missing := [f"{part}.{each}" for each in needed if each not in found]:
        raise _lacking(name, missing)
    return kind(**found)


def _read(told: dict[str, str], kind: type, prefix: str) -> dict[str, Any]:
    """Returns the values of a shape's own fields; raises InputError for a field that it lacks."""
    known = {f"{prefix}{each.name}": each for each in fields(kind) if each.name not in BESIDE}
    mine = {key: text for key, text in told.items() if key.startswith(prefix)}
    if not prefix:
        mine = {key: text for key, text in mine.items() if key.partition(".")[0] not in PARTS}
    if unknown := [key for key in mine if key not in known]:
        raise InputError(
            "a model has no '{name}'; it has {known}",
            name=shortened(unknown[0]),
            known=listed(known, limit=len(known)),
        )
    return {known[key].name: _value(known[key], key, text) for key, text in mine.items()}


def _value(size: Field[Any], key: str, text: str) -> int | bool | str:
    if size.name in WORDS or isinstance(size.default, bool):
        known = WORDS.get(size.name, tuple(SWITCH))
        if text not in known:
            raise InputError(
                "{name}={value} cannot be; it is {known}",
                name=key,
                value=shortened(text),
                known=listed(filter(None, known), last="or"),
            )
        return text if size.name in WORDS else SWITCH[text]
    number = whole_number(text, key, MODEL_SIZE.most)
    if number > MODEL_SIZE.most:
        raise InputError(
            "{name}={value} is too large; it is at most {most}",
            name=key,
            value=number,
            most=MODEL_SIZE.most,
        )
    return number


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lacking(name: str, missing: list[str]) -> InputError:
    return InputError(
        "the model {model} is written without {sizes}; write them, such as {example}",
        model=shortened(name),
        sizes=listed(missing, last="and"),
        example=f"{missing[0]}=64",
    )
