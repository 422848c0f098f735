"""Plain commands of a shell script: what the shell itself does, and what it would start."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from serried.finding import Sentence, said
from serried.launch.facts.whole_number import count
from serried.launch.facts.words import (
    Field,
    Line,
    Piece,
    Unknown,
    Value,
    known,
    named,
    text_of,
    unknown,
)
from serried.launch.shell.assign import assign, calculate
from serried.launch.shell.conditions import RAN, Verdict, decide
from serried.launch.shell.files import ending, given, note_written
from serried.launch.shell.nested import SCRIPT, handed, start
from serried.launch.shell.split import joined
from serried.launch.shell.syntax import Simple, Substitution
from serried.launch.shell.walk import Flow, ScriptWalk

# 'trainer.nnodes=2', which no command is called.
SETTING = re.compile(r"\+{0,2}[A-Za-z_]\w*(?:\.\w+)+=")
# The command of '$(sbatch --parsable train.slurm)', or of '$($SUBMIT)', which may hold it.
SUBMITS = re.compile(r"\s*(?:sbatch\s|\$\{?(\w+)\}?\s*$)")
DECLARES = frozenset(["export", "declare", "local", "readonly", "typeset"])
# Files of the machine that prepare for the programs installed there, and hold no sizes.
SETS_UP = re.compile(
    r"conda|profile|setvars|set_env|bashrc|zshrc|(?:^|/)activate$|^/(?:etc|usr|opt)/|"
    r"(?:^|/)modules\.sh$"
)
Outcome = tuple[Flow, Verdict]


def perform(walk: ScriptWalk, simple: Simple) -> Outcome:
    """Follows one plain command."""
    fields = walk.expansion.fields(simple.words)
    name = fields[0].text if fields else ""
    note_written(walk, simple, name)
    _submit_inside(walk, simple)
    # 'TP=2' and 'export TP=2' set it from here on, 'TP=2 cmd' for that command alone.
    if not fields or name in DECLARES:
        for each in simple.assigns:
            assign(walk.scope, each)
        return "", Verdict(True)
    prefix = {
        each.name: named(walk.expansion.value(each.value), each.name)
        for each in simple.assigns
        if each.elements is None
    }
    if name == "read" and walk.inputs and _read_text(walk, fields, prefix.get("IFS")):
        return "", Verdict(True)
    return _follow(walk, fields, simple.line, prefix)


def _submit_inside(walk: ScriptWalk, simple: Simple) -> None:
    """Follows a job that is submitted where its number is kept: ``ID=$(sbatch train.slurm)``."""
    for word in (*simple.words, *(each.value for each in simple.assigns)):
        for part in word:
            if not isinstance(part, Substitution) or not (found := SUBMITS.match(part.command)):
                continue
            held = walk.scope.variables.get(found[1]) if found[1] else None
            begins = Field(held).start if isinstance(held, tuple) else ""
            if not found[1] or begins.startswith("sbatch "):
                walk.made((Piece(part.command, part.line),), part.line)


def _follow(
    walk: ScriptWalk, fields: list[Field], line: Line, prefix: Mapping[str, Value]
) -> Outcome:
    name = fields[0].text or ""
    # In the shell's own order: a function goes before a builtin, and that before a program.
    if name in walk.scope.functions:
        return _call(walk, name, fields[1:], line), RAN
    if name in BUILTINS:
        return BUILTINS[name](walk, fields, line)
    if what := handed(fields):
        start(walk, fields, what, line, prefix)
        return "", RAN
    if name.startswith("--") or SETTING.match(name):
        walk.story.note(line, _stray(name))
    walk.started(fields, line, **prefix)
    return "", RAN


def _stray(word: str) -> Sentence:
    """Says of an option that its author meant it for the command above."""
    return said(
        "'{word}' begins a command of its own; a comment or a blank after '\\' ends the one above",
        word=word,
    )


# ----------------------------------------------------------------------- builtins


def _test(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    words = fields[1:-1] if fields[0].text == "[" else fields[1:]
    return "", decide(words, is_double=False)


def _stop(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    status = fields[1].text if len(fields) > 1 else None
    walk.stopped, walk.has_failed = line, status not in (None, "0")
    return fields[0].text or "exit", RAN


def _yes(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    return "", Verdict(True)


def _no(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    return "", Verdict(False)


def _ended(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    """Follows ``getopts``: the script's arguments are not known, so there are none to read."""
    return "", Verdict(False, is_assumed=True)


def _shift(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    number = count(fields[1].text) if len(fields) > 1 else 1
    if walk.scope.arguments is not None and number is not None:
        walk.scope.arguments = walk.scope.arguments[number:]
    return "", RAN


def _set(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    texts = [each.text for each in fields]
    if "--" in texts:
        walk.scope.arguments = [each.pieces for each in fields[texts.index("--") + 1 :]]
    return "", Verdict(True)


def _unset(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    for each in fields[1:]:
        walk.scope.unset(each.text or "")
    return "", Verdict(True)


def _read(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    """Follows ``read`` and ``mapfile``: the names they set come from outside the file."""
    command = fields[0].text or ""
    if command == "read" and walk.inputs and any(each.start == "-d" for each in fields):
        # "read -r -d '' ARGS <<EOF" takes in all that stands up to EOF.
        walk.scope.variables[fields[-1].text or ""] = walk.inputs[-1]
        return "", RAN
    for each in fields[1:]:
        if each.text and re.fullmatch(r"[A-Za-z_]\w*", each.text):
            why = said("'{command}' on line {line} sets it", command=command, line=line)
            value = unknown(why, line)
            walk.scope.variables[each.text] = [value] if command != "read" else value
    return "", RAN


def _read_text(walk: ScriptWalk, fields: list[Field], marks: Value | None) -> bool:
    """Follows ``IFS=, read -r TP PP <<< "4,2"``; tells whether what it reads is known."""
    text = text_of(walk.inputs[-1])
    mark = None if marks is None else text_of(marks)
    options = [each.start for each in fields[1:] if each.start.startswith("-")]
    names = [each.text or "" for each in fields[1:] if not each.start.startswith("-")]
    is_plain = all(option in ("-r", "-a", "-ra", "-ar") for option in options)
    if text is None or not is_plain or not names or (marks is not None and mark is None):
        return False
    line = fields[0].line
    row = text.split("\n")[0]
    mark = None if mark is None or not mark.strip() else mark
    if any("a" in option for option in options):
        walk.scope.variables[names[0]] = [known(each, line, "read") for each in row.split(mark)]
        return len(names) == 1
    # The last name takes all that is left.
    parts = row.split(mark, len(names) - 1)
    for name, part in zip(names, [*parts, *[""] * (len(names) - len(parts))], strict=True):
        walk.scope.variables[name] = known(part.strip() if mark is None else part, line, "read")
    return True


def _let(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    verdict = RAN
    for each in fields[1:]:
        if each.text is not None:
            verdict = calculate(walk.scope, each.text, line)
    return "", verdict


def _eval(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    return walk.made(joined(fields[1:]), line), RAN


def _exec(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    # 'exec > log' only redirects; 'exec cmd' never comes back.
    if len(fields) == 1:
        return "", RAN
    _follow(walk, fields[1:], line, {})
    return "exit", RAN


def _source(walk: ScriptWalk, fields: list[Field], line: Line) -> Outcome:
    if len(fields) < 2:
        return "", RAN
    name = ending(fields[1])
    text = given(walk, name, is_whole=fields[1].text is not None)
    if text is None:
        # Files that set up an environment rarely hold sizes; a script of the user's own may.
        if not SETS_UP.search(name):
            why = said("it reads {name}, which is not given beside it", name=name or "?")
            walk.story.note(line, why)
            if SCRIPT.search(name):
                walk.story.not_given.append(name)
                walk.story.not_read.append(name)
        return "", RAN
    # 'source env.sh 4' has arguments of its own; without any it sees those of the script.
    outer = walk.scope.arguments
    if len(fields) > 2:
        walk.scope.arguments = [
            each.pieces if not each.maybe else _open(each) for each in fields[2:]
        ]
    with walk.deeper(line), walk.following(name):
        flow = walk.file(text, PurePosixPath(name).name)
    if len(fields) > 2:
        walk.scope.arguments = outer
    return ("exit" if flow == "exit" else ""), RAN


BUILTINS: dict[str, Callable[[ScriptWalk, list[Field], Line], Outcome]] = {
    "[": _test,
    "test": _test,
    "exit": _stop,
    "return": _stop,
    "break": _stop,
    "continue": _stop,
    "true": _yes,
    ":": _yes,
    "false": _no,
    "getopts": _ended,
    "shift": _shift,
    "set": _set,
    "unset": _unset,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "let": _let,
    "eval": _eval,
    "exec": _exec,
    "source": _source,
    ".": _source,
}


# ----------------------------------------------------------------------- calls


def _call(walk: ScriptWalk, name: str, words: Sequence[Field], line: Line) -> Flow:
    """Follows a function of the script with its arguments; a call to itself is not."""
    if name in walk.calling:
        # What it would do again depends on conditions that are open.
        return ""
    outer, walk.calling = walk.scope.arguments, (*walk.calling, name)
    walk.scope.arguments = [each.pieces if not each.maybe else _open(each) for each in words]
    with walk.deeper(line):
        flow, _ = walk.command(walk.scope.functions[name])
    walk.scope.arguments, walk.calling = outer, walk.calling[:-1]
    return "exit" if flow == "exit" else ""


def _open(each: Field) -> Value:
    return (Unknown(each.maybe[0].because, each.line),)
