"""Follows a shell script without running it, and tells what it would start."""

from __future__ import annotations

from collections.abc import Mapping

from serried.launch.facts.keys import too_deep
from serried.launch.shell.commands import perform
from serried.launch.shell.story import Story
from serried.launch.shell.walk import ScriptWalk


def follow(text: str, name: str, beside: Mapping[str, str]) -> Story:
    """Returns what the script ``text`` would do; raises InputError where it cannot be read.

    ``beside`` holds other files by name, such as those the script sources.

    >>> story = follow("TP=2; [ $TP -gt 1 ] && A=--sp; torchrun x.py --tp $TP $A", "x.sh", {})
    >>> [each.text for each in story.runs[0].fields]
    ['torchrun', 'x.py', '--tp', '2', '--sp']
    """
    walk = ScriptWalk(beside, perform)
    try:
        walk.file(text, name)
    except RecursionError as error:
        raise too_deep(name) from error
    walk.story.variables = walk.scope.variables
    return walk.story
