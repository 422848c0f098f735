"""Tells what a launch file is by its content, and has it read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePosixPath

from serried.errors import InputError, listed
from serried.finding import said
from serried.launch import neighbours
from serried.launch.documents import (
    defaults,
)
from serried.launch.documents import (
    json as json_text,
)
from serried.launch.documents import (
    python as python_text,
)
from serried.launch.documents import (
    toml as toml_text,
)
from serried.launch.documents import (
    yaml as yaml_text,
)
from serried.launch.facts import mark, training
from serried.launch.facts.config import Reading
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys
from serried.launch.facts.named_files import meant
from serried.launch.formats import (
    accelerate,
    axolotl,
    deepspeed,
    flagscale,
    hostfile,
    huggingface,
    internlm,
    llm_foundry,
    maxtext,
    megatron,
    nanotron,
    paddle,
    primus,
    recipe,
    skypilot,
    torchtitan,
    veomni,
)
from serried.launch.formats.nvidia import automodel, nemo
from serried.launch.formats.reinforcement import nemo_rl, skyrl, swift_ray, verl
from serried.launch.starters import script

# '[parallelism]  # degrees', a line by itself.
TOML_SECTION = re.compile(r"(?m)^[ \t]*\[[\w.\-\"']+\][ \t]*(?:#.*)?$")
# 'parallel = dict(', 'model = {' or 'with read_base():' at the start of a line.
PYTHON_CONFIG = re.compile(r"(?m)^(?:parallel|model|data)\s*=\s*(?:dict\s*\(|\{)|^with read_base\(")

YAML_WORDS = re.compile(r"parallel|MODEL_ARGS|distributed_type|num_processes|trainer")
"""Words that a YAML file of ours has; text without them that is no YAML is something else."""

FORMATS = listed(
    (
        said("Megatron scripts and YAML"),
        said("Slurm scripts"),
        said("torchrun, accelerate, deepspeed, colossalai, ms-swift and Paddle command lines"),
        said("NeMo, NeMo Automodel and Megatron-Bridge YAML"),
        said("settings of verl, SkyRL, OpenRLHF and NeMo-RL"),
        said("YAML of Hugging Face trainers, LLaMA-Factory, axolotl and llm-foundry"),
        said("MaxText, VeOmni, FlagScale and Primus YAML"),
        said("InternLM and InternEvo configs"),
        said("DeepSpeed JSON and hostfiles"),
        *("Accelerate YAML", "torchtitan TOML", "nanotron YAML"),
        said("PaddleNLP and PaddleFormers arguments"),
    ),
    limit=20,
)


UNKNOWN = "formats"
"""What the refusal of a file that is no launch file at all has among its values, and no other."""


def reading_of(text: str, file: str, beside: Mapping[str, str]) -> Reading:
    """Returns what a launch file says; raises InputError when it is none that serried knows."""
    reading = _reading(text, file, beside)
    if reading is None:
        _refuse_neighbour(text, file)
        raise InputError(
            "{file} is no launch file that serried knows; it reads {formats}",
            file=file,
            formats=FORMATS,
        )
    mark.fill(reading, text)
    return reading


def _refuse_neighbour(text: str, file: str) -> None:
    """Raises InputError for a file that stands near a launch config, saying what to give."""
    if file.endswith(".py") or python_text.is_program(text):
        neighbours.refuse_python(file)
    keys = None if TOML_SECTION.search(text) else _yaml(text, file)
    if keys is not None:
        neighbours.refuse_yaml(keys, file)
    if file.endswith((".yaml", ".yml")):
        neighbours.refuse_answering(text, file)


def is_known(text: str, file: str, beside: Mapping[str, str]) -> bool:
    """Tells whether a text is a launch file, for choosing among several."""
    try:
        return _reading(text, file, beside) is not None
    except InputError:
        # A script that only reads or starts what is not here may be anything.
        return not script.SHEBANG.match(text) or script.is_one(text)


def _reading(text: str, file: str, beside: Mapping[str, str]) -> Reading | None:
    module, is_chosen, name = file.partition(".py:")
    if is_chosen:
        return recipe.read(text, f"{module}.py", name)
    # By the content, not the name: files are called train.txt or config. The order matters, for
    # YAML takes nearly any text, and scripts hold JSON, YAML and Python in heredocs.
    if script.SHEBANG.match(text) or re.search(r"(?m)^#SBATCH", text):
        return _script(text, file, beside)
    if text.lstrip().startswith("{"):
        return _json(text, file, beside)
    if hostfile.is_one(text):
        return _hostfile(text, file)
    if PYTHON_CONFIG.search(text) and (file.endswith(".py") or python_text.is_python(text)):
        return _python(text, file, beside)
    if file.endswith(".py") or python_text.is_program(text):
        chosen = recipe.choose(text, file)
        return recipe.read(text, file, chosen) if chosen else None
    if TOML_SECTION.search(text):
        return _toml(text, file)
    keys = _yaml(text, file)
    if keys is not None:
        return _task(keys, text, beside) if skypilot.is_one(keys) else _composed(keys, beside)
    is_script = script.is_one(text) or script.is_shell(text, file)
    return _script(text, file, beside) if is_script else None


def _script(text: str, file: str, beside: Mapping[str, str]) -> Reading | None:
    others = {name: other for name, other in beside.items() if name != file}
    return script.read(text, file, others, partial(_other, beside=others), _any_yaml)


def _task(keys: Keys, text: str, beside: Mapping[str, str]) -> Reading | None:
    """Reads the script inside a task of SkyPilot."""
    reading = _script(skypilot.script(keys, text), keys.file, beside)
    if reading:
        reading.format = f"{reading.format} under SkyPilot"
    return reading


def _other(text: str, name: str, beside: Mapping[str, str]) -> Reading | None:
    """Reads a config file that a script names; hosts are the launcher's business then."""
    if script.SHEBANG.match(text):
        return None
    configs = {other: each for other, each in beside.items() if other.endswith(".py")}
    return _reading(text, name, configs)


def _json(text: str, file: str, beside: Mapping[str, str]) -> Reading | None:
    try:
        keys = json_text.read(text, file)
    except InputError:
        # GPT-NeoX writes YAML that begins as JSON does.
        if file.endswith((".yaml", ".yml")):
            flowing = yaml_text.read(text, file)
        else:
            flowing = None if file.endswith(".json") else _yaml(text, file)
        if flowing is None:
            raise
        return _any_yaml(flowing)
    if deepspeed.is_json(keys):
        return _heard(deepspeed.read(keys, beside), keys)
    if paddle.is_one(keys):
        return _heard(paddle.read(keys, "JSON"), keys)
    return _any_yaml(keys)


def _hostfile(text: str, file: str) -> Reading:
    facts = Facts(file)
    hosts = hostfile.read(text, file)
    hostfile.count(facts, hosts)
    return Reading("DeepSpeed hostfile", facts, "deepspeed")


def _toml(text: str, file: str) -> Reading | None:
    keys = toml_text.read(text, file)
    return _heard(torchtitan.read(keys), keys) if torchtitan.is_one(keys) else None


def _python(text: str, file: str, beside: Mapping[str, str]) -> Reading | None:
    keys, notes = python_text.read(text, file, beside)
    return _heard(internlm.read(keys, notes), keys) if internlm.is_one(keys) else None


def _yaml(text: str, file: str) -> Keys | None:
    """Returns the keys of a YAML mapping, or None when the text may be a script."""
    if ":" not in text:
        return None
    if file.endswith((".yaml", ".yml", ".tpl")):
        neighbours.refuse_template(text, file)
    try:
        return yaml_text.read(text, file)
    except InputError:
        # A command with a ':' in it fails as YAML, as a broken config does: their words tell which
        # it is.
        is_script = script.is_one(text) or script.is_shell(text, file)
        if is_script or not YAML_WORDS.search(text):
            return None
        raise


YAML_FORMATS: tuple[tuple[Callable[[Keys], bool], Callable[[Keys], Reading | None]], ...] = (
    (skyrl.is_one, skyrl.read),
    (verl.is_one, verl.read),
    (nemo_rl.is_one, nemo_rl.read),
    (automodel.is_one, automodel.read),
    (primus.is_one, primus.read),
    (flagscale.is_one, flagscale.read),
    (maxtext.is_one, maxtext.read),
    (veomni.is_one, veomni.read),
    (axolotl.is_one, axolotl.read),
    (llm_foundry.is_one, llm_foundry.read),
    (megatron.is_yaml, megatron.read_yaml),
    (accelerate.is_one, accelerate.read),
    (swift_ray.is_one, swift_ray.read),
    (nanotron.is_one, nanotron.read),
    (nemo.is_one, nemo.read),
    (deepspeed.is_neox, deepspeed.read_neox),
    (paddle.is_fleetx, paddle.read_fleetx),
    (paddle.is_one, partial(paddle.read, name="YAML")),
    (huggingface.is_yaml, huggingface.read_yaml),
)
"""What tells a YAML format by its keys, and what reads it, the most particular first.

Megatron's trainers and Paddle's share names of sizes; keys beside these tell them apart.
"""


def _any_yaml(keys: Keys) -> Reading | None:
    found = next((read(keys) for is_one, read in YAML_FORMATS if is_one(keys)), None)
    return _heard(found, keys)


def _heard(reading: Reading | None, keys: Keys) -> Reading | None:
    """Returns a reading with what its keys say of the model and its training."""
    if reading:
        reading.facts.hear(training.of_keys(keys))
    return reading


def _composed(keys: Keys, beside: Mapping[str, str]) -> Reading | None:
    """Reads YAML that may take in others, and says which of them are not given."""
    whole = defaults.composed(keys, beside)
    reading = _any_yaml(whole)
    if reading and reading.names:
        _take_json(reading, beside)
    for name in whole.missing if reading else ():
        if reading and PurePosixPath(name).stem not in verl.OWN:
            reading.facts.note(
                said(
                    "{file} takes in {name}, which is not given beside it; what it says is not "
                    "known",
                    file=keys.file,
                    name=name,
                )
            )
    return reading


def _take_json(reading: Reading, beside: Mapping[str, str]) -> None:
    """Adds what the DeepSpeed JSON says that a file names, where that stands beside it."""
    wanted = PurePosixPath(reading.names).name
    name = meant(reading.names, beside)
    text = None if name is None else beside[name]
    other = _json(text, wanted, {}) if text is not None else None
    if other:
        reading.facts.give_way(other.facts)
        return
    reading.facts.note(
        said(
            "{file} names {name}, which is not given beside it; what it says is not known",
            file=reading.facts.file,
            name=reading.names,
        )
    )
