"""Every message that tells figures of a collective is read whole, however it was printed or cut.

``figures.txt`` holds a row for each: what it tells, and the message as the library's source forms
it, with ``{names}`` in place of the figures.

    op seq timeout_ms|[E ProcessGroupNCCL.cpp:{line}] [Rank {rank}] Watchdog caught ...
"""

from __future__ import annotations

import json
import random
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serried.diagnose.gather import gather
from serried.diagnose.reason import diagnosed
from serried.views.diagnose.document import diagnosis_document

MESSAGES = [
    tuple(row.split("|", 1))
    for row in Path(__file__).with_name("figures.txt").read_text("utf-8").splitlines()
]
OPS = ("ALLREDUCE", "BROADCAST", "_ALLGATHER_BASE", "ALLTOALL_BASE", "SEND", "COALESCED", "BARRIER")
NAMES = ("default_pg", "mesh_dp", "TENSOR_MODEL_PARALLEL_GROUP", "undefined")
BAR = "Epoch 3:  45%|####5     | 12/300 [00:12<04:00,  1.2it/s]"
FULL = 100
"""Letters of a line of the terminal that cuts messages."""


def drawn(seed: str) -> dict[str, Any]:
    """Draws the figures of a message."""
    rng = random.Random(seed)
    rank, pg, guid, name = rng.randrange(2000), rng.randrange(40), rng.randrange(400), ""
    seq, limit = rng.randrange(1, 2_000_000), rng.choice((10_000, 600_000, 1_800_000, 5_400_000))
    name = rng.choice(NAMES)
    shown = "" if name == "undefined" else f"({name})"
    a, b = rng.randrange(1, 999), rng.randrange(1, 9999)
    return {
        "op": rng.choice(OPS),
        "seq": seq,
        "numel_in": rng.randrange(1, 10**9),
        "numel_out": rng.randrange(1, 10**9),
        "timeout_ms": limit,
        "ran": limit + rng.randrange(1, 900),
        "rank": rank,
        "inner": rank % 8,
        "one": rng.randrange(1, 8),
        "two": rng.randrange(8, 16),
        "pg": pg,
        "guid": guid,
        "name": name,
        "group_tag": f"[PG ID {pg} PG GUID {guid}{shown} Rank {rank % 8}] ",
        "issued": seq + rng.randrange(9),
        "ahead": seq + 3,
        "done": seq - 1,
        "a": a,
        "b": b,
        "date": f"{rng.randrange(1, 13)}12 18:{rng.randrange(10, 60)}:07.{rng.randrange(10**9):09}",
        "line": rng.randrange(400, 2800),
        "group": f"PG {pg}" if name == "undefined" else name,
    }


def missed(folder: Path, told: str, text: str, figures: dict[str, Any]) -> dict[str, Any]:
    """Returns which figures of a text are not read, each with what was read in its place."""
    path = folder / "job.log"
    path.write_text(f"step 1\n{text}\nstep 2\n", encoding="utf-8")
    found = diagnosis_document(diagnosed(gather([path])))["collective"] or {}
    special = {
        "number": ("group", f"PG {figures['pg']}"),
        "shape": ("numel_in", figures["a"] * figures["b"]),
        "barrier": ("op", "monitoredBarrier"),
    }
    wanted = dict(special.get(key) or (key, figures[key]) for key in told.split())
    return {key: found.get(key) for key, value in wanted.items() if found.get(key) != value}


def printed(message: str, figures: dict[str, Any]) -> str:
    return message.format(**figures).replace("\\n", "\n").replace("\\t", "\t")


def cut(text: str) -> str:
    """Breaks lines at the width of a terminal."""
    rows = text.split("\n")
    parts = [[row[n : n + FULL] for n in range(0, len(row), FULL)] or [""] for row in rows]
    return "\n".join(part for row in parts for part in row)


def wrapped(text: str) -> str:
    """Breaks lines between words, as an editor or a mail does."""
    rows = [
        textwrap.wrap(
            row, 72, break_long_words=False, break_on_hyphens=False, subsequent_indent=" "
        )
        for row in text.split("\n")
    ]
    return "\n".join("\n".join(row) for row in rows)


def boxed(text: str) -> str:
    """Breaks lines between words within a frame, as programs draw one around a message."""
    rows = [part for row in text.split("\n") for part in textwrap.wrap(row, FULL - 4) or [""]]
    return "\n".join(f"│ {row:<{FULL - 4}} │" for row in rows)


def quoted(text: str) -> str:
    """Breaks lines between words and puts before each what a mail puts before a line it quotes."""
    return "\n".join(f"> {row}" for row in wrapped(text).split("\n"))


def in_columns(text: str) -> str:
    """Lays a message out as rich does: time and level, the message, the logger's file and line."""
    head, place = "[10/12/26 10:00:00] ERROR    ", " train.py:210"
    width = 120 - len(head) - len(place)
    laid = []
    for row in text.split("\n"):
        first, *others = textwrap.wrap(row, width) or [""]
        laid += [f"{head}{first:<{width}}{place}", *(f"{' ' * len(head)}{each}" for each in others)]
    return "\n".join(laid)


@pytest.mark.parametrize(
    "lay",
    [
        str,
        cut,
        wrapped,
        boxed,
        quoted,
        in_columns,
        lambda text: json.dumps({"time": "2026-01-02T03:04:05Z", "log": f"step 3\n{text}\n"}),
        lambda text: f'  "stderr": {json.dumps(f"step 3{chr(10)}{text}{chr(10)}")},',
        lambda text: f"CalledProcessError: output={f'step 3{chr(10)}{text}{chr(10)}'.encode()!r}",
        lambda text: repr([f"{row}\n" for row in ("step 3", *text.split("\n"))]),
        lambda text: "\n".join(f"{r:<{FULL}}" for r in cut(text).split("\n")),
    ],
)
def test_figures_are_read_however_a_message_is_broken(
    tmp_path: Path, lay: Callable[[str], str]
) -> None:
    wrong = []
    for told, message in MESSAGES:
        figures = drawn(message)
        if lack := missed(tmp_path, told, lay(printed(message, figures)), figures):
            wrong.append((lack, message))
    assert wrong == []


@pytest.mark.parametrize(
    "carry",
    [
        lambda n, row: f"2026-04-22T21:34:20.123456789Z {row}",
        lambda n, row: f"(WorkerDict pid=77, ip=10.0.0.3) {row}",
        lambda n, row: f"{n % 8}: {row}",
        lambda n, row: f"[default{n % 8}]:{row}",
        lambda n, row: f"# {row}",
        lambda n, row: f"{700 + n}.7s\t{n}\t{row}",
        lambda n, row: f"- {row}",
        lambda n, row: f"[{1700 + n}] {row}",
        lambda n, row: f"node-3.nolog [stderr] {row}",
        lambda n, row: f"[2026-04-22 21:34:20,123] [ERROR] {row}",
        lambda n, row: f"INFO     | 2026-04-22 21:34:20 | __main__:x:12 - {row}",
        lambda n, row: f"{BAR}{row}" if row.startswith("[") else row,
        lambda n, row: row.replace("_", "\\_").replace("(ms)", "\\(ms\\)"),
        lambda n, row: row.replace(" ", "\u00a0").replace(",", ",\u200b"),
        lambda n, row: row.replace(" ", "\t") if "Process" in row else row,
    ],
)
def test_figures_are_read_behind_any_carrier(
    tmp_path: Path, carry: Callable[[int, str], str]
) -> None:
    wrong = []
    for told, message in MESSAGES:
        figures = drawn(message)
        rows = printed(message, figures).split("\n")
        text = "\n".join(carry(n, row) for n, row in enumerate(rows, 1))
        if lack := missed(tmp_path, told, text, figures):
            wrong.append((lack, message))
    assert wrong == []


def test_figures_of_two_processes_on_one_line_are_those_of_the_first(tmp_path: Path) -> None:
    for told, message in MESSAGES:
        figures = drawn(message)
        other = {**figures, "rank": figures["rank"] + 1, "inner": figures["inner"] + 1}
        text = printed(message, figures) + printed(message, other)
        assert missed(tmp_path, told, text, figures) == {}, message


@pytest.mark.parametrize(
    "write",
    [
        lambda text: text.replace("=", ": "),
        lambda text: text.replace("=", " = "),
        lambda text: re.sub(r"(?<==)\d{4,}", lambda found: f"{int(found[0]):,}", text),
        lambda text: text.replace("Timeout(ms)", "Timeout"),
    ],
)
def test_figures_are_read_as_somebody_wrote_them_down(
    tmp_path: Path, write: Callable[[str], str]
) -> None:
    for told, message in MESSAGES:
        if "Watchdog caught" in message and "TensorShape" not in message:
            figures = drawn(message)
            text = write(printed(message, figures))
            assert missed(tmp_path, told, text, figures) == {}, message


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_message_that_another_one_tears_apart_is_read_whole(tmp_path: Path, end: str) -> None:
    for told, message in MESSAGES:
        figures = drawn(message)
        text = printed(message, figures)
        if "Watchdog caught" not in text or "before timing out" not in text or "\n" in text:
            continue
        other = {key: figures[key] + 1 for key in ("rank", "inner", "seq", "numel_in", "numel_out")}
        inner = printed(message, {**figures, **other})
        begins = text.index("Watchdog caught") + 9
        for place in range(begins, text.index("before timing out") + 9, 19):
            torn = text[:place] + inner + end + text[place:]
            assert missed(tmp_path, told, torn, figures) == {}, torn


@pytest.mark.parametrize(
    "strange",
    [
        BAR,
        f"\r{BAR}",
        f"\r{BAR}\n",
        "\r 45%|####5     | 12/300 [00:12<04:00,  1.2it/s, loss=2.1]",
        "NCCL version 2.21.5+cuda12.4\n",
        "\nNCCL version 2.21.5+cuda12.4\n",
        "node-1:77:912 [3] NCCL INFO comm 0x55 rank 3 nranks 8 - Init COMPLETE\n",
    ],
)
def test_a_message_that_a_bar_or_a_line_of_nccl_tears_apart_is_read_whole(
    tmp_path: Path, strange: str
) -> None:
    for told, message in MESSAGES:
        figures = drawn(message)
        text = printed(message, figures)
        if "\n" in text or not text[len(text) // 2 :].endswith((".", "ms", "complete")):
            continue
        torn = text[: len(text) // 2] + strange + text[len(text) // 2 :]
        assert missed(tmp_path, told, torn, figures) == {}, torn
