"""A config file as dotted keys with their values and lines, whatever it is written in.

parallelism:              parallelism.dp   2   line 2
  dp: 2                   parallelism.tp   4   line 3
  tp: 4
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.launch.facts.flags import Meaning, Meanings, plain
from serried.launch.facts.found import TEXT_FIELDS, Facts, Found, not_a_number
from serried.launch.facts.whole_number import NUMBER, whole
from serried.limits import CONFIG_DEPTH, CONFIG_KEY, CONFIG_REFERENCE, CONFIG_VALUES, DIGITS

LIMIT_NUMBER = 10**DIGITS.most
"""The largest size that is read; the shell's and Python's numbers are as large."""
# '${trainer.devices}', and '${oc.env:GPUS,8}' or '${env:GPUS}'; Primus writes '${GPUS:8}'.
REFERENCE = re.compile(r"\$\{([\w.]+)\}")
ENVIRONMENT = re.compile(r"\$\{(?:oc\.)?env:\s*(\w+)\s*(?:,\s*(.*?)\s*)?\}")
PRIMUS_ENVIRONMENT = re.compile(r"\$\{([A-Z][A-Z0-9_]*)(?::(.*))?\}")

Scalar = int | float | bool | str | None


@dataclass(frozen=True)
class ConfigValue:
    """Holds a value with its line; ``why`` stands in for one that the file does not settle."""

    value: Scalar | tuple[Scalar, ...]
    line: int | None = None
    via: str = ""
    why: Sentence | None = None
    file: str = ""
    """The file it stands in, where that is another one than the file read."""


@dataclass
class Keys:
    """Holds the entries of one file; a key that the file gives twice has two."""

    file: str
    entries: dict[str, list[ConfigValue]] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    """Configs that it takes in and that are not given beside it."""

    def add(self, key: str, entry: ConfigValue) -> None:
        """Adds an entry; raises InputError when a file unfolds to more than any config holds."""
        if len(key) > CONFIG_KEY.most:
            # Each value below a long key repeats it, so that the keys would outgrow the file.
            raise InputError(
                "{file} has a key of more than {limit} letters, as no launch file does",
                file=self.file,
                limit=CONFIG_KEY.most,
            )
        self.entries.setdefault(key, []).append(entry)
        if len(self.entries) > CONFIG_VALUES.most:
            raise too_many(self.file)

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def has(self, *sections: str) -> bool:
        """Tells whether each of ``sections`` is a key or holds keys."""
        return all(
            any(key == each or key.startswith(each + ".") for key in self.entries)
            for each in sections
        )

    def value(self, key: str) -> Scalar | tuple[Scalar, ...]:
        """Returns the value of ``key``, or None when it is not there."""
        entries = self.entries.get(key)
        return entries[0].value if entries else None

    def give_way(self, other: Keys) -> None:
        """Adds the keys of ``other`` that are not here, each with the file it stands in.

        >>> keys, base = Keys("run.yaml"), Keys("base.yaml")
        >>> keys.add("tp", ConfigValue(2, 1))
        >>> base.add("tp", ConfigValue(4, 8))
        >>> base.add("pp", ConfigValue(4, 9))
        >>> keys.give_way(base)
        >>> keys.value("tp"), keys.value("pp"), keys.entries["pp"][0].file
        (2, 4, 'base.yaml')
        """
        own = frozenset(self.entries)
        for key, entries in other.entries.items():
            if key not in own:
                for each in entries:
                    self.add(key, replace(each, file=each.file or other.file))

    def below(self, section: str) -> Keys:
        """Returns the keys below ``section`` as a config of their own."""
        return Keys(self.file, dict(self.under(section)), self.missing)

    def under(self, section: str) -> Iterator[tuple[str, list[ConfigValue]]]:
        """Yields the keys below ``section``, without it, and their entries."""
        for key, entries in self.entries.items():
            if key.startswith(section + "."):
                yield key[len(section) + 1 :], entries

    def resolved(self, entry: ConfigValue) -> ConfigValue:
        """Returns an entry with ``${other.key}`` replaced by what stands there.

        ``${oc.env:NAME,8}`` counts as its default, as ``${NAME:-8}`` does in a script.
        """
        for _ in range(8):
            if isinstance(entry.value, str) and len(entry.value) > CONFIG_REFERENCE.most:
                return entry
            text = entry.value if isinstance(entry.value, str) else ""
            if env := ENVIRONMENT.fullmatch(text) or PRIMUS_ENVIRONMENT.fullmatch(text):
                return self._environment(env, entry)
            # A reference may lead to another one, and two to each other: hence a number of steps.
            found = REFERENCE.fullmatch(entry.value) if isinstance(entry.value, str) else None
            other = self.entries.get(found[1]) if found else None
            if not found or not other:
                return entry
            entry = replace(other[0], via=found[0])
        return entry

    def _environment(self, found: re.Match[str], entry: ConfigValue) -> ConfigValue:
        name, default = found[1], found[2]
        if default is None:
            why = said("{name} comes from the environment", name=name)
            return replace(entry, value=None, why=why)
        number = whole(default)
        value = number if number is not None else default.strip("\"'")
        return replace(entry, value=value, via=found[0])


def too_deep(file: str) -> InputError:
    """Returns the error for a file whose values hold values without end."""
    return InputError("{file} is nested too deeply to be a launch file", file=file)


def too_many(file: str) -> InputError:
    """Returns the error for a file that unfolds without end."""
    return InputError(
        "{file} unfolds to more than {limit} values, which no launch file does; "
        "write its aliases out, or give the sizes as options",
        file=file,
        limit=CONFIG_VALUES.most,
    )


def leave_open(facts: Facts, keys: Keys, sizes: Sequence[str]) -> None:
    """Leaves sizes open that a config may say which the file takes in, where it is not given."""
    for name in keys.missing:
        for size in sizes:
            if not facts.says(size):
                because = said(
                    "{file} takes in {name}, which is not given beside it",
                    file=keys.file,
                    name=name,
                )
                facts.lack(size, because)


def take(
    facts: Facts,
    keys: Keys,
    meanings: Meanings,
    *,
    section: str = "",
    name_of: Callable[[str], str] = plain,
) -> None:
    """Adds to ``facts`` what the keys below ``section`` that ``meanings`` knows say."""
    pairs = list(keys.under(section)) if section else list(keys.entries.items())
    for key, entries in pairs:
        meaning = meanings.get(name_of(key))
        if meaning:
            written = f"{section}.{key}" if section else key
            for entry in entries:
                _add(facts, keys, meaning, written, keys.resolved(entry))


def _add(facts: Facts, keys: Keys, meaning: Meaning, key: str, entry: ConfigValue) -> None:
    if entry.why is not None:
        facts.lack(meaning.name, said("{key}: {why}", key=key, why=entry.why))
        return
    value = as_value(entry.value, meaning)
    # 'tensor_parallel_size: null' is as good as not written.
    if value is None:
        return
    is_size = meaning.kind == "size" and meaning.name not in TEXT_FIELDS
    found = Found(value, entry.file or keys.file, entry.line, key, entry.via)
    if is_size and not (isinstance(value, int) and abs(value) < LIMIT_NUMBER):
        facts.lack(meaning.name, not_a_number(found.where, value))
        return
    facts.claim(meaning.name, found)


def as_value(value: Scalar | Sequence[Scalar], meaning: Meaning) -> int | str | None:
    """Returns a config's value as a number or text; None for one that is not set.

    >>> as_value(True, Meaning("sp", "yes")), as_value("8", Meaning("tp"))
    ('true', 8)
    """
    if value is None or value == "":
        return None
    # To Python a bool is an int, so it is asked for first. 'tp: false' means not set; 'tp: true'
    # stays a word, which is refused as no number.
    if isinstance(value, bool):
        if meaning.kind == "size":
            return None if not value else "true"
        return str(value != (meaning.kind == "no")).lower()
    if isinstance(value, list | tuple):
        return " ".join(str(each) for each in value)
    if isinstance(value, float):
        return int(value) if value.is_integer() and meaning.kind == "size" else str(value)
    if isinstance(value, int):
        return value if meaning.kind == "size" else str(value)
    # YAML reads 'None' and quoted numbers as text, and people write both.
    text = str(value).strip()
    if text.lower() in ("none", "null"):
        return None
    if meaning.kind in ("yes", "no") and text.lower() in ("true", "false", "yes", "no"):
        return str((text.lower() in ("true", "yes")) != (meaning.kind == "no")).lower()
    return int(text) if meaning.kind == "size" and NUMBER.fullmatch(text) else text


def unfold(
    keys: Keys, tree: object, line_of: Callable[[str], int | None], prefix: str = ""
) -> None:
    """Adds a parsed tree of mappings, lists and scalars to ``keys``."""
    if prefix.count(".") > CONFIG_DEPTH.most:
        raise too_deep(keys.file)
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            unfold(keys, value, line_of, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(tree, list | tuple):
        # 'sizes = [2, 4]' is one value; of a list that holds mappings each has a key,
        # 'layers.0.size'.
        if all(not isinstance(each, Mapping | list) for each in tree):
            keys.add(prefix, ConfigValue(tuple(tree), line_of(prefix)))
            return
        for i, each in enumerate(tree):
            unfold(keys, each, line_of, f"{prefix}.{i}")
    else:
        scalar = tree if isinstance(tree, int | float | bool | str | None) else str(tree)
        keys.add(prefix, ConfigValue(scalar, line_of(prefix)))
