"""``serried report``: what the workbench shows of a job, in one file to mail or to attach."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import click

from serried.errors import InputError
from serried.finding import said
from serried.units import bytes_text
from serried.views.cli.language import current_language
from serried.views.cli.output import PATH
from serried.views.sentences import say
from serried.whole_file import whole_file


@click.command()
@click.argument("places", nargs=-1, type=click.Path(path_type=Path), metavar="[WHAT]...")
@click.option("-o", "--output", required=True, type=PATH, help="The file that takes it.")
@click.option(
    "--link",
    default="",
    metavar="ADDRESS",
    help="Open with the state of this link of the workbench: its tab, job and selection.",
)
def report(places: tuple[Path, ...], output: Path, link: str) -> None:
    """Writes what the workbench shows of a job into one HTML file that opens from disk.

    WHAT is anything that serried serve opens: a launch file, recordings, a store, logs and dumps.
    The file asks no server for anything; it holds the map, groups, schedule, plan, timeline and
    findings of what it was made of, and says so where it is asked for more.

    \b
    serried report train.sh -o job.html
    serried report runs/demo -o run.html
    serried report logs/ -o hang.html
    serried report -o plan.html --link 'http://localhost:8765/?view=plan&tp=8&world_size=64'
    """
    from serried.views.report.document import report_document
    from serried.views.report.keeping import content_of
    from serried.views.web.opening.desk import OpeningDesk
    from serried.views.web.opening.folder import recognised_as

    if output.suffix != ".html":
        raise InputError("a report is an .html file; {name} does not end so", name=output.name)
    lang = current_language()
    desk = OpeningDesk()
    try:
        for place in places:
            desk.open(place, found=recognised_as(place, None))
        content = content_of(desk, _state(link), lang)
    finally:
        desk.close()
    title = f"serried: {', '.join(place.name for place in places) or output.stem}"
    text = report_document(content, title, lang).encode()
    with whole_file(output) as file:
        file.write(text)
    told = said("{file}: {size}; open it in a browser", file=output, size=bytes_text(len(text)))
    click.echo(say(told, lang))


def _state(link: str) -> dict[str, str]:
    """Returns the words of a link; a field that stands several times has one value a line."""
    words = parse_qs(urlsplit(link).query)
    return {name: "\n".join(values) for name, values in words.items() if name != "token"}
