"""Texts that no person writes: mutations of launch files, and one token over and over."""

from __future__ import annotations

import os
import random
import resource
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from serried.errors import SerriedError
from serried.launch.facts.source import text_of
from serried.launch.read import read
from serried.limits import LAUNCH_BYTES

FILES = Path(__file__).parent / "files"
BESIDE = {path.name: path.read_text(encoding="utf-8") for path in sorted(FILES.iterdir())}

TOKENS = (
    *("$((", "${A:-", "$(", "`", '"', "'", "((", "{ ", "[[ ", "if a; then\n", "fi\n", "<<E\n"),
    *("A=$A$A\n", "eval $A\n", "source x.sh\n", "\\\n", "$", "a ", "#SBATCH -N 2\n", "| ", "&& "),
    *(
        "[",
        "{",
        '{"a":',
        "[1,",
        "- ",
        "a: ",
        "&a ",
        "*a ",
        "<<: *a\n",
        "!!python/object:os.x ",
        "---\n",
    ),
    *(
        "a.",
        "a = 1\n",
        "[a]\n",
        "dict(a=",
        "9**",
        "not ",
        "-",
        "f(",
        "lambda: ",
        "from a import *\n",
    ),
    *("9" * 5000, "0x", "1e999", "\x00", "\x01", "\ufeff", "\ue000", "\n", "\t", "é", "中"),
)


def mutant(data: bytes, chance: random.Random) -> bytes:
    """Returns ``data`` changed in one to three places."""
    for _ in range(chance.randint(1, 3)):
        data = chance.choice(CHANGES)(data, chance)
    return data[: LAUNCH_BYTES.most]


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _dropped(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + data[start + chance.choice((1, 2, 40, 400)) :]


def _twice(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    part = data[start : start + chance.choice((1, 10, 200, 2000))]
    return data[:start] + part * chance.choice((2, 3, 50)) + data[start:]


def _token(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    token = chance.choice(TOKENS) * chance.choice((1, 2, 70, 400))
    return data[:start] + token.encode("utf-8", "replace") + data[start:]


def _odd(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    return data[:start] + chance.randbytes(chance.choice((1, 2, 8))) + data[start + 1 :]


def _number(data: bytes, chance: random.Random) -> bytes:
    places = [i for i, byte in enumerate(data) if 48 <= byte <= 57] or [0]
    start = chance.choice(places)
    number = chance.choice(
        (b"0", b"-1", b"9" * 19, b"9" * 5000, b"1e400", b"0x10", b"1_0", b"\xd9\xa3")
    )
    return data[:start] + number + data[start + 1 :]


def _lines(data: bytes, chance: random.Random) -> bytes:
    rows = data.split(b"\n")
    chance.shuffle(rows)
    return b"\n".join(rows)


def _one_line(data: bytes, chance: random.Random) -> bytes:
    return data.replace(b"\n", chance.choice((b"", b" ", b"; ")))


def _coded(data: bytes, chance: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(chance.choice(("utf-16", "gb18030", "utf-8-sig", "utf-32")), "replace")


CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_cut, _dropped, _twice, _token, _token, _odd, _number, _number),
    *(_lines, _one_line, _coded),
)


def answer(data: bytes, name: str, beside: Mapping[str, str] = BESIDE) -> str:
    """Returns "" where a file is read or refused in a sentence, else the traceback."""
    try:
        config = read(text_of(data, name), name=name, beside=beside)
        _ = config.framework_at, config.sizes()
    except SerriedError as error:
        return "" if str(error) else "an error without a sentence"
    except Exception:
        return traceback.format_exc()
    return ""


def bounded(work: Callable[[], str], *, cpu_s: int = 20, memory_bytes: int = 2 << 30) -> str:
    """Returns what ``work`` tells in a process of its own; a note where it was stopped there."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        os.write(writing, work().encode()[-4000:])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        told = file.read().decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    return told if not status else f"stopped with status {status}"
