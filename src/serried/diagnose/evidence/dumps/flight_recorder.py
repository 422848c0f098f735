r"""A flight-recorder dump of torch's: the collectives and messages that one rank issued.

    pickle or JSON   version, entries [record_id, process_group (number, name), profiling_name
                     "nccl:all_reduce" or "gloo:all_reduce", collective_seq_id, sizes, dtypes,
                     state, retired, time_created_ns, frames ...], pg_config, pg_status

Written by torch 2.2 and later (torch/csrc/distributed/c10d/FlightRecorder.hpp). NCCL fills
``state`` and, in ``pg_config``, the members of groups; gloo leaves ``state`` at "scheduled", tells
by ``retired`` what is over, leaves ``pg_config`` empty and records no send and no receive.

>>> import json
>>> entry = {"process_group": ["8", "dp_3"], "profiling_name": "gloo:all_reduce", "record_id": 0,
...          "collective_seq_id": 6, "retired": False, "input_sizes": [[8, 64]],
...          "input_dtypes": ["Float"], "time_created_ns": 17, "is_p2p": False}
>>> dump = read_dump(json.dumps({"version": "2.10", "entries": [entry]}).encode(), "rank_5.json")
>>> dump.rank, dump.entries[0].op, dump.entries[0].group_name, dump.entries[0].numel_in
(5, 'all_reduce', 'dp_3', 512)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from serried.action import Action
from serried.diagnose.evidence.dumps.plain_pickle import read_plain_pickle
from serried.diagnose.evidence.file_rank import file_rank
from serried.diagnose.evidence.stacks.stack import Frame
from serried.errors import InputError

_MESSAGE = re.compile(r"(?P<op>send|recv) (?P<one>\d+)(?P<way>->|<-)(?P<other>\d+)")
_OLD_PICKLE = re.compile(
    rb"\([dl]p\d+\n|[}\]]q[\x00-\x08]|c[\w.]{1,80}\n[\w.]{1,80}\n(?:p\d+\n|q.)?\(", re.DOTALL
)
"""How a pickle of protocol 0 or 1 begins that builds a dict or list, or calls a function."""
_OVER = ("completed",)


class FlightEntry(NamedTuple):
    """Holds one collective or message as a rank issued it.

    A large job leaves millions: a tuple is made in a fraction of the time of a frozen dataclass.
    """

    op: str
    group_id: str
    """The number that the group has in the whole job, as text; "" where debugging hides it."""
    group_name: str
    own_group: int
    """The number of the group among those of this process."""
    seq: int
    is_finished: bool
    numel_in: int | None
    numel_out: int | None
    dtype: str | None
    created_ns: int
    peer: int | None
    """The other rank of a message, inside its group."""
    frames: tuple[Frame, ...]
    record: int
    backend: str
    """``nccl``, ``gloo`` ..."""
    step: int | None = None
    """The step of the training; no flight recorder says it, a guard does."""
    action: Action | None = None
    """What of a pipeline's schedule a message is, where that is told."""
    op_id: int = 0
    """The number among all operations of the group, with the messages that gloo leaves out."""
    is_unseen: bool = False
    """Whether C++ issued it behind Python's back, where somebody tells that."""


@dataclass(frozen=True)
class FlightDump:
    """Holds what one rank's recorder kept."""

    name: str
    rank: int | None
    """By the file's name; no dump says whose it is."""
    entries: tuple[FlightEntry, ...]
    members: Mapping[str, tuple[int, ...]]
    """By the number of a group, its global ranks; only NCCL tells them."""
    is_whole: bool
    """Whether the ring still holds the first operation."""
    last_enqueued: Mapping[int, int]
    """By the number of a group in this process, how many collectives it was given, as told."""
    folder: str = ""
    """Where it lay: dumps of two jobs, or of two moments, lie in two folders as a rule."""

    @cached_property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """The groups of its entries by number and name, in the order in which they are met."""
        return tuple({(entry.group_id, entry.group_name): None for entry in self.entries})


def looks_like_dump(head: bytes) -> bool:
    """Tells by a file's first bytes whether it may be a dump.

    >>> looks_like_dump(b'{"comm_lib_version":"","entries":['), looks_like_dump(b"step 1")
    (True, False)
    """
    return _is_pickle(head) or (
        head.lstrip()[:1] == b"{" and (b'"entries"' in head or b'"comm_lib_version"' in head)
    )


def _is_pickle(head: bytes) -> bool:
    is_new = head[:1] == b"\x80" and head[1:2] <= b"\x05"
    return is_new or _OLD_PICKLE.match(head) is not None


def read_dump(data: bytes, name: str, folder: str = "") -> FlightDump:
    """Returns a dump read from its bytes; ``name`` is its file's, which tells the rank.

    Raises InputError for bytes that are no whole dump, and for a pickle that asks for more than
    plain values.
    """
    table = read_plain_pickle(data, name) if _is_pickle(data) else _json(data, name)
    if not isinstance(table, dict) or not isinstance(table.get("entries"), list | tuple):
        raise InputError("{path} holds no entries, as a flight-recorder dump does", path=name)
    entries = tuple(_entry(each) for each in table["entries"] if isinstance(each, dict))
    return FlightDump(
        name,
        file_rank(name),
        tuple(sorted(entries, key=lambda entry: entry.record)),
        _members(table.get("pg_config")),
        is_whole=not entries or min(entry.record for entry in entries) == 0,
        last_enqueued=_enqueued(table.get("pg_status")),
        folder=folder,
    )


def _json(data: bytes, name: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(
            "{path} breaks off or is damaged: it is no whole dump", path=name
        ) from error


def _entry(entry: Mapping[str, Any]) -> FlightEntry:
    group = entry.get("process_group")
    number, desc = group if isinstance(group, list | tuple) and len(group) == 2 else ("", "")
    backend, _, words = str(entry.get("profiling_name", "")).rpartition(":")
    message = _MESSAGE.match(words)
    return FlightEntry(
        message["op"] if message else words.split(" ", 1)[0],
        str(number),
        str(desc),
        _number(entry.get("pg_id")),
        _number(entry.get("p2p_seq_id" if entry.get("is_p2p") else "collective_seq_id")),
        entry.get("state") in _OVER or bool(entry.get("retired")),
        _numel(entry.get("input_sizes")),
        _numel(entry.get("output_sizes")),
        _dtype(entry.get("input_dtypes")),
        _number(entry.get("time_created_ns")),
        _number(message["other"]) if message else None,
        tuple(_frame(each) for each in _list(entry.get("frames")) if isinstance(each, dict)),
        _number(entry.get("record_id")),
        backend,
        op_id=_number(entry.get("op_id")),
    )


def _frame(frame: Mapping[str, Any]) -> Frame:
    return Frame(
        str(frame.get("name", "")), str(frame.get("filename", "")), _number(frame.get("line"))
    )


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _number(value: Any) -> int:
    if isinstance(value, bool) or value is None:
        return 0
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


def _numel(sizes: Any) -> int | None:
    """Returns the elements of all tensors together; None where no size is told."""
    tensors = [each for each in _list(sizes) if isinstance(each, list | tuple)]
    if not tensors:
        return None
    total = 0
    for tensor in tensors:
        product = 1
        for size in tensor[:16]:
            product *= min(max(_number(size), 0), 1 << 62)
        total += product
    return total


def _dtype(dtypes: Any) -> str | None:
    found = _list(dtypes)
    return str(found[0]) if found else None


def _members(config: Any) -> dict[str, tuple[int, ...]]:
    found = {}
    for number, group in config.items() if isinstance(config, dict) else ():
        ranks = group.get("ranks") if isinstance(group, dict) else None
        numbers = tuple(int(each) for each in re.findall(r"\d{1,9}", str(ranks or "")))
        if numbers:
            found[str(number)] = numbers
    return found


def _enqueued(status: Any) -> dict[int, int]:
    if not isinstance(status, dict):
        return {}
    return {
        _number(number): _number(each.get("last_enqueued_collective"))
        for number, each in status.items()
        if isinstance(each, dict)
    }
