"""Config files that a command names: written by the script, given beside it, or missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from serried.finding import Sentence, said
from serried.launch.documents import defaults
from serried.launch.documents import yaml as yaml_text
from serried.launch.facts.config import Reading
from serried.launch.facts.flags import Flag, take
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys
from serried.launch.facts.named_files import meant
from serried.launch.facts.words import Field, Piece, Value
from serried.launch.formats import accelerate, recipe, torchtitan
from serried.launch.formats.nvidia import bridge, nemo
from serried.launch.formats.reinforcement import skyrl, verl
from serried.launch.shell.files import ending
from serried.launch.starters import program_options
from serried.launch.starters.launchers import Launch

FLAGS = (
    *("config", "config-file", "job.config-file", "deepspeed-config", "deepspeed", "ds-config"),
    *("yaml-cfg", "config-yaml", "config-name"),
)
"""Options that name a config file."""

NEEDED = ("config", "config-file", "job.config-file", "yaml-cfg")
"""Those whose file holds the sizes, so that they are open when its name is."""

WRITTEN = (("colossalai", "config-file"),)
"""Launchers with an option of a program that names a file it writes."""

FILE = re.compile(r"\.(py|ya?ml|json|toml)$")
YAML = re.compile(r"^[^=]+\.ya?ml$")
YAML_ENDINGS = (".yaml", ".yml")
DATA = re.compile(r"\.(ya?ml|json|toml)$")
"""A config that stands alone among the arguments; a Python file there is a program."""

PATH = re.compile(r"\+{0,2}(?:config|config_file|config_path)=(.+\.ya?ml)", re.S)
"""A setting that names the YAML which the other settings change, such as EasyR1's."""

ReadOther = Callable[[str, str], "Reading | None"]
"""Reads a config file that a script names: text and name in, what it says out."""

ReadKeys = Callable[[Keys], "Reading | None"]
"""Reads settings that stand on the command line, over those of the YAML that it names."""


@dataclass(frozen=True)
class ConfigFiles:
    """Holds the files that a command may mean, and how a config among them is read."""

    written: Mapping[str, Value]
    beside: Mapping[str, str]
    read: ReadOther
    read_keys: ReadKeys

    def text(self, path: str) -> str | None:
        """Returns the text of the file a path means; ``null`` stands for what is not known."""
        # A config that the script writes itself goes before one of that name beside it.
        written = meant(path, self.written)
        if written is not None:
            value = self.written[written]
            pieces = (each.text if isinstance(each, Piece) else "null" for each in value)
            return "".join(pieces)
        name = meant(path, self.beside)
        return None if name is None else self.beside[name]


def readings(launch: Launch, flags: Sequence[Flag], shelf: ConfigFiles) -> list[Reading]:
    """Returns what the config files that a command names say, missing ones included."""
    named = [
        (flag.name, flag.values[0])
        for flag in flags
        if flag.values and flag.name in FLAGS and (launch.launcher, flag.name) not in WRITTEN
    ]
    # A config may stand without an option, first or behind a verb: 'cli.py train llama.yaml'.
    alone = [each for each in launch.arguments[:2] if not each.start.startswith("-")]
    named += [("", each) for each in alone if DATA.search(each.text or "")]
    found: list[Reading] = []
    for flag, word in named:
        name = ending(word)
        # Hydra's '--config-name llama' leaves the ending out.
        if flag == "config-name" and name and not name.endswith(YAML_ENDINGS):
            name += ".yaml"
        if not name and flag in NEEDED:
            found.append(_not_known(word, launch, flag))
        # '--config llama3_8b' names a function of torchtitan's registry, which is no file.
        if not FILE.search(name) or (
            flag == "config-name" and PurePosixPath(name).stem in verl.OWN
        ):
            continue
        text = shelf.text(name)
        if text is None:
            found.append(_not_given(name, word, launch, flag))
        elif other := shelf.read(text, PurePosixPath(name).name):
            found.append(other)
    return found


def overridden(launch: Launch, flags: Sequence[Flag], shelf: ConfigFiles) -> Reading | None:
    """Returns what settings such as ``trainer.nnodes=2`` say, over the YAML that is named.

    None where the command has no such settings, or they and the YAML are of no known format.
    """
    keys = program_options.overrides(launch.arguments, launch.run.line.file)
    program = (launch.program.text if launch.program else None) or ""
    is_nemo = bool(nemo.PROGRAM.fullmatch(program))
    is_bridge = bool(bridge.PROGRAM.fullmatch(program))
    if not keys.entries and launch.launcher != "ray" and not is_nemo and not is_bridge:
        return None
    missing: list[str] = []
    for name in _base_names(launch, flags):
        text = shelf.text(name)
        base = yaml_text.read(text, PurePosixPath(name).name) if text is not None else None
        if base is None:
            missing.append(name)
        else:
            whole = defaults.composed(base, shelf.beside)
            keys.give_way(whole)
            missing += whole.missing
    keys.missing = tuple(missing)
    # A driver has settings of its own trainer's, though they may be of other things than ranks.
    reading = nemo.read(keys, flags) if is_bridge else shelf.read_keys(keys)
    if reading is None and launch.launcher == "ray":
        reading = (skyrl if skyrl.PROGRAM.fullmatch(program) else verl).read(keys)
    if reading is None and is_nemo:
        reading = nemo.read_program(keys)
    if reading:
        reading.format = reading.format.replace("YAML", "command line")
    return reading


def _base_names(launch: Launch, flags: Sequence[Flag]) -> Iterator[str]:
    """Yields the YAML files that settings on the command line stand over."""
    for flag in flags:
        if flag.values and flag.name in ("config", "config-file", "config-name"):
            name = ending(flag.values[0])
            is_bare = flag.name == "config-name" and not FILE.search(name)
            yield f"{name}.yaml" if is_bare and name else name
    for word in launch.arguments:
        path = PATH.fullmatch(word.text or "")
        if path:
            yield path[1]
    yield from (each.text or "" for each in launch.arguments[:2] if YAML.search(each.text or ""))


def take_registry(facts: Facts, flags: Sequence[Flag], shelf: ConfigFiles) -> None:
    """Adds what the function says that ``--module llama3 --config llama3_8b`` names.

    Source: torchtitan 0.3 torchtitan/config/manager.py: module config_registry of a model.
    """
    named = {flag.name: flag.values[0].text or "" for flag in flags if flag.values}
    module, config = named.get("module", ""), named.get("config", "")
    path = f"{module.replace('.', '/')}/config_registry.py"
    name = meant(path, shelf.beside) if module else None
    text = shelf.beside[name] if name and name.endswith(path) else ""
    if config in recipe.recipes(text):
        facts.give_way(recipe.read(text, "config_registry.py", config).facts)
    else:
        torchtitan.lack_registry(facts, flags)


def accelerate_launch(launch: Launch, flags: Sequence[Flag], shelf: ConfigFiles) -> Reading:
    """Returns what ``accelerate launch`` says: its options, then the config it names."""
    facts = Facts(launch.run.line.file)
    take(facts, flags, accelerate.FLAGS)
    for flag in flags:
        if kind := accelerate.KINDS.get(flag.name):
            facts.add("_type", kind, flag.word.line.number, flag.key)
    # Options go before the DeepSpeed JSON, and both before the config: 'give_way' adds only names
    # of which nothing was said so far.
    for flag in flags:
        if flag.name == "deepspeed-config-file" and flag.values:
            name = ending(flag.values[0])
            text = shelf.text(name)
            if text is None:
                facts.notes.add(*_not_given(name, flag.values[0], launch, flag.name).facts.notes)
            elif other := shelf.read(text, PurePosixPath(name).name):
                facts.give_way(other.facts)
    for flag in flags:
        if flag.name == "config-file" and flag.values:
            name = ending(flag.values[0])
            if not name.strip("…/"):
                facts.join(_not_known(flag.values[0], launch, flag.name).facts)
                return Reading(launch.format, facts)
            text = shelf.text(name)
            keys = yaml_text.read(text, PurePosixPath(name).name) if text is not None else None
            # The kind of job stands in the config, and the framework hangs on it, so nothing is
            # settled.
            if keys is None:
                missing = _not_given(name, flag.values[0], launch, flag.name)
                facts.join(missing.facts)
                return Reading(missing.format, facts)
            facts.give_way(accelerate.facts_of(keys))
    return accelerate.settle(facts, launch.format)


def _not_given(name: str, word: Field, launch: Launch, flag: str) -> Reading:
    """Returns a reading that says which config file is missing, and asks what it would tell."""
    facts = Facts(word.line.file)
    if word.text is None and not name.startswith("…"):
        name = f"…/{name}"
    facts.note(
        said(
            "{file} line {line} names {config}, which is not given beside it; "
            "what it says is not known",
            file=facts.file,
            line=word.line,
            config=name,
        )
    )
    # What to ask for hangs on who would read the config: Paddle's trainers take tp and pp from it,
    # torchtitan every size. DeepSpeed's JSON need not hold any, so that nothing is asked; a Python
    # config or Accelerate's would have told the framework as well.
    if launch.launcher == "paddle":
        for size in ("tp", "pp"):
            facts.lack(size, _names(word, name))
        return Reading(launch.format, facts, "paddle")
    if flag == "job.config-file":
        torchtitan.lack_sizes(facts, _names(word, name))
        return Reading(launch.format, facts, "torchtitan")
    if "deepspeed" in flag or (launch.launcher == "deepspeed" and name.endswith(".json")):
        return Reading(launch.format, facts, "deepspeed")
    if name.endswith(".py") or launch.launcher == "accelerate":
        facts.lack("framework", _names(word, name))
    return Reading(launch.format, facts)


def _not_known(word: Field, launch: Launch, flag: str) -> Reading:
    """Returns a reading that says why the name of a config is not known."""
    facts = Facts(word.line.file)
    facts.lack("framework", said("{key}: {why}", key=f"--{flag}", why=word.because))
    return Reading(launch.format, facts)


def _names(word: Field, name: str) -> Sentence:
    """Says that a command names a config that is not given."""
    return said(
        "line {line} names {config}, which is not given beside it", line=word.line, config=name
    )
