"""Reads Primus' YAML, which hands what it overrides to Megatron-LM, torchtitan or MaxText.

    modules:
      pre_trainer:
        framework: megatron
        model: deepseek_v2_lite.yaml
        overrides:
          tensor_model_parallel_size: ${PRIMUS_TP:1}     the environment, else 1

Source: Primus examples/*/configs; primus/configs/modules and primus/configs/models, whose defaults
are one but for the experts of a model.
"""

from __future__ import annotations

import re

from serried.finding import said
from serried.launch.facts.config import Reading
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys, take
from serried.launch.formats import maxtext, torchtitan
from serried.launch.formats.megatron import MEANINGS, complete

MODULE = re.compile(r"modules\.(\w*trainer)\.framework")
MEGATRON = ("megatron", "megatron_bridge")
EXPERTS = re.compile(r"(?i)moe|deepseek|mixtral|a\d+b|gpt_oss|grok|kimi|glm|minimax|llama4")
"""Models of Primus whose own config may set the size of expert parallelism."""


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is Primus'."""
    return _module(keys) is not None


def _module(keys: Keys) -> str | None:
    found = (MODULE.fullmatch(key) for key in keys.entries)
    return next((match[1] for match in found if match), None)


def read(keys: Keys) -> Reading:
    """Returns what the trainer among the modules says."""
    module = f"modules.{_module(keys)}"
    framework, overrides = str(keys.value(f"{module}.framework")), f"{module}.overrides"
    if framework == "maxtext":
        reading = maxtext.read(keys, overrides)
        reading.format = "Primus YAML"
        return reading
    facts = Facts(keys.file)
    if framework in MEGATRON:
        take(facts, keys, MEANINGS, section=overrides)
        complete(facts)
        _experts(facts, keys, module)
        return Reading("Primus YAML", facts, "megatron")
    if framework == "torchtitan":
        for section in torchtitan.SECTIONS:
            take(facts, keys, torchtitan.DEGREES, section=f"{overrides}.{section}")
        torchtitan.tidy(facts)
        return Reading("Primus YAML", facts, "torchtitan", torchtitan.NEWEST_TOML)
    facts.lack(
        "framework",
        said(
            "{file} trains with {name}, which serried does not lay out",
            file=keys.file,
            name=framework,
        ),
    )
    return Reading("Primus YAML", facts)


def _experts(facts: Facts, keys: Keys, module: str) -> None:
    """Asks for the size that a model's own config may set, where the file does not."""
    model = str(keys.value(f"{module}.model") or "")
    if EXPERTS.search(model) and not facts.says("ep"):
        because = said(
            "{file} trains {model}, whose config may set it", file=keys.file, model=model
        )
        facts.lack("ep", because)
