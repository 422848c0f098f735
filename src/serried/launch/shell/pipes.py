"""What a few tools print of text that is known: ``echo 8(x4) | cut -d '(' -f 1`` is 8.

Scripts pick numbers out of lists and options with these; each works on text alone, so that nothing
is run for it. A tool, an option or a pattern that is not here leaves the text not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from serried.limits import SCRIPT_EDITED

Words = Sequence[str]
Tool = Callable[[str, Words], "str | None"]

# '-d ,', '-d,' and '-f1': a letter, and what stands behind it or in the next word.
OPTION = re.compile(r"-([A-Za-z])(.*)", re.S)
CLASSES = {"[:upper:]": "A-Z", "[:lower:]": "a-z", "\\n": "\n", "\\t": "\t"}
# '(?<=--config )[^ ]+' of grep -oP: what follows a text up to the next blank, or the digits there.
BEHIND = re.compile(r"\(\?<=([^()\[\]*+?|^$\\]{1,80})\)(\[\^ \]\+|\\S\+|\[0-9\]\+|\\d\+)")
ALONE = re.compile(r"(\[0-9\]\+|\\d\+)")
RUNS = {"[^ ]+": r"[^ \n]+", "\\S+": r"\S+", "[0-9]+": r"[0-9]+", "\\d+": r"[0-9]+"}
# '{print $1}' and '{print NF}' of awk.
COLUMN = re.compile(r"\s*\{\s*print\s+(?:\$(\d{1,3})|(NF))\s*;?\s*\}\s*")
SUBSTITUTION = re.compile(r"s(.)([\w =:,./_-]*)\1([\w =:,./_-]*)\1(g?)")


def printed(commands: Sequence[Words], given: str | None) -> str | None:
    """Returns what a pipe prints, without the line's end; None where that is not known.

    ``commands`` are the words of each command; ``given`` is what the first reads, if anything.

    >>> printed([["echo", "8(x4)"], ["cut", "-d", "(", "-f", "1"]], None)
    '8'
    >>> printed([["grep", "-oP", r"(?<=--tp )[^ ]+"]], "--pp 2 --tp 4")
    '4'
    >>> printed([["nvidia-smi", "-L"], ["wc", "-l"]], None) is None
    True
    """
    text = given
    for i, (name, *words) in enumerate(commands):
        if i == 0 and given is None:
            begin = BEGINNINGS.get(name)
            text = begin(words) if begin else None
        else:
            tool = TOOLS.get(name)
            text = tool(text, words) if tool and text is not None else None
        if text is None or len(text) > SCRIPT_EDITED.most:
            return None
    return None if text is None else text.rstrip("\n")


# ----------------------------------------------------------------------- what prints by itself


def _echo(words: Words) -> str | None:
    while words and words[0] in ("-n", "-e", "-en", "-ne"):
        words = words[1:]
    return " ".join(words)


def _printf(words: Words) -> str | None:
    is_plain = len(words) == 2 and words[0] in ("%s", "%s\\n", "%d", "%d\\n")
    return words[1] if is_plain else None


def _basename(words: Words) -> str | None:
    if not words or words[0].startswith("-") or len(words) > 2:
        return None
    name = PurePosixPath(words[0]).name
    return name.removesuffix(words[1]) if len(words) == 2 and name != words[1] else name


def _seq(words: Words) -> str | None:
    if not all(re.fullmatch(r"\d{1,4}", each) for each in words) or not 1 <= len(words) <= 2:
        return None
    first, last = (1, int(words[0])) if len(words) == 1 else map(int, words)
    return "\n".join(str(number) for number in range(first, last + 1))


BEGINNINGS: dict[str, Callable[[Words], str | None]] = {
    "echo": _echo,
    "printf": _printf,
    "basename": _basename,
    "seq": _seq,
}


# ----------------------------------------------------------------------- what reads a text


def _options(words: Words, letters: str) -> dict[str, str] | None:
    """Returns options that take a value by their letters; None where there is something else."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        option = OPTION.fullmatch(rest.pop(0))
        if option is None or option[1] not in letters:
            return None
        if not option[2] and not rest:
            return None
        found[option[1]] = option[2] or rest.pop(0)
    return found


def _cut(text: str, words: Words) -> str | None:
    told = _options(words, "df")
    if told is None or not told.get("f", "").isdecimal() or int(told["f"]) < 1:
        return None
    mark, place = told.get("d", "\t"), int(told["f"])
    if len(mark) != 1:
        return None
    rows = []
    for row in text.split("\n"):
        parts = row.split(mark)
        # A row without the mark is printed whole.
        rows.append(row if len(parts) == 1 else parts[place - 1] if place <= len(parts) else "")
    return "\n".join(rows)


def _tr(text: str, words: Words) -> str | None:
    sets = [CLASSES.get(each, each) for each in words]
    if len(sets) == 2 and sets[0] == "-d" and not re.search(r"[\[\]-]", sets[1]):
        return "".join(letter for letter in text if letter not in sets[1])
    if sets in (["A-Z", "a-z"], ["a-z", "A-Z"]):
        return text.lower() if sets[1] == "a-z" else text.upper()
    if len(sets) == 2 and sets[0] == "-s" and sets[1] == " ":
        return re.sub(" +", " ", text)
    is_letter = len(sets) == 2 and len(sets[0]) == len(sets[1]) == 1
    return text.replace(sets[0], sets[1]) if is_letter else None


def _wc(text: str, words: Words) -> str | None:
    if words == ["-w"]:
        return str(len(text.split()))
    # What is read ends its last line, as echo and '<<<' do.
    return str(text.count("\n") + 1) if words == ["-l"] else None


def _awk(text: str, words: Words) -> str | None:
    told = _options(words[:-1], "F") if words else None
    column = COLUMN.fullmatch(words[-1]) if told is not None and words else None
    if told is None or column is None:
        return None
    mark = told.get("F")
    if mark is not None and len(mark) != 1:
        return None
    rows = []
    for row in text.split("\n"):
        parts = row.split(mark)
        if column[2]:
            rows.append(str(len(parts)))
        else:
            place = int(column[1])
            rows.append(row if not place else parts[place - 1] if place <= len(parts) else "")
    return "\n".join(rows)


def _grep(text: str, words: Words) -> str | None:
    """Returns what ``grep -oP`` or ``-oE`` finds, of patterns that take time by their length."""
    if len(words) != 2 or words[0] not in ("-oP", "-oE", "-o", "-Po", "-Eo"):
        return None
    if behind := BEHIND.fullmatch(words[1]):
        found = re.findall(f"(?<={re.escape(behind[1])}){RUNS[behind[2]]}", text)
    elif alone := ALONE.fullmatch(words[1]):
        found = re.findall(RUNS[alone[1]], text)
    else:
        return None
    return "\n".join(found)


def _sed(text: str, words: Words) -> str | None:
    """Returns what ``sed 's/a/b/'`` makes of plain text; a dot in it would stand for any letter."""
    if list(words) == ["s/ \\+/ /g"]:
        return re.sub(" +", " ", text)
    found = SUBSTITUTION.fullmatch(words[-1]) if 1 <= len(words) <= 2 else None
    if found is None or "." in found[2] or not found[2] or (len(words) == 2 and words[0] != "-e"):
        return None
    times = -1 if found[4] else 1
    return "\n".join(row.replace(found[2], found[3], times) for row in text.split("\n"))


def _rows(text: str, words: Words, *, is_head: bool) -> str | None:
    told = re.fullmatch(r"-n?\s?(\d{1,4})", " ".join(words))
    number = int(told[1]) if told else 10 if not words else None
    if number is None or number < 1:
        return None
    rows = text.split("\n")
    return "\n".join(rows[:number] if is_head else rows[-number:])


def _head(text: str, words: Words) -> str | None:
    return _rows(text, words, is_head=True)


def _tail(text: str, words: Words) -> str | None:
    return _rows(text, words, is_head=False)


def _xargs(text: str, words: Words) -> str | None:
    return " ".join(text.split()) if not words else None


TOOLS: dict[str, Tool] = {
    "cut": _cut,
    "tr": _tr,
    "wc": _wc,
    "awk": _awk,
    "grep": _grep,
    "sed": _sed,
    "head": _head,
    "tail": _tail,
    "xargs": _xargs,
}
