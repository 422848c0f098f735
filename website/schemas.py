"""A page that lists the JSON schemas, each of which lies beside it as a file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from serried.schemas import json_schema, schema_names
from website.reference import SOURCE

FOLDER = SOURCE / "serried" / "schemas"
PAGE = "schemas.md"
TOLD = {
    "en": """# JSON schemas

Every document that a command prints with `--format json` begins with its name and version. Here is
the schema of each (draft 2020-12), as the package ships it:
`serried.schemas.json_schema("serried.plan/1")` gives the same.
[When a version changes](stable.md).

| document | what it holds |
|---|---|
""",
    "zh": """# JSON schema

命令加 `--format json` 打印的每份文档，都以自己的名字和版本开头。这里是每一份的 schema
（draft 2020-12），`serried.schemas.json_schema("serried.plan/1")` 给出的就是它。
说明只有英文。[版本什么时候会变](stable.md)。

| 文档 | 内容 |
|---|---|
""",
}


@cache
def pages(lang: str) -> dict[str, str]:
    """Returns the page by its path."""
    rows = (
        f"| [`{name}`](schemas/{file_of(name)}) | {json_schema(name)['description']} |\n"
        for name in schema_names()
    )
    return {PAGE: TOLD[lang] + "".join(rows)}


def files() -> list[Path]:
    """Returns the files of the schemas."""
    return sorted(FOLDER.glob("*.json"))


def file_of(name: str) -> str:
    """Returns the name of a schema's file.

    >>> file_of("serried.plan/1")
    'plan-1.json'
    """
    return f"{name.removeprefix('serried.').replace('/', '-')}.json"
