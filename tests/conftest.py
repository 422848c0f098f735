"""Settings for the whole test run: one hypothesis profile, and a way to call the command line."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings

from serried.views.cli.main import run
from tests.page import browser as browser
from tests.page import page_of as page_of
from tests.page import pages as pages

# Sentences are compared in English, whatever language the developer's terminal speaks.
os.environ["LC_ALL"] = "C.UTF-8"
# Tests run side by side: torch's own threads would only wait for one another's cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What tests load and collect lives to their end: to look through it for garbage every 700 values,
# and once more at the exit, takes a twentieth of their time.
gc.set_threshold(100_000)


def pytest_unconfigure() -> None:
    """Leaves what was loaded to the system."""
    gc.freeze()


# The soak looks for new examples; `make test` takes the same ones on every machine and every day.
for name, examples in {"quick": 5, "serried": 15, "soak": 1000}.items():
    settings.register_profile(
        name,
        max_examples=examples,
        derandomize=name != "soak",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
settings.load_profile("serried")


@dataclass(frozen=True)
class Outcome:
    """What a call of the command line gave."""

    code: int
    out: str
    err: str


Call = Callable[..., Outcome]


@pytest.fixture
def serried(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Runs ``serried`` with the words given, in this process, at 100 columns."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words: str) -> Outcome:
        capsys.readouterr()
        code = run(list(words))
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return call
