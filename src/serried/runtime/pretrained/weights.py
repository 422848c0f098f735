"""The safetensors of a model's folder: looked through before the launch, read stage by stage.

model.safetensors, or model.safetensors.index.json and the files it names, or *.safetensors
names       as the model's own; without its prefix, as older files of GPT-2 have them
experts     one by one in files and together in the model: transformers' own reading joins them
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from serried.errors import InputError, listed
from serried.finding import said
from serried.limits import WEIGHT_INDEX_BYTES
from serried.runtime.job.config_model import ConfigModel
from serried.user_file import read_text

IGNORED = (r"rotary_emb\.inv_freq", r"\.masked_bias$")
"""Names in older files of what a model computes itself."""


def require_weights(sizes: ConfigModel, model: Any) -> None:
    """Raises InputError where the files of ``sizes`` are damaged, or of another model."""
    if sizes.weights is None:
        return
    found = _shapes(sizes.weights)
    places = _places(found, model)
    if places is None:
        return  # transformers joins or renames them; it tells of what is left when it has read them
    unexpected = set(found) - set(places.values()) - _passed_over(found, model, sizes)
    missing = [name for name, place in places.items() if place not in found]
    if missing or unexpected:
        raise _other_names(sizes.weights, missing, unexpected)
    for name, parameter in model.named_parameters():
        shape = found[places[name]]
        if shape != tuple(parameter.shape):
            raise InputError(
                "{path} has {name} of shape {found}, and the config's model of {wanted}; give "
                "weights and config of one model",
                path=sizes.weights,
                name=name,
                found=listed(shape),
                wanted=listed(parameter.shape),
            )


@torch.no_grad()
def load_weights(sizes: ConfigModel, model: Any, held: Mapping[str, Tensor]) -> None:
    """Reads the weights that a stage holds, by name, into ``held``."""
    assert sizes.weights is not None
    places = _places(_shapes(sizes.weights), model)
    if places is None:
        _load_converted(sizes, held)
        return
    for file in _files(sizes.weights):
        with _opened(file) as opened:
            names = set(opened.keys())
            for name, tensor in held.items():
                if places[name] in names:
                    tensor.copy_(opened.get_tensor(places[name]))


def _load_converted(sizes: ConfigModel, held: Mapping[str, Tensor]) -> None:
    """Lets transformers read the whole model, whose names in files are not its own."""
    from transformers.models.auto.modeling_auto import AutoModelForCausalLM

    assert sizes.weights is not None
    reader: Any = AutoModelForCausalLM
    try:
        model, told = reader.from_pretrained(
            sizes.weights,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    except Exception as error:  # it has many of its own
        lines = str(error).strip().splitlines()
        reason = lines[0] if lines else type(error).__name__
        raise InputError(
            "{path} cannot be read: {reason}", path=sizes.weights, reason=reason
        ) from error
    missing, unexpected = told["missing_keys"], told["unexpected_keys"]
    if missing or unexpected or told["mismatched_keys"]:
        raise _other_names(sizes.weights, [*missing, *told["mismatched_keys"]], unexpected)
    whole = dict(model.named_parameters())
    for name, tensor in held.items():
        tensor.copy_(whole[name])


def _other_names(folder: Path, missing: Any, unexpected: Any) -> InputError:
    return InputError(
        "the weights in {path} are of another model than its config: {missing} missing ({first}), "
        "{unexpected} unexpected ({other}); give weights and config of one model",
        path=folder,
        missing=len(missing),
        first=listed(sorted(map(str, missing)) or ["-"], limit=2),
        unexpected=len(unexpected),
        other=listed(sorted(map(str, unexpected)) or ["-"], limit=2),
    )


def _places(found: Mapping[str, Any], model: Any) -> dict[str, str] | None:
    """Returns under which name files keep each weight; None where only transformers knows."""
    from transformers import conversion_mapping

    renamed: Any = conversion_mapping.get_checkpoint_conversion_mapping
    names = [name for name, _ in model.named_parameters()]
    prefix = f"{model.base_model_prefix}."
    bare = {name: name.removeprefix(prefix) for name in names}
    has_prefix = any(name in found for name in names if name.startswith(prefix))
    places = dict(zip(names, names, strict=True)) if has_prefix else bare
    if all(place in found for place in places.values()):
        return places
    return None if renamed(model.config.model_type) else places


def _passed_over(found: Mapping[str, Any], model: Any, sizes: ConfigModel) -> set[str]:
    """Returns the names in files that a model may do without."""
    patterns = [*IGNORED, *(model._keys_to_ignore_on_load_unexpected or ())]
    tied = tuple(model._tied_weights_keys or ()) if sizes.tie else ()
    return {
        name
        for name in found
        if name in tied or any(re.search(pattern, name) for pattern in patterns)
    }


def _shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each tensor in the files; raises InputError where one is damaged."""
    shapes: dict[str, tuple[int, ...]] = {}
    for file in _files(folder):
        with _opened(file) as opened:
            for name in opened.keys():  # noqa: SIM118  it is no mapping
                shapes[name] = tuple(opened.get_slice(name).get_shape())
    return shapes


def _files(folder: Path) -> list[Path]:
    """Returns the files that together are the model."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        return [whole]
    if not index.is_file():
        return sorted(folder.glob("*.safetensors"))
    try:
        text = read_text(index, WEIGHT_INDEX_BYTES.most, said("an index of safetensors"))
        names = sorted(set(json.loads(text)["weight_map"].values()))
        # The index is data: a name such as ../other would lead out of the folder.
        if any(Path(name).name != name for name in names):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(
            "{path} is no index of safetensors: it names no files of its folder in weight_map",
            path=index,
        ) from error
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise InputError(
            "{path} names files that are not there: {names}; bring all files of the model",
            path=index,
            names=listed(missing, limit=3),
        )
    return [folder / name for name in names]


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """Opens a file of safetensors; raises InputError where it is damaged or cut short."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="pt") as opened:
            yield opened
    except (SafetensorError, OSError) as error:
        raise InputError(
            "{path} is damaged or cut short: {reason}; bring it anew",
            path=file,
            reason=str(error).splitlines()[0],
        ) from error
