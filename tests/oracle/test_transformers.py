"""The golden of parameters is what transformers makes today."""

from __future__ import annotations

import json

import pytest

from tests.oracle import transformers_models


@pytest.mark.oracle
def test_models_of_transformers_have_the_parameters_of_the_golden() -> None:
    told = json.loads(transformers_models.GOLDEN.read_text(encoding="utf-8"))["models"]
    made = transformers_models.golden()["models"]
    assert {kind: each["parameters"] for kind, each in made.items()} == {
        kind: each["parameters"] for kind, each in told.items()
    }
