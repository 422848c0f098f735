"""Scripts that a command hands to another shell: ``bash -c``, ``sbatch``, ``ssh`` and others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from serried.finding import said
from serried.launch.facts.words import Field, Line, Value
from serried.launch.shell import slurm
from serried.launch.shell.files import ending, given
from serried.launch.shell.split import as_choice
from serried.launch.shell.walk import ScriptWalk

SHELLS = ("bash", "sh", "zsh", "dash", "ksh")
REMOTE = ("ssh", "pdsh", "clush", "parallel-ssh", "tmux", "screen", "watch")
STARTERS = (
    *("srun", "nohup", "time", "timeout", "env", "nice", "setsid", "stdbuf", "taskset"),
    *("numactl", "ibrun", "jsrun", "aprun"),
)
"""Commands that start the program among their words as it stands."""

PROGRAMS = re.compile(r"python[\d.]*|torchrun|accelerate|deepspeed|colossalai")
# A script without such an ending is followed only behind a shell, for './run' may be a program.
SCRIPT = re.compile(r"\.(sh|slurm|sbatch|sub|bash|job)$")
# Programs of MaxText that run a command on every host: MaxText multihost_runner.py.
MULTIHOST = re.compile(r"multihost_(?:runner|job)\w*\.py")
Handed = tuple[int, str]
"""Where the script stands among the words, and what it is: text, a file, wrap or input."""


def handed(fields: Sequence[Field]) -> Handed | None:
    """Returns where a command holds a script for another shell, or None."""
    if any(MULTIHOST.fullmatch(PurePosixPath(each.text or "").name) for each in fields[:4]):
        return _to_hosts(fields, "--COMMAND")
    for i, each in enumerate(fields):
        # A shell counts behind other words ('srun -N 2 bash run.sh'), until a program that starts
        # something itself: 'python x.py bash' hands nothing over. sbatch and ssh must come first.
        name = PurePosixPath(each.text or "").name
        if name in SHELLS:
            return _to_shell(fields, i)
        if i == 0 and name == "sbatch":
            return _to_sbatch(fields)
        # 'ssh node1 "cd run && torchrun x.py"': a last word with blanks is a script for that node.
        if i == 0 and name == "xpk" and (script := _to_hosts(fields, "--command")):
            return script
        if i == 0 and name in REMOTE and len(fields) > 1 and " " in fields[-1].start:
            return len(fields) - 1, "text"
        if PROGRAMS.fullmatch(name):
            return None
        starts = i == 0 or PurePosixPath(fields[0].text or "").name in STARTERS
        if starts and not name.startswith("-") and SCRIPT.search(name):
            return i, "file"
    return None


def _to_shell(fields: Sequence[Field], at: int) -> Handed | None:
    for i in range(at + 1, len(fields)):
        # 'bash -lc "…"' hands over text; 'bash -x run.sh' and 'bash -o pipefail run.sh' a file.
        text = fields[i].text or fields[i].start
        if re.fullmatch(r"-[a-z]*c[a-z]*", text):
            return (i + 1, "text") if i + 1 < len(fields) else None
        is_option = text.startswith(("-", "+")) or fields[i - 1].text in ("-o", "+o")
        if not is_option:
            return i, "file"
    return None


def _to_hosts(fields: Sequence[Field], option: str) -> Handed | None:
    """Returns the command that XPK, or a runner of MaxText's, has each host run: --command='…'."""
    for i, each in enumerate(fields):
        if each.start.startswith(f"{option}="):
            return i, "wrap"
        if each.start == option and i + 1 < len(fields):
            return i + 1, "text"
    return None


def _to_sbatch(fields: Sequence[Field]) -> Handed:
    for i, each in enumerate(fields[1:], 1):
        if each.start.startswith("--wrap"):
            return (i, "wrap") if "=" in each.start else (i + 1, "text")
        if each.text and SCRIPT.search(each.text):
            return i, "file"
    # 'sbatch <<EOF' reads the script from its input.
    return len(fields), "input"


def start(
    walk: ScriptWalk, fields: list[Field], what: Handed, line: Line, prefix: Mapping[str, Value]
) -> None:
    """Follows the script that a command hands over, on this node or on others."""
    at, kind = what
    # What another shell sets ends with it, so the variables are put back at the end.
    before, functions, calling = dict(walk.scope.variables), walk.scope.functions, walk.calling
    walk.scope.variables |= prefix
    # It does not know this one's functions either: 'main' there is another 'main'.
    walk.scope.functions, walk.calling = dict(functions), ()
    name = PurePosixPath(fields[0].text or "").name
    if name == "srun":
        step = slurm.SlurmRequest(slurm.figures(fields[1:at])[0])
        walk.scope.variables = {**slurm.variables(step, "srun"), **walk.scope.variables}
    elif name == "sbatch":
        asked = slurm.figures(fields[1 : at if kind == "file" else len(fields)])[0]
        walk.submitted = slurm.SlurmRequest(asked, is_given=True)
    if kind == "input":
        for each in walk.inputs:
            walk.made(each, line, fields[:at])
    elif kind == "file" and at < len(fields):
        _start_file(walk, fields, at, line, prefix)
    elif at < len(fields):
        script = fields[at]
        if kind == "wrap":
            script = script.tail(script.start.index("=") + 1)
        value = script.pieces if not script.maybe else as_choice(script, fields[at + 1 :])
        # In 'bash -c "$RUN" _ a b' the word behind the text is its $0, and a and b are "$@".
        outer = walk.scope.arguments
        if name in SHELLS or kind == "text":
            walk.scope.arguments = [each.pieces for each in fields[at + 2 :]]
        walk.made(value, line, fields[:at])
        walk.scope.arguments = outer
    walk.scope.variables, walk.submitted = before, None
    walk.scope.functions, walk.calling = functions, calling


def _start_file(
    walk: ScriptWalk, fields: list[Field], at: int, line: Line, prefix: Mapping[str, Value]
) -> None:
    name = ending(fields[at])
    written = walk.story.files.get(name)
    is_whole = fields[at].text is not None
    text = given(walk, name, is_whole=is_whole) if written is None else None
    if written is None and text is None:
        walk.started(fields, line, **prefix)
        if not name:
            walk.story.not_named.append(fields[at].because)
        if SCRIPT.search(name):
            why = said("it starts {name}, which is not given beside it", name=name)
            walk.story.note(line, why)
            walk.story.not_given.append(name)
        return
    outer = walk.scope.arguments
    walk.scope.arguments = [each.pieces for each in fields[at + 1 :]]
    if written is not None:
        walk.made(written, line, fields[:at])
    elif text is not None:
        wrappers = walk.wrappers
        # 'srun -N 2 run.sh' says on how many nodes it starts; 'bash run.sh' says nothing.
        if at and PurePosixPath(fields[0].text or "").name not in SHELLS:
            walk.wrappers = (*wrappers, tuple(fields[:at]))
        with walk.deeper(line), walk.following(name):
            walk.file(text, PurePosixPath(name).name)
        walk.wrappers = wrappers
    walk.scope.arguments = outer
