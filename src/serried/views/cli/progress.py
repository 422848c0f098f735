"""Progress of long work, as the commands tell it: a line on stderr as each piece begins."""

from __future__ import annotations

import click

from serried.finding import Sentence
from serried.trace.model.progress import Listener
from serried.views.sentences import say


def told(lang: str) -> Listener:
    """Returns what prints each sentence on stderr, in ``lang``."""

    def print_it(sentence: Sentence) -> None:
        click.echo(f"{say(sentence, lang)} …", err=True)

    return print_it
