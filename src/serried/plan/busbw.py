"""The measured busbw table: what ``serried check`` writes and the planner reads.

A row says what one operation reached over groups of one shape, all groups of a kind at once:

    operation   ranks  nodes  groups  size_bytes   time_ns   busbw_bytes_per_s
    all_reduce      8      1       4     1048576     61000        3.0e10
    all_reduce      8      2       4     1048576    420000        4.4e9

``ranks`` is the size of a group and ``nodes`` how many nodes it spreads over. Conventions are
those of nccl-tests: S is the size column, t the time of the slowest rank, algbw = S / t and
busbw = algbw x a factor that makes operations comparable with the link's own speed:

    operation        S                              factor
    all_reduce       the buffer                     2 (n - 1) / n
    all_gather       received in all                (n - 1) / n
    reduce_scatter   sent in all                    (n - 1) / n
    all_to_all       one rank's whole buffer        (n - 1) / n
    sendrecv         one message                    1
    broadcast        the buffer                     1
    reduce           the buffer                     1
    gather           received in all                (n - 1) / n
    scatter          sent in all                    (n - 1) / n

Source: nccl-tests, doc/PERFORMANCE.md. The file is JSON, ``{"schema": "serried.busbw/1",
"source": "…", "rows": [{"operation": "all_reduce", "ranks": 8, …}, …]}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from serried import user_file
from serried.collective.bus_factor import bus_factor
from serried.errors import InputError, listed
from serried.finding import said
from serried.limits import BUSBW_BYTES

SCHEMA = "serried.busbw/1"
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "sendrecv")


@dataclass(frozen=True)
class BusbwRow:
    """Holds what one operation reached at one size over groups of one shape."""

    operation: str
    ranks: int
    """Ranks in each group."""
    nodes: int
    """Nodes that each group spreads over."""
    groups: int
    """Groups that ran at the same time."""
    size_bytes: int
    time_ns: float

    @property
    def algbw_bytes_per_s(self) -> float:
        """Size over time."""
        return self.size_bytes / self.time_ns * 1e9

    @property
    def busbw_bytes_per_s(self) -> float:
        """What each link carries, whatever the operation and the number of ranks."""
        return self.algbw_bytes_per_s * bus_factor(self.operation, self.ranks)


@dataclass(frozen=True)
class BusbwTable:
    """Holds the rows that were measured, and where and when.

    >>> table = BusbwTable("one switch", (BusbwRow("all_reduce", 4, 1, 2, 4096, 10_000.0),))
    >>> round(table.time_ns("all_reduce", ranks=4, nodes=1, size_bytes=8192))
    20000
    """

    source: str
    rows: tuple[BusbwRow, ...]

    def time_ns(self, operation: str, *, ranks: int, nodes: int, size_bytes: int) -> float:
        """Returns how long ``operation`` takes, from the nearest shape that was measured."""
        busbw = self.busbw(operation, ranks=ranks, nodes=nodes, size_bytes=size_bytes)
        return size_bytes * bus_factor(operation, ranks) / busbw * 1e9

    def busbw(self, operation: str, *, ranks: int, nodes: int, size_bytes: int) -> float:
        """Returns bytes per second, between measured sizes along a straight line of logarithms.

        Of groups that stay on one node or all leave it, those nearest in ranks count. Beyond
        the sizes measured the nearest one counts. Raises InputError where none is measured.
        """
        points = self.nearest(operation, ranks=ranks, nodes=nodes)
        if size_bytes <= points[0].size_bytes:
            return points[0].busbw_bytes_per_s
        for low, high in pairwise(points):
            if size_bytes <= high.size_bytes:
                along = math.log(size_bytes / low.size_bytes) / math.log(
                    high.size_bytes / low.size_bytes
                )
                steeper = high.busbw_bytes_per_s / low.busbw_bytes_per_s
                return low.busbw_bytes_per_s * math.pow(steeper, along)
        return points[-1].busbw_bytes_per_s

    def nearest(self, operation: str, *, ranks: int, nodes: int) -> list[BusbwRow]:
        """Returns the rows of the nearest shape by size, the slowest where two have one size.

        Raises InputError where none is measured.
        """
        alike = [
            row
            for row in self.rows
            if row.operation == operation and (row.nodes > 1) == (nodes > 1)
        ]
        if not alike:
            raise InputError(
                "{operation} was not measured {where}; this table has {measured}",
                operation=operation,
                where=said("across nodes") if nodes > 1 else said("on one node"),
                measured=listed(sorted({row.operation for row in self.rows})) or "nothing",
            )
        # Crossing nodes changes the speed most, so only rows that do as the group does are alike;
        # of those the nearest group is the one of the nearest size by ratio.
        shapes = {(row.ranks, row.nodes) for row in alike}
        shape = min(shapes, key=lambda s: (abs(math.log(s[0] / ranks)), abs(s[1] - nodes), s))
        slowest: dict[int, BusbwRow] = {}
        for row in alike:
            if (row.ranks, row.nodes) == shape:
                before = slowest.get(row.size_bytes, row)
                slowest[row.size_bytes] = max(before, row, key=lambda one: one.time_ns)
        return [slowest[size] for size in sorted(slowest)]


def to_document(table: BusbwTable) -> dict[str, Any]:
    """Returns the table as the ``serried.busbw/1`` document."""
    rows = [asdict(row) | {"busbw_bytes_per_s": round(row.busbw_bytes_per_s)} for row in table.rows]
    return {"schema": SCHEMA, "source": table.source, "rows": rows}


def from_document(document: object, name: str) -> BusbwTable:
    """Returns the table of a document; raises InputError naming ``name``, the key and its value.

    The busbw column is for readers: it follows from the others and is not read back.
    """
    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        raise InputError(
            "{file} is no busbw table: its schema is not {schema}; serried check --busbw "
            "writes one",
            file=name,
            schema=SCHEMA,
        )
    rows = document.get("rows")
    if not isinstance(rows, list):
        raise InputError("{file} has no list of rows", file=name)
    return BusbwTable(str(document.get("source", "")), tuple(_rows(rows, name)))


def read_busbw(path: Path) -> BusbwTable:
    """Returns the table in ``path``; raises InputError for a file that cannot be read."""
    try:
        text = user_file.read_text(path, BUSBW_BYTES.most, said("a busbw table"))
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("{file} is no JSON: {reason}", file=path.name, reason=error) from error
    return from_document(document, path.name)


def _rows(rows: Iterable[object], name: str) -> Iterable[BusbwRow]:
    for number, row in enumerate(rows):
        # A row that is no object lacks every field, so the sentence below names the first of them.
        values = row if isinstance(row, Mapping) else {}
        taken: dict[str, Any] = {each.name: values.get(each.name) for each in fields(BusbwRow)}
        for key, value in taken.items():
            if not _fits(key, value):
                raise InputError(
                    "{file}, row {row}: {key} is {value}; it is {wanted}",
                    file=name,
                    row=number,
                    key=key,
                    value=value,
                    wanted=listed(OPERATIONS) if key == "operation" else said("a number above 0"),
                )
        yield BusbwRow(**taken)


def _fits(key: str, value: object) -> bool:
    if key == "operation":
        return value in OPERATIONS
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_whole = isinstance(value, int) or key == "time_ns"
    return is_number and is_whole and 0 < value < math.inf  # type: ignore[operator]
