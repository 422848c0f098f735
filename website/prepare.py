"""Lays out what the site's generator reads: a folder and a configuration for each language.

    python -m website.prepare build/docs

The generator sees plain Markdown and one YAML file, so that another one could take its place.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import yaml

from website import commands, reference, schemas
from website.reading import bare, language_of, navigation, site_markdown

ROOT = Path(__file__).parent.parent
WEBSITE = Path(__file__).parent
LANGUAGES = ("en", "zh")
TITLES = {
    "en": ("Start", "Commands", "Python reference", "JSON schemas"),
    "zh": ("首页", "命令", "Python 参考", "JSON schema"),
}


def main() -> None:
    """Prepares both languages in the folder that is given."""
    folder = Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    for lang in LANGUAGES:
        prepare(folder / lang, lang)


def prepare(folder: Path, lang: str) -> None:
    """Writes the pages of one language, its pictures, and its configuration into a folder."""
    pages = written(lang) | generated(lang)
    for path, text in pages.items():
        place = folder / "docs" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    for picture in pictures():
        place = folder / "docs" / picture.relative_to(ROOT / "docs")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(picture, place)
    (folder / "docs" / "schemas").mkdir()
    for schema in schemas.files():
        shutil.copyfile(schema, folder / "docs" / "schemas" / schema.name)
    shutil.copytree(WEBSITE / "theme", folder / "theme")
    told = yaml.safe_dump(configuration(lang), allow_unicode=True, sort_keys=False)
    (folder / "mkdocs.yml").write_text(told, encoding="utf-8")


def written(lang: str) -> dict[str, str]:
    """Returns the pages of docs/ in one language, by their paths in the site."""
    own = [path for path in sorted((ROOT / "docs").rglob("*.md")) if language_of(path.name) == lang]
    names = {bare(str(path.relative_to(ROOT / "docs"))): path for path in own}
    known = {
        *names,
        *generated(lang),
        *(str(each.relative_to(ROOT / "docs")) for each in pictures()),
    }
    return {
        name: site_markdown(path.read_text(encoding="utf-8"), name, known)
        for name, path in names.items()
    }


def generated(lang: str) -> dict[str, str]:
    """Returns the pages that are made of the package itself: commands, docstrings, schemas."""
    return commands.pages(lang) | reference.pages(lang) | schemas.pages(lang)


def pictures() -> list[Path]:
    """Returns the pictures of the pages."""
    return sorted(path for path in (ROOT / "docs" / "images").iterdir() if path.is_file())


def configuration(lang: str) -> dict[str, object]:
    """Returns the generator's configuration: the common one, with this language's words."""
    told: dict[str, object] = yaml.safe_load((WEBSITE / "site.yml").read_text(encoding="utf-8"))
    words = yaml.safe_load((WEBSITE / f"site.{lang}.yml").read_text(encoding="utf-8"))
    theme = {**told["theme"], **words.pop("theme")}  # type: ignore[dict-item]

    return {**told, **words, "theme": theme, "site_dir": "built", "nav": nav(lang)}


def nav(lang: str) -> list[object]:
    """Returns the navigation: the index's table, which names each page once, then what is made."""
    index = (ROOT / "docs" / ("index.zh.md" if lang == "zh" else "index.md")).read_text("utf-8")
    start, made, python, documents = TITLES[lang]
    return [
        {start: "index.md"},
        *navigation(index),
        {made: list(commands.pages(lang))},
        {python: list(reference.pages(lang))},
        {documents: list(schemas.pages(lang))},
    ]


if __name__ == "__main__":
    main()
