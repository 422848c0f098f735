"""One call of a tool: the command in a process of its own, bounded in time and in what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import click

from serried.errors import InputError
from serried.limits import ASSISTANT_ANSWER, ASSISTANT_SECONDS
from serried.views.assistants.tools import tool_named
from serried.views.sentences import say

SERRIED = (sys.executable, "-m", "serried")
FOUND = 1
"""The exit code of an answer that found something wrong; it is an answer all the same."""


@dataclass(frozen=True)
class CallAnswer:
    """Holds what a call answered: a document, or one sentence that says why there is none."""

    text: str
    document: dict[str, Any] | None = None

    @property
    def is_error(self) -> bool:
        """Says whether the call was refused or failed."""
        return self.document is None


async def call(
    root: click.Group, name: str, given: Mapping[str, Any], seconds: float | None = None
) -> CallAnswer:
    """Returns what the tool ``name`` of ``root`` answers to ``given``; refusals are answers.

    A call that takes more than ``seconds`` (the limit where None) is ended, as is one that the
    assistant gives up.
    """
    lang = "zh" if given.get("lang") == "zh" else "en"
    try:
        words = tool_named(name, root).words(given)
        return await _called(name, words, ASSISTANT_SECONDS.most if seconds is None else seconds)
    except InputError as error:
        return CallAnswer(say(error, lang))


async def _called(name: str, words: Sequence[str], most: float) -> CallAnswer:
    """Returns what the command of ``words`` answers; raises InputError where it gives no answer."""
    with anyio.move_on_after(most):
        done = await anyio.run_process([*SERRIED, *words], stdin=subprocess.DEVNULL, check=False)
        return _answer(name, done.returncode, done.stdout, done.stderr)
    raise InputError(
        "{tool} took more than {most} s and was ended; ask for less at once",
        tool=name,
        most=f"{most:g}",
    )


def _answer(name: str, code: int, out: bytes, told: bytes) -> CallAnswer:
    """Returns the document, or the last sentence that the command told where it gave none."""
    if code > FOUND:
        sentence = told.decode(errors="replace").strip().rpartition("\n")[2]
        return CallAnswer(sentence.removeprefix("serried: ") or f"{name} ended with {code}")
    if len(out) > ASSISTANT_ANSWER.most:
        raise InputError(
            "the answer has {bytes} bytes, an assistant is given at most {most}; ask for less, "
            "such as one rank or one kind of group",
            bytes=f"{len(out):,}",
            most=f"{ASSISTANT_ANSWER.most:,}",
        )
    document = json.loads(out)
    return CallAnswer(out.decode(), document if isinstance(document, dict) else {"rows": document})
