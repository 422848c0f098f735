"""``serried report``: what the workbench shows of a job, in one file to mail or to attach."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import click

from serried.errors import InputError
from serried.units import bytes_text
from serried.views.cli.language import current_language
from serried.views.cli.output import PATH
from serried.whole_file import whole_file

if TYPE_CHECKING:
    from serried.views.web.opening.desk import OpeningDesk


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

    Under a name that ends in .md it writes verdicts and tables, for a pull request or a chat, and
    the schedule's picture beside it as .svg.

    WHAT is anything that serried serve opens: a launch file, recordings, a store, logs and dumps.
    The file asks no server for anything; it holds the map, groups, schedule, plan, timeline and
    findings of what it was made of, and says so where it is asked for more.

    \b
    serried report train.sh -o job.html
    serried report runs/demo -o run.html
    serried report logs/ -o hang.html
    serried report runs/demo -o run.md
    serried report -o plan.html --link 'http://localhost:8765/?view=plan&tp=8&world_size=64'
    """
    from serried.views.report.keeping import left_out, opened_state
    from serried.views.sentences import say
    from serried.views.web.opening.desk import OpeningDesk
    from serried.views.web.opening.folder import recognised_as

    ending = output.suffix.lower()
    if ending not in (".html", ".md"):
        raise InputError(
            "a report is an .html or an .md file; {name} does not end so", name=output.name
        )
    desk = OpeningDesk()
    try:
        for place in places:
            desk.open(place, found=recognised_as(place, None))
        title = f"serried: {', '.join(place.name for place in places) or output.stem}"
        asked = _state(link)
        files = (_page if ending == ".html" else _text)(desk, asked, output, title)
        notes = left_out(desk, asked, {**opened_state(desk, asked), **asked})
    finally:
        desk.close()
    for path, text in files.items():
        with whole_file(path) as file:
            file.write(text.encode())
        click.echo(f"{path}: {bytes_text(len(text.encode()))}")
    for note in notes:
        click.echo(say(note, current_language()), err=True)


def _page(desk: OpeningDesk, asked: dict[str, str], output: Path, title: str) -> dict[Path, str]:
    from serried.views.report.document import report_document
    from serried.views.report.keeping import content_of

    lang = current_language()
    return {output: report_document(content_of(desk, asked, lang), title, lang)}


def _text(desk: OpeningDesk, asked: dict[str, str], output: Path, title: str) -> dict[Path, str]:
    from serried.views.report.keeping import opened_state
    from serried.views.report.markdown import report_markdown

    picture = output.with_suffix(".svg")
    state = {**opened_state(desk, asked), **asked}
    text, drawn = report_markdown(
        desk, state, title=title, picture=picture.name, lang=current_language()
    )
    return {output: text} | ({picture: drawn} if drawn else {})


def _state(link: str) -> dict[str, str]:
    """Returns the words of a link; a field that stands several times has one value a line.

    Words alone, as they stand behind the question mark, are a link too. Raises InputError for what
    is none, of which nothing would be shown.

    >>> _state("?tp=8&pp=2") == _state("tp=8&pp=2") == {"tp": "8", "pp": "2"}
    True
    """
    address = urlsplit(link)
    is_bare = not address.scheme and not address.query
    words = parse_qs(address.path if is_bare else address.query)
    if link and not words and address.scheme not in ("http", "https"):
        raise InputError(
            "--link {link} is no link of the workbench; one is {example}",
            link=link,
            example="'?view=plan&world_size=64&tp=8'",
        )
    return {name: "\n".join(values) for name, values in words.items() if name != "token"}
