"""The commands of the examples' pages, run from one set of prepared interpreters, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.examples.launched import PreparedShell, Shell
from tests.examples.pages import Commands

NEEDED = ("torch", "transformers", "accelerate", "deepspeed", "peft")


def _need_the_extra() -> None:
    for package in NEEDED:
        if not find_spec(package):
            pytest.skip(f"{package} is missing: pip install 'serried[examples]'")


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Runs the pages' commands; skips, naming what is missing, without the extra ``examples``."""
    _need_the_extra()
    shell = PreparedShell()
    yield Commands(shell, tmp_path_factory.mktemp("examples"))
    shell.close()


@pytest.fixture(scope="session")
def fresh_commands(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """Runs the pages' commands as a reader does: every launcher and rank loads all it needs."""
    _need_the_extra()
    return Commands(Shell(), tmp_path_factory.mktemp("fresh-examples"))
