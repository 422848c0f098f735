"""``--help-settings``: every setting that a framework takes, in the language of the answer."""

from __future__ import annotations

from serried import frameworks
from serried.launch.request import DEFAULT_FRAMEWORK
from serried.views.cli.help import SpokenFormatter
from serried.views.cli.output import OutputChoice, width
from serried.views.job.settings_text import setting_lines
from serried.views.sentences import tell


def tell_settings(name: str | None, output: OutputChoice) -> None:
    """Prints the settings of a framework; raises InputError for one that is not known."""
    framework = frameworks.find(name or DEFAULT_FRAMEWORK)
    formatter = SpokenFormatter(width=min(width(), 100), max_width=100, lang=output.lang)
    title = tell(
        "Settings of {name} {version}, for --set KEY=VALUE",
        output.lang,
        name=framework.name,
        version=framework.version,
    )
    with formatter.section(title):
        formatter.write_dl(setting_lines(framework, output.lang))
    output.write(formatter.getvalue())
