"""Fetches a package from PyPI and unpacks it, without installing it or its dependencies."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path


def cache() -> Path:
    """Returns where unpacked packages are kept; SERRIED_ORACLE_CACHE overrides it."""
    default = Path.home() / ".cache" / "serried" / "oracle"
    return Path(os.environ.get("SERRIED_ORACLE_CACHE", default))


def unpacked(package: str, version: str, *, only: str = "") -> Path:
    """Returns the folder of ``package``, fetched once; ``only`` unpacks names that start so."""
    folder = cache() / f"{package}-{version}"
    if not folder.exists():
        archive = _downloaded(package, version)
        part = folder.with_suffix(".part")
        part.mkdir(parents=True, exist_ok=True)
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(part, [n for n in wheel.namelist() if n.startswith(only)])
        else:
            with tarfile.open(archive) as sdist:
                sdist.extractall(part, filter="data")
        part.rename(folder)
    inner = folder / f"{package}-{version}"
    return inner if inner.exists() else folder


def _downloaded(package: str, version: str) -> Path:
    store = cache() / "downloads"
    store.mkdir(parents=True, exist_ok=True)
    before = set(store.iterdir())
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "-d", str(store), f"{package}=={version}"], check=True)
    found = set(store.iterdir()) - before or {
        path for path in store.iterdir() if version in path.name and _is_of(path, package)
    }
    return found.pop()


def _is_of(path: Path, package: str) -> bool:
    name = path.name.lower().replace("-", "_")
    return name.startswith(package.lower().replace("-", "_"))
