"""Files of a shell script: those it writes by heredoc or echo, and those given beside it."""

from __future__ import annotations

from serried.launch.facts.named_files import meant
from serried.launch.facts.words import Field, Piece, Value, text_of
from serried.launch.shell.split import joined
from serried.launch.shell.syntax import Simple
from serried.launch.shell.walk import ScriptWalk

PRINTS = ("-e", "-n", "-en", "%s", "%s\\n")
"""Words after ``echo`` and ``printf`` that are not what they print."""


def note_written(walk: ScriptWalk, simple: Simple, name: str | None) -> None:
    """Keeps what a command writes to a file, and what its heredocs hand to it."""
    walk.inputs = [
        walk.expansion.value(each.heredoc.body if each.heredoc else each.target)
        for each in simple.redirects
        if each.heredoc or each.operator == "<<<"
    ]
    # Scripts write others by 'cat <<EOF > a.sh', 'tee a.sh <<EOF' or 'echo … >> a.sh'.
    words = walk.expansion.fields(simple.words)
    if name == "tee" and walk.inputs:
        names = [ending(each) for each in words[1:] if not each.start.startswith("-")]
    else:
        outputs = [each.target for each in simple.redirects if each.operator in (">", ">|", ">>")]
        names = [ending(Field(walk.expansion.value(target))) for target in outputs]
    if not names or not names[0]:
        return
    if walk.inputs and name in ("cat", "tee"):
        walk.story.files[names[0]] = walk.inputs[0]
    elif name in ("echo", "printf") and len(words) > 1:
        printed = [each for each in words[1:] if each.text not in PRINTS]
        value: Value = (*joined(printed), Piece("\n", simple.line))
        is_more = any(each.operator == ">>" for each in simple.redirects)
        before = walk.story.files.get(names[0], ()) if is_more else ()
        walk.scope.steps.spend(len(before) // 4)
        walk.story.files[names[0]] = (*before, *value)


def given(walk: ScriptWalk, path: str, *, is_whole: bool = True) -> str | None:
    """Returns the file that a path means among those given beside the script.

    ``is_whole`` tells whether the path is known from its beginning.
    """
    if not path:
        return None
    walk.scope.steps.spend(len(walk.beside))
    name = meant(path, walk.beside)
    # 'source ../common/env.sh' inside env.sh means another file of that name, which is not given.
    if name in walk.open_files and not (is_whole and path in (name, f"./{name}")):
        return None
    return None if name is None else walk.beside[name]


def ending(each: Field) -> str:
    """Returns the known end of a path, such as ``CONFIG.sh`` of ``$(pwd)/CONFIG.sh``.

    Where a name itself is known in part only, dots stand before that part.
    """
    text = text_of(each.pieces)
    if text is not None:
        return text
    known = ""
    for piece in reversed(each.pieces):
        if not isinstance(piece, Piece):
            break
        known = piece.text + known
    return known.rsplit("/", 1)[-1] if "/" in known else known and f"…{known}"
