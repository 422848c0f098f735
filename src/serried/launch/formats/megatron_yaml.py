"""Reads Megatron's YAML: ``--yaml-cfg`` files, recipes of functional tests, trainer arguments.

``--yaml-cfg``: megatron/training/yaml_arguments.py, section ``model_parallel``. Recipes:
tests/functional_tests/test_cases/*/*/model_config.yaml, a mapping of command line options.
Trainer arguments: those of a trainer on Megatron-core, such as LLaMA-Factory's examples/megatron.
"""

from __future__ import annotations

from serried.launch.facts.config import Reading
from serried.launch.facts.facts import Facts
from serried.launch.facts.keys import Keys, take
from serried.launch.formats.megatron_flags import (
    MEANINGS,
    SIZES,
    ask_for_version,
    complete,
    version_of,
)

PARALLEL = frozenset(SIZES) - {"num-layers"}
TRAINER = frozenset(("use-distributed-optimizer", "finetuning-type"))
"""Keys beside sizes of the same names that PaddleFormers has, and it does not have these."""


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is one of these."""
    if keys.has("MODEL_ARGS") or keys.has("model_parallel", "language_model"):
        return True
    names = {key.replace("_", "-") for key in keys.entries}
    return bool(names & PARALLEL and names & TRAINER)


def read(keys: Keys) -> Reading:
    """Returns what the file says."""
    facts = Facts(keys.file)
    if keys.has("MODEL_ARGS"):
        take(facts, keys, MEANINGS, section="MODEL_ARGS")
        name = "Megatron functional-test YAML"
    elif not keys.has("model_parallel"):
        take(facts, keys, MEANINGS)
        name = "Megatron trainer YAML"
    else:
        take(facts, keys, MEANINGS, section="model_parallel")
        take(facts, keys, MEANINGS, section="language_model")
        name = "Megatron --yaml-cfg"
    complete(facts)
    framework = None if ask_for_version(facts) else "megatron"
    return Reading(name, facts, framework, version_of(facts))
