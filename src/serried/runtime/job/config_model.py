"""ConfigModel: a causal language model as a Hugging Face config.json describes it.

    --model DIR/config.json    weights drawn from the config and the run's seed
    --model DIR                the same, or loaded where DIR holds *.safetensors

Nothing is downloaded, and no code or pickle that comes with a model is run: its architecture is
one that transformers has, and its weights are safetensors. A config's own dropout is left out, as
``--dropout`` says what there is of it.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from serried.errors import EnvironmentProblem, InputError, listed
from serried.finding import said
from serried.frameworks.framework import divisors
from serried.limits import MODEL_CONFIG_BYTES
from serried.runtime.job.model import ModelSizes
from serried.user_file import read_text

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
"""How files of weights end that Python unpickles, which may run any code."""


@dataclass(frozen=True)
class ConfigModel(ModelSizes):
    """Sizes of the model that a config.json describes, and what builds it on every rank.

    Raises InputError when heads cannot share KV heads evenly, or a sequence is too long.
    """

    architecture: str = ""
    """The class of transformers, such as ``LlamaForCausalLM``."""
    config: str = "{}"
    """The config as JSON, its dropout replaced; ranks build the model from it."""
    source: Path | None = None
    """What the user named."""
    weights: Path | None = None
    """The folder whose safetensors are loaded; None draws weights from the seed."""
    vocabulary: int = 0
    """Rows of the embedding."""
    width_of_head: int = 0
    inner: int = 0
    """Width of the feed-forward layer, or of one expert."""
    positions: int = 0
    """The longest sequence that the model has places for."""

    def resolved(self) -> Self:
        """Returns the same model with the absolute path of its weights."""
        return replace(self, weights=self.weights and self.weights.absolute())

    def told(self, vocabulary: int) -> dict[str, int]:
        """Returns nothing: its config says more than a recording's few sizes could."""
        return {}

    @property
    def head_size(self) -> int:
        """Width of one attention head, which need not be hidden / heads."""
        return self.width_of_head

    @property
    def ffn(self) -> int:
        """Width of the feed-forward layer."""
        return self.inner

    def _check_heads(self) -> None:
        if self.num_kv_heads < 1 or self.heads % self.num_kv_heads:
            raise InputError(
                "{heads} heads cannot share {kv_heads} KV heads evenly; numbers that fit: {fits}",
                heads=self.heads,
                kv_heads=self.num_kv_heads,
                fits=listed(divisors(self.heads)),
            )
        if self.positions and self.seq_len > self.positions:
            raise InputError(
                "a sequence of {seq_len} is longer than the {positions} places that {path} has "
                "(max_position_embeddings); take a --seq-len of at most that",
                seq_len=self.seq_len,
                positions=self.positions,
                path=self.source,
            )


def require_models() -> None:
    """Raises EnvironmentProblem where what reads models and tokenizers is not installed."""
    for package in ("transformers", "tokenizers", "safetensors"):
        if importlib.util.find_spec(package) is None:
            raise EnvironmentProblem(
                "models and tokenizers of Hugging Face need the {package} package, which is not "
                "installed; install it with: pip install 'serried[models]'",
                package=package,
            )


def read_model(path: Path, *, seq_len: int = 64, dropout: float = 0.0) -> ConfigModel:
    """Reads the config.json at ``path``, or in the folder ``path``.

    Raises InputError where it is no causal language model of transformers, or its weights are
    pickles; EnvironmentProblem without the packages that read it.
    """
    require_models()
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            "{path} is no model; give a config.json of Hugging Face, or a folder that holds one",
            path=path,
        )
    read = _object(file)
    architecture = _architecture(read, file)
    made = _made(read, file)
    return ConfigModel(
        **_sizes(made, file),
        seq_len=seq_len,
        dropout=dropout,
        architecture=architecture,
        config=_text_of(made, dropout),
        source=path,
        weights=_weights_folder(path) if path.is_dir() else None,
    )


def _object(file: Path) -> dict[str, Any]:
    text = read_text(file, MODEL_CONFIG_BYTES.most, said("a model's config.json"))
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if not isinstance(read, dict):
        raise InputError("{path} is no JSON object, as a config.json is", path=file)
    return read


def _architecture(read: Mapping[str, Any], file: Path) -> str:
    """Returns the class of transformers that the config is of; raises InputError for another."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    kind = read.get("model_type")
    if not isinstance(kind, str) or kind not in CONFIG_MAPPING:
        raise InputError(
            "{path} has model_type {kind}, which the installed transformers does not have; code "
            "that comes with a model is never run",
            path=file,
            kind=repr(kind),
        )
    known = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(kind)
    asked = read.get("architectures") or [known]
    name = asked[0] if isinstance(asked, list) else asked
    if known is None or name != known:
        raise InputError(
            "{path} is of {name}, which is no causal language model; give one such as {examples}",
            path=file,
            name=name or kind,
            examples=listed(["LlamaForCausalLM", known or "Qwen3ForCausalLM"]),
        )
    if read.get("quantization_config"):
        raise InputError(
            "{path} is of quantized weights (quantization_config), which are not trained; give the "
            "model that they were made from",
            path=file,
        )
    return str(known)


def config_of(described: Mapping[str, Any]) -> Any:
    """Returns transformers' own object for a config; raises whatever its class raises."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.utils import logging

    logging.set_verbosity(40)  # errors: its warnings are of generating text
    return CONFIG_MAPPING[described["model_type"]].from_dict(dict(described))


def _made(read: Mapping[str, Any], file: Path) -> Any:
    """Returns the config as transformers takes it; raises InputError where it does not."""
    try:
        return config_of({key: value for key, value in read.items() if key != "auto_map"})
    except Exception as error:  # each class checks its config in a way of its own
        raise _refused(file, error) from error


def _text_of(made: Any, dropout: float) -> str:
    """Returns a config as JSON, with ``dropout`` wherever it says one."""
    whole = json.loads(made.to_json_string(use_diff=False))
    for key, value in whole.items():
        if ("dropout" in key or key.endswith("pdrop")) and isinstance(value, float | int):
            whole[key] = dropout
    return json.dumps(whole, sort_keys=True)


def _refused(file: Path, error: Exception) -> InputError:
    lines = str(error).strip().splitlines()
    return InputError(
        "transformers cannot take {path} as a model: {reason}",
        path=file,
        reason=lines[0] if lines else type(error).__name__,
    )


def _sizes(made: Any, file: Path) -> dict[str, Any]:
    """Returns the sizes, under the names of ConfigModel, by transformers' own reading of them."""
    try:
        heads, hidden = made.num_attention_heads, made.hidden_size
        inner = getattr(made, "intermediate_size", None) or getattr(made, "n_inner", None)
        sizes = {
            "layers": made.num_hidden_layers,
            "hidden": hidden,
            "heads": heads,
            "kv_heads": getattr(made, "num_key_value_heads", None) or heads,
            "tie": bool(made.tie_word_embeddings),
            "vocabulary": made.vocab_size,
            "width_of_head": getattr(made, "head_dim", None) or hidden // heads,
            "inner": inner or 4 * hidden,
            "positions": getattr(made, "max_position_embeddings", 0) or 0,
        }
    except (AttributeError, ArithmeticError, TypeError) as error:
        raise _refused(file, error) from error
    for name, value in sizes.items():
        if not isinstance(value, int) or (value < 1 and name not in ("tie", "positions")):
            raise InputError(
                "{path} gives {value} for {name}, where a number of at least 1 is asked for",
                path=file,
                value=repr(value),
                name=name,
            )
    return sizes


def _weights_folder(folder: Path) -> Path | None:
    """Returns ``folder`` where it holds safetensors; raises InputError where it holds pickles."""
    if any(folder.glob("*.safetensors")):
        return folder
    pickles = sorted(each.name for each in folder.iterdir() if each.suffix in PICKLES)
    if pickles:
        raise InputError(
            "{path} holds weights as pickles ({names}), which may run any code and are not read; "
            "save them as safetensors (AutoModelForCausalLM.from_pretrained, then "
            "save_pretrained), or give {config} for weights drawn anew",
            path=folder,
            names=listed(pickles, limit=3),
            config=folder / "config.json",
        )
    return None
