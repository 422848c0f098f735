"""Settings of training that a plan takes by ``--set``, under the framework's own names.

    --set fp8_param_gather=true --set moe_imbalance=1.3
      ├─ settings of the framework's groups    its rules check them
      └─ those of ``SETTINGS``                 checked here, for memory and time

Source: Megatron-LM d98e8a64, training/arguments.py; three are of no framework: ``implementation``,
``moe_imbalance`` and ``document_tokens``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from serried.errors import InputError, listed

SWITCH = ("true", "false")
IMPLEMENTATIONS = (
    *("megatron", "megatron-local", "megatron-deepspeed", "deepspeed", "torch", "llm-foundry"),
)
"""The layers that a job may run in place of its framework's own; ``memory.implementation``."""


@dataclass(frozen=True)
class TrainingSetting:
    """Holds one setting: what the request's options call it, and the values that it takes."""

    option: str
    values: tuple[str, ...] = ()
    """Words that it takes; none: a number."""
    least: float = 0.0
    most: float = 1.0


SETTINGS: Mapping[str, TrainingSetting] = {
    "tp_comm_overlap": TrainingSetting("tp_comm_overlap", SWITCH),
    "overlap_moe_expert_parallel_comm": TrainingSetting("a2a_overlap", SWITCH),
    "fp8_param_gather": TrainingSetting("fp8_param_gather", SWITCH),
    "cross_entropy_loss_fusion": TrainingSetting("cross_entropy_loss_fusion", SWITCH),
    "cross_entropy_fusion_impl": TrainingSetting("cross_entropy_fusion_impl", ("native", "te")),
    "gradient_accumulation_fusion": TrainingSetting("gradient_accumulation_fusion", SWITCH),
    "transformer_impl": TrainingSetting("transformer_impl", ("local", "transformer_engine")),
    "moe_grouped_gemm": TrainingSetting("moe_grouped_gemm", SWITCH),
    "full_cuda_graph": TrainingSetting("full_cuda_graph", SWITCH),
    "activation_func_fp8_input_store": TrainingSetting("activation_func_fp8_input_store", SWITCH),
    "cpu_offloading_num_layers": TrainingSetting("cpu_offloading_num_layers", least=1.0, most=1e4),
    "hidden_dropout": TrainingSetting("hidden_dropout"),
    "attention_dropout": TrainingSetting("attention_dropout"),
    "implementation": TrainingSetting("implementation", IMPLEMENTATIONS),
    "moe_imbalance": TrainingSetting("moe_imbalance", least=1.0, most=1000.0),
    "document_tokens": TrainingSetting("document_tokens", least=1.0, most=2.0**40),
}
"""Every setting by the name that a framework gives it."""


def taken(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns settings of the framework's groups, and the options of a request that others make.

    >>> taken({"cp_comm_type": "a2a", "overlap_moe_expert_parallel_comm": "True"})
    ({'cp_comm_type': 'a2a'}, {'a2a_overlap': 'true'})

    Raises InputError for a value that a setting does not take.
    """
    groups = {name: text for name, text in settings.items() if name not in SETTINGS}
    own = {name: text for name, text in settings.items() if name in SETTINGS}
    return groups, {SETTINGS[name].option: _value(name, text.strip()) for name, text in own.items()}


def _value(name: str, text: str) -> str:
    known = SETTINGS[name]
    if known.values:
        if text.lower() in known.values:
            return text.lower()
        raise InputError(
            "{name}={value} cannot be; it is {known}",
            name=name,
            value=text[:40],
            known=listed(known.values, last="or"),
        )
    is_number = re.fullmatch(r"\d{1,15}(\.\d{1,12})?|\.\d{1,12}", text)
    if not is_number or not known.least <= float(text) <= known.most:
        raise InputError(
            "{name}={value} cannot be; it is a number from {least:g} to {most:g}",
            name=name,
            value=text[:40],
            least=known.least,
            most=known.most,
        )
    return text
