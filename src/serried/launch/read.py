"""Reads a launch config: text given with its name, a file, or a folder that holds one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath

from serried.errors import InputError, listed
from serried.launch import recognise
from serried.launch.facts import named_files, source
from serried.launch.facts.config import LaunchConfig
from serried.launch.formats import hostfile
from serried.limits import FOLDER_BYTES, FOLDER_FILES, FOLDER_NAMES, LAUNCH_BYTES

FILE_NAME = re.compile(r"[\w.+-]+")
# 'from .base_7B import *' and 'import configs.base' name configs that stand beside.
IMPORTED = re.compile(r"(?m)^[ \t]*(?:from|import)\s+([\w.]+)")


def read(text: str, *, name: str, beside: Mapping[str, str] | None = None) -> LaunchConfig:
    """Returns what a launch file says; raises InputError when it is none, or cannot be read.

    ``name`` is how the file is called in places and errors. ``beside`` maps names to the text
    of other files that it may mean: a hostfile, a sourced script, a config it names.

    >>> text = "torchrun --nnodes 2 --nproc_per_node 8 x.py --tensor-model-parallel-size 4"
    >>> config = read(text, name="run.sh")
    >>> config.framework, config.sizes().world_size, config.sizes().tp
    ('megatron', 16, 4)
    >>> str(config.fields["tp"].where)
    'run.sh line 1, --tensor-model-parallel-size'
    """
    source.check_size(len(text), name)
    source.check_lines(text, name)
    texts = {**(beside or {}), name: text}
    given = _plain(texts)
    config = LaunchConfig.of(recognise.reading_of(given.pop(name), name, given))
    return replace(config, encodings=_encodings(config, texts))


def read_path(path: Path, *, beside: Mapping[str, str] | None = None) -> LaunchConfig:
    """Returns what the launch file at ``path`` says, files of its folder standing beside it.

    So do those that it names by a path, in the repository that it is of. ``recipes.py:NAME``
    means one of the configs that a Python module makes. A folder is read when it holds one launch
    file; raises InputError naming them when it holds several that do not mean one another.
    """
    module, is_chosen, config = path.name.partition(".py:")
    if is_chosen and not path.exists():
        # 'config_registry.py:llama3_8b' is one of the configs that a Python module makes.
        text = source.text_at(path.with_name(f"{module}.py"))
        return read(text, name=f"{module}.py:{config}")
    if path.is_dir():
        return read_among({**_texts(path), **(beside or {})}, called=path.name or path)
    text = source.text_at(path)
    around = {**named_files.texts(path, text), **_beside(path, text)}
    return read(text, name=path.name, beside={**around, **(beside or {})})


def read_among(texts: Mapping[str, str], *, called: object) -> LaunchConfig:
    """Returns what the one launch file among ``texts`` says, the others standing beside it.

    A hostfile counts as one only where nothing else is. Raises InputError naming them when
    several do not mean one another; ``called`` is what holds them.
    """
    plain = _plain(texts)
    known = [name for name, text in plain.items() if recognise.is_known(text, name, plain)]
    # Each text is looked through once: a search for each name would be quadratic in the files.
    words = {name: _words(texts[name]) for name in known}
    told = Counter(word for own in words.values() for word in own)
    chosen = [name for name in known if told[_short(name)] == (_short(name) in words[name])]
    jobs = [name for name in chosen if not hostfile.is_one(texts[name])] or chosen
    if not jobs:
        raise InputError(
            "{folder} holds no launch file that serried knows; it reads {formats}",
            folder=called,
            formats=recognise.FORMATS,
        )
    if len(jobs) > 1:
        raise InputError(
            "{folder} holds {count} launch files: {names}; give one of them",
            folder=called,
            count=len(jobs),
            names=listed(jobs),
        )
    return read(texts[jobs[0]], name=jobs[0], beside=texts)


def _beside(path: Path, text: str) -> dict[str, str]:
    """Returns the texts of the folder of ``path``, a hostfile only where one of them names it.

    A hostfile that merely lies there may be that of another job.
    """
    texts = _texts(path.parent)
    named = frozenset().union(
        _words(text), *(_words(each) for each in texts.values() if not hostfile.is_one(each))
    )
    return {
        name: each
        for name, each in texts.items()
        if not hostfile.is_one(each) or _names_hosts(text, name, named)
    }


def _names_hosts(text: str, name: str, named: frozenset[str]) -> bool:
    """Tells whether a hostfile is meant: by a script, that is, for a config names none."""
    return _short(name) in named and not text.lstrip().startswith("{")


def _short(name: str) -> str:
    """Returns a file's name as it is found among words: without its folder, after any blank."""
    return PurePosixPath(name).name.rpartition(" ")[2]


def _words(text: str) -> frozenset[str]:
    """Returns the words of a text that may name a file, and as such the modules it imports."""
    files = (word.rstrip(".") for word in FILE_NAME.findall(text))
    modules = (part for path in IMPORTED.findall(text) for part in path.split("."))
    return frozenset((*files, *(f"{module}.py" for module in modules)))


def _texts(folder: Path) -> dict[str, str]:
    """Returns the texts of a folder that are small enough to be launch files."""
    texts: dict[str, str] = {}
    for path in _files(folder):
        try:
            texts[path.name] = source.text_at(path)
        except InputError:
            # A file that is no text, or may not be read, is no launch file either.
            continue
    return texts


def _files(folder: Path) -> Iterator[Path]:
    """Yields the files of a folder, by name, as far as they are looked at."""
    left_bytes = FOLDER_BYTES.most
    for path in sorted(islice(folder.iterdir(), FOLDER_NAMES.most))[: FOLDER_FILES.most]:
        try:
            size = path.stat().st_size if path.is_file() else None
        except OSError:
            continue
        # A file that is too large for what is left is passed over; smaller ones after it may fit.
        if size is not None and size <= min(LAUNCH_BYTES.most, left_bytes):
            left_bytes -= size
            yield path


def _plain(texts: Mapping[str, str]) -> dict[str, str]:
    """Returns texts without their encodings: parsers written in C take no other kind of text."""
    return {name: str(text) for name, text in texts.items()}


def _encodings(config: LaunchConfig, texts: Mapping[str, str]) -> dict[str, str]:
    """Returns the encoding of each file that a value comes from and that is not in UTF-8."""
    values = (*config.fields.values(), *config.options.values())
    files = {config.file, *(file for each in values for file in each.files)}
    told = {name: source.encoding_of(text) for name, text in texts.items() if name in files}
    return {name: encoding for name, encoding in told.items() if encoding != source.USUAL}
