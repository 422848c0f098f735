"""Builds the site without a network, and checks that it asks for nothing from outside.

    python -m website.built site

Each language is built by the generator; then both stand in one folder, Chinese below zh/.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from website.links import faults
from website.prepare import LANGUAGES, ROOT, prepare
from website.searching import OWN_SHIM, search_from_disk, search_in_chinese

PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
NO_NETWORK = dict.fromkeys(PROXIES, "http://127.0.0.1:9")
"""A generator that asked another machine for something would be refused here."""


def main() -> None:
    """Builds the site in the folder that is given; exits with 1 where it is not sound."""
    site = Path(sys.argv[1])
    if site.is_dir() and any(site.iterdir()) and not (site / "index.html").is_file():
        sys.exit(
            f"{site} holds something else than a site, which would be lost: give another folder"
        )
    if lacking := missing():
        sys.exit(f"the site cannot be built: {lacking} is missing; make docs installs it, once")
    found = [*build(site), *faults(site)]
    print("\n".join(found) or f"{site}: {len(list(site.rglob('*.html')))} pages, in two languages")
    sys.exit(1 if found else 0)


def missing() -> str | None:
    """Returns what the build needs and does not find; None otherwise."""
    if find_spec("zensical") is None:
        return "the generator zensical"
    return None if OWN_SHIM.is_file() else str(OWN_SHIM.relative_to(ROOT))


def build(site: Path) -> list[str]:
    """Writes the site of both languages into a folder, in place of what was there.

    Returns what could not be said in Chinese.
    """
    shutil.rmtree(site, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        for lang in LANGUAGES:
            prepared = Path(folder) / lang
            prepare(prepared, lang)
            generate(prepared)
            # It is loaded from any folder, and so would find nothing of its own.
            (prepared / "built" / "404.html").unlink()
            shutil.copytree(prepared / "built", site if lang == "en" else site / lang)
    search_from_disk(site)
    return search_in_chinese(site / "zh")


def generate(prepared: Path) -> None:
    """Lets the generator build what was prepared; its warnings are errors."""
    program = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(
        program,
        cwd=prepared,
        env={**os.environ, **NO_NETWORK},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{prepared.name}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
