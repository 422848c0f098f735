"""The Python reference: signatures and docstrings of the public rooms, which are not imported."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import griffe

SOURCE = Path(__file__).parent.parent / "src"
ROOMS = {
    "serried": ("What import serried offers", "import serried 提供的名字"),
    "serried.mesh": ("serried.mesh: ranks, groups, rules", "serried.mesh：rank、组和规则"),
    "serried.frameworks": ("serried.frameworks", "serried.frameworks：各框架"),
    "serried.pipeline": ("serried.pipeline: schedules", "serried.pipeline：流水线调度"),
    "serried.runtime": ("serried.runtime: real trainings", "serried.runtime：真实的训练"),
    "serried.schemas": ("serried.schemas: JSON schemas", "serried.schemas：JSON schema"),
}
"""The public rooms, each with its title in English and in Chinese."""

TOLD = {
    "en": "Made of the docstrings, whose examples the tests run. [What stays when you build on "
    "it](../stable.md).",
    "zh": "由源码的文档字符串生成，其中的例子都由测试运行；文档字符串只有英文。"
    "[哪些名字会保持不变](../stable.md)。",
}


@cache
def pages(lang: str) -> dict[str, str]:
    """Returns the reference's pages by their paths, ``python/serried.md`` first."""
    return {path_of(room): _page(room, lang) for room in ROOMS}


def path_of(room: str) -> str:
    """Returns the path of a room's page.

    >>> path_of("serried.mesh")
    'python/mesh.md'
    """
    return f"python/{room.rpartition('.')[2]}.md"


def names(room: str) -> list[str]:
    """Returns the public names of a room, in the order of its ``__all__``.

    >>> names("serried.schemas")
    ['json_schema', 'schema_names']
    """
    return [str(name) for name in _module(room).exports or ()]


@cache
def _module(path: str) -> griffe.Module:
    base = SOURCE.joinpath(*path.split("."))
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    return griffe.visit(path, filepath=file, code=file.read_text(encoding="utf-8"))


def found(path: str) -> griffe.Object:
    """Returns what stands under a dotted path, in the module that it is defined in."""
    room, _, name = path.rpartition(".")
    member = _module(room).members[name]
    return found(member.target_path) if isinstance(member, griffe.Alias) else member


def _page(room: str, lang: str) -> str:
    parts = [_entry(f"{room}.{name}", found(f"{room}.{name}"), "##") for name in names(room)]
    return "\n".join([f"# {ROOMS[room][lang == 'zh']}\n\n{TOLD[lang]}\n", *parts])


def _entry(path: str, item: griffe.Object, mark: str) -> str:
    """Returns the heading, signature, docstring and, of a class, the members of a public name."""
    name = path.rpartition(".")[2]
    head = f"{mark} {name}\n\n```python\n{signature(item)}\n```\n\n{told(item)}\n"
    if not isinstance(item, griffe.Class):
        return head
    own = [each for key, each in item.members.items() if key[0] != "_"]
    fields = [each for each in own if isinstance(each, griffe.Attribute) and each.docstring]
    rows = "".join(f"\n- `{each.name}`: {' '.join(told(each).split())}" for each in fields)
    methods = [
        _entry(f"{name}.{each.name}", each, f"{mark}#")
        for each in own
        if isinstance(each, griffe.Function) and each.docstring
    ]
    return "\n".join([head + (f"{rows}\n" if rows else ""), *methods])


def signature(item: griffe.Object) -> str:
    """Returns how a name is called, or of a class the fields that it takes.

    >>> signature(found("serried.schemas.json_schema"))
    'def json_schema(name: str) -> dict[str, Any]'
    """
    if isinstance(item, griffe.Function):
        return f"def {item.name}{_arguments(item)}"
    if isinstance(item, griffe.Class):
        bases = f"({', '.join(map(str, item.bases))})" if item.bases else ""
        fields = [each for each in item.attributes.values() if "instance-attribute" in each.labels]
        rows = [_field(each) for each in fields if each.name[0] != "_" and each.annotation]
        return "\n".join([f"class {item.name}{bases}", *rows])
    return f"{item.name}: {item.annotation}" if isinstance(item, griffe.Attribute) else item.name


def _field(field: griffe.Attribute) -> str:
    value = f" = {field.value}" if field.value is not None else ""
    return f"    {field.name}: {field.annotation}{value}"


def _arguments(item: griffe.Function) -> str:
    whole = item.signature().removeprefix(item.name)
    if len(whole) <= 80:
        return whole
    inner, _, returned = whole[1:].rpartition(")")
    # A comma that no bracket holds stands between two arguments.
    parts, depth, last = [], 0, 0
    for place, letter in enumerate(inner):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(inner[last:place].strip())
            last = place + 1
    rows = "".join(f"    {part},\n" for part in [*parts, inner[last:].strip()])
    return f"(\n{rows}){returned}"


def told(item: griffe.Object) -> str:
    """Returns a docstring as Markdown: examples as blocks of code, ````x```` as `x`."""
    text = item.docstring.value if item.docstring else ""
    blocks = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if paragraph.lstrip().startswith(">>>"):
            blocks.append("```pycon\n" + "\n".join(lines) + "\n```")
        elif all(line.startswith("    ") for line in lines):
            blocks.append("```text\n" + "\n".join(line[4:] for line in lines) + "\n```")
        else:
            blocks.append(re.sub(r"``([^`]+)``", r"`\1`", paragraph))
    return "\n\n".join(blocks)
