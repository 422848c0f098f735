"""Reads Megatron-LM's YAML: ``--yaml-cfg`` files and the recipes of its functional tests.

``--yaml-cfg``: megatron/training/yaml_arguments.py, section ``model_parallel``. Recipes:
tests/functional_tests/test_cases/*/*/model_config.yaml, a mapping of command line options.
"""

from __future__ import annotations

from serried.frameworks.launch.config import Reading
from serried.frameworks.launch.found import Facts
from serried.frameworks.launch.keys import Keys, take
from serried.frameworks.launch.megatron_flags import (
    MEANINGS,
    ask_for_version,
    complete,
    version_of,
)


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is one of these."""
    return keys.has("MODEL_ARGS") or keys.has("model_parallel", "language_model")


def read(keys: Keys) -> Reading:
    """Returns what the file says."""
    facts = Facts(keys.file)
    if keys.has("MODEL_ARGS"):
        take(facts, keys, MEANINGS, section="MODEL_ARGS")
        name = "Megatron functional-test YAML"
    else:
        take(facts, keys, MEANINGS, section="model_parallel")
        take(facts, keys, MEANINGS, section="language_model")
        name = "Megatron --yaml-cfg"
    complete(facts)
    framework = None if ask_for_version(facts) else "megatron"
    return Reading(name, facts, framework, version_of(facts))
