"""YAML that takes others in by its key ``defaults``, as Hydra and OmegaConf compose configs.

defaults: ../base.yaml        all keys of base.yaml stand below those of this file
defaults:
  - train: 7b                 the keys of train/7b.yaml stand below 'train'
  - actor@policy.actor: dp    those of actor/dp.yaml below 'policy.actor'
  - base                      those of base.yaml at the top
  - _self_                    this file, which here goes before what it takes in
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from serried.errors import InputError
from serried.launch.documents import yaml as yaml_text
from serried.launch.facts.keys import Keys
from serried.launch.facts.named_files import meant
from serried.limits import YAML_DEFAULTS

SELF = "_self_"
ENDINGS = (".yaml", ".yml")


@dataclass(frozen=True)
class Taken:
    """Names one config that ``defaults`` takes in, and the section that its keys stand below."""

    path: str
    section: str = ""


def composed(keys: Keys, beside: Mapping[str, str]) -> Keys:
    """Returns the keys with those of the files they take in; ``missing`` names those not given.

    Raises InputError for files that take in one another without end.

    Source: Hydra 1.3, hydra/_internal/defaults_list.py; NeMo-RL nemo_rl/utils/config.py.

    >>> keys = yaml_text.read("defaults: base.yaml\\ntp: 2", "run.yaml")
    >>> whole = composed(keys, {"base.yaml": "tp: 1\\npp: 4"})
    >>> whole.value("tp"), whole.value("pp"), whole.missing
    (2, 4, ())
    """
    reader = _Reader(Keys(keys.file), beside)
    reader.take(keys, "")
    reader.whole.missing = tuple(dict.fromkeys(reader.missing))
    return reader.whole


class _Reader:
    """Takes configs into one, those that go first first."""

    def __init__(self, whole: Keys, beside: Mapping[str, str]) -> None:
        self.whole, self.beside = whole, beside
        self.missing: list[str] = []
        self.num_taken = 0

    def take(self, keys: Keys, section: str) -> None:
        """Takes in ``keys`` below ``section``, and the files that they name."""
        # Of several the last goes first, and the file itself where '_self_' stands.
        for each in reversed(list(_named(keys))):
            inner = ".".join(part for part in (section, each.section) if part)
            if each.path == SELF:
                self.whole.give_way(_moved(keys, section))
                continue
            text = _text(each.path, self.beside)
            name = PurePosixPath(each.path).name
            other = yaml_text.read(text, name) if text is not None else None
            # Two that take in one another would never end.
            self.num_taken += 1
            if self.num_taken > YAML_DEFAULTS.most:
                raise InputError(
                    "{file} takes in other configs more than {limit} times; write out what it "
                    "takes from them",
                    file=self.whole.file,
                    limit=YAML_DEFAULTS.most,
                )
            if other is None:
                self.missing.append(each.path)
                continue
            self.take(other, inner)


def _moved(keys: Keys, section: str) -> Keys:
    """Returns keys below ``section``."""
    moved = Keys(keys.file)
    for key, entries in keys.entries.items():
        if key == "defaults" or key.startswith("defaults."):
            continue
        for entry in entries:
            moved.add(f"{section}.{key}" if section else key, entry)
    return moved


def _named(keys: Keys) -> Iterator[Taken]:
    """Yields what ``defaults`` names, in its order; the file itself last unless it says where."""
    taken = list(_entries(keys))
    yield from taken
    if all(each.path != SELF for each in taken):
        yield Taken(SELF)


def _entries(keys: Keys) -> Iterator[Taken]:
    value = keys.value("defaults")
    for word in value if isinstance(value, tuple) else (value,):
        if isinstance(word, str):
            yield Taken(_file(word))
    # In a list that holds mappings each place has a key: 'defaults.0.train', 'defaults.1'.
    for place, entries in keys.under("defaults"):
        _, _, group = place.partition(".")
        name = entries[0].value
        if not isinstance(name, str):
            continue
        if not group:
            yield Taken(_file(name))
            continue
        folder, _, package = group.partition("@")
        folder = folder.removeprefix("override ").removeprefix("optional ").strip("/ ")
        section = package or folder.replace("/", ".")
        yield Taken(_file(f"{folder}/{name}"), "" if section == "_global_" else section)


def _file(word: str) -> str:
    return word if word == SELF or word.endswith(ENDINGS) else f"{word}.yaml"


def _text(path: str, beside: Mapping[str, str]) -> str | None:
    """Returns the text that a path means: 'train/7b.yaml' is no 'serve/7b.yaml'."""
    name = meant(path, beside)
    bare = PurePosixPath(path)
    if name is None or (len(PurePosixPath(name).parts) > 1 and not _ends(name, bare)):
        return None
    return beside[name]


def _ends(name: str, path: PurePosixPath) -> bool:
    wanted = [part for part in path.parts if part not in ("..", ".")]
    return list(PurePosixPath(name).parts[-len(wanted) :]) == wanted
