"""Files that a launch file names by a path: which of those given is meant, and where they stand.

repo/                         examples/run.sh names configs/zero3.json, from the root of the
  .git                        repository that it is started in, and ../common/env.sh, from its
  configs/zero3.json          own folder; both are found, and nothing outside the repository
  examples/run.sh
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from serried.errors import InputError
from serried.launch.facts import source
from serried.limits import FOLDER_BYTES, NAMED_DEPTH, NAMED_FILES

ENDINGS = r"(?:sh|bash|slurm|sbatch|env|conf|json|ya?ml|toml|py)"
# 'configs/zero3.json', '$ROOT/configs/zero3.json', '../common/env.sh'.
PATH = re.compile(rf"(?:[\w.+${{}}()-]{{1,80}}/){{1,12}}[\w.+-]{{1,120}}\.{ENDINGS}\b")
# 'bash train.sh' and '--deepspeed zero3.json', without a folder: from the root as well.
BARE = re.compile(
    rf"(?:\b(?:bash|sh|source|sbatch)|(?:^|[\s;&(])\.|--[\w.-]{{0,40}}config[\w-]{{0,20}}|--deepspeed)"
    rf"[= \t]+['\"]?([\w+-][\w.+-]{{0,120}}\.{ENDINGS})\b"
)
# '  - train: 7b', an entry of Hydra's list of defaults.
GROUP = re.compile(
    r"(?m)^[ \t]*-[ \t]+(?:override[ \t]+)?/?([\w/]{1,80})(?:@[\w.]+)?:[ \t]*([\w.-]+)$"
)
# '--module llama3', which torchtitan looks for among its models and experiments, and
# '--module ${MODULE}', where 'MODULE=${MODULE:-"llama3"}' stands above.
MODULE = re.compile(r"--module[= ]+['\"]?(?:([\w.]{1,80})|\$\{?(\w{1,80}))")
DEFAULT = re.compile(r"\b(\w{1,80})=['\"]?(?:\$\{\w{1,80}:-)?['\"]?([\w.]{1,80})")
# '--config-path conf --config-name=train'.
HYDRA = re.compile(r"--config-(path|name)[= ]+['\"]?([\w./$-]{1,120})")


def meant(path: str, names: Iterable[str]) -> str | None:
    """Returns which of ``names`` a path means: that with most of its end, the first of several.

    The folders of a path are those of the machine that runs the job, so the name alone decides
    where nothing else does.

    >>> meant("/job/b/ds.json", ["a/ds.json", "b/ds.json", "x.json"])
    'b/ds.json'
    >>> meant("ds.json", ["x.json"]) is None
    True
    """
    wanted = _parts(path)
    best, most = None, 0
    for name in names:
        same = 0
        for mine, other in zip(wanted[::-1], _parts(name)[::-1], strict=False):
            if mine != other:
                break
            same += 1
        if same > most:
            best, most = name, same
    return best


def _parts(path: str) -> list[str]:
    return [part for part in PurePosixPath(path).parts if part not in ("..", ".", "/")]


def texts(path: Path, text: str) -> dict[str, str]:
    """Returns the files that a launch file names by a path, and those that these name.

    They are looked for from its folder and those around it, up to the root of its repository; in
    its folder alone where it stands in none. Files that cannot be read are left out.
    """
    root = next((each for each in path.resolve().parents if (each / ".git").exists()), None)
    found: dict[str, str] = {}
    left_bytes = FOLDER_BYTES.most
    asked = [(path.resolve(), text, 0)]
    seen = {path.resolve()}
    while asked and len(found) < NAMED_FILES.most:
        of, said, depth = asked.pop(0)
        for name in _named(said):
            at = _place(of.parent, name, root)
            if at is None or at in seen or len(found) >= NAMED_FILES.most:
                continue
            seen.add(at)
            try:
                other = source.text_at(at)
            except (InputError, OSError):
                continue
            left_bytes -= len(other)
            if left_bytes < 0:
                return found
            found["/".join(_parts(name))] = other
            if depth < NAMED_DEPTH.most:
                asked.append((at, other, depth + 1))
    return found


def _named(text: str) -> Iterator[str]:
    """Yields the paths that a text names, without what stands before a variable's end."""
    names: dict[str, None] = {}
    for found in PATH.findall(text):
        parts = found.split("/")
        known = next((i for i in range(len(parts), 0, -1) if "$" in parts[i - 1]), 0)
        kept = [part for part in parts[known:] if part and not set(part) & set("{}()")]
        if kept:
            names.setdefault("/".join(kept))
    for name in BARE.findall(text):
        names.setdefault(name)
    for group, name in GROUP.findall(text):
        names.setdefault(f"{group}/{name}.yaml")
    held = dict(DEFAULT.findall(text)) if "--module" in text else {}
    for module in (plain or held.get(name, "") for plain, name in MODULE.findall(text)):
        for folder in ("torchtitan/models", "torchtitan/experiments") if module else ():
            names.setdefault(f"{folder}/{module.replace('.', '/')}/config_registry.py")
    hydra = dict(HYDRA.findall(text))
    if "verl" in text and "name" in hydra:
        names.setdefault(f"verl/trainer/config/{hydra['name'].removesuffix('.yaml')}.yaml")
    if "name" in hydra and "path" in hydra:
        names.setdefault(f"{hydra['path']}/{hydra['name'].removesuffix('.yaml')}.yaml")
    yield from names


def _place(folder: Path, name: str, root: Path | None) -> Path | None:
    """Returns the file that a path means from a folder, or from one around it."""
    around = [folder]
    if root is not None:
        around += [each for each in folder.parents if each == root or root in each.parents]
    for each in around:
        try:
            at = (each / name).resolve()
            if at.is_file() and (root or folder) in at.parents:
                return at
        except OSError:
            continue
    return _at_root(name, root) if root is not None else None


def _at_root(name: str, root: Path) -> Path | None:
    """Returns the file below the root that the end of a path means, its folder included.

    A path such as ``home/me/repo/configs/zero3.json`` is that of the machine that runs the job.
    """
    parts = _parts(name)
    for begin in range(1, len(parts) - 1):
        try:
            at = root.joinpath(*parts[begin:]).resolve()
            if at.is_file() and root in at.parents:
                return at
        except OSError:
            continue
    return None
