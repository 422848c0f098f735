"""Whatever a package refuses is refused with a sentence that says what would work."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from serried import frameworks
from serried.errors import InputError
from serried.frameworks import FRAMEWORKS
from tests.frameworks.asking import asked

TABLE = Path(__file__).with_name("refusals.txt")
SOURCES = sorted(Path(frameworks.__file__).parent.rglob("*.py"))


def table() -> Iterator[tuple[str, str]]:
    """Yields each line asked and the sentence it is answered with."""
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line]
    lines = [line for line in lines if not line.startswith("#")]
    assert len(lines) % 2 == 0
    for asking, answer in zip(lines[::2], lines[1::2], strict=True):
        assert asking.startswith("$ ")
        yield asking[2:], answer


@cache
def refusal(line: str) -> InputError:
    with pytest.raises(InputError) as caught:
        asked(line)
    return caught.value


@pytest.mark.parametrize(("line", "sentence"), tuple(table()))
def test_a_job_that_cannot_be_is_refused_with_what_could(line: str, sentence: str) -> None:
    said = str(refusal(line))
    if sentence.endswith(" …"):
        assert said.startswith(sentence[:-2])
    else:
        assert said == sentence


def templates(source: Path) -> Iterator[str]:
    """Yields the sentence of each InputError that a module may raise."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "InputError":
            assert isinstance(node.args[0], ast.Constant)
            yield str(node.args[0].value)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_every_refusal_of_a_module_is_in_the_table(source: Path) -> None:
    said = {refusal(line).template for line, _ in table()}
    assert [sentence for sentence in templates(source) if sentence not in said] == []


def test_every_framework_is_in_the_table() -> None:
    named = {line.split()[0].partition("@")[0] for line, _ in table()}
    assert set(FRAMEWORKS) <= named
