"""``--help-settings``: every setting that a framework takes, in the language of the answer."""

from __future__ import annotations

from pathlib import Path

from serried import frameworks
from serried.launch.request import DEFAULT_FRAMEWORK
from serried.views.cli.help import SpokenFormatter
from serried.views.cli.output import width, write
from serried.views.job.settings_text import setting_lines
from serried.views.sentences import tell


def tell_settings(name: str | None, lang: str, output: Path | None) -> None:
    """Prints the settings of a framework; raises InputError for one that is not known."""
    framework = frameworks.find(name or DEFAULT_FRAMEWORK)
    formatter = SpokenFormatter(width=min(width(), 100), max_width=100, lang=lang)
    title = tell(
        "Settings of {name} {version}, for --set KEY=VALUE",
        lang,
        name=framework.name,
        version=framework.version,
    )
    with formatter.section(title):
        formatter.write_dl(setting_lines(framework, lang))
    write(formatter.getvalue(), output)
