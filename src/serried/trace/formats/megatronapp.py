"""MegatronApp's timelines: forwards and backwards by rank, aggregated or of one rank alone.

    {"name": "forward", "ph": "E", "ts": 9316, "pid": 1,                              aggregated
     "args": {"iteration": 10, "microbatch": 0, "model_chunk": 0, "pp_rank": 1}}
    {"name": "forward", "ph": "X", "ts": 770, "dur": 4418, "pid": 1,                  by MegaScan
     "args": {"iteration": 1, "dp_rk": 0, "pp_rk": 1, "tp_rk": 0, "g_rk": 1}}
    {"name": "forward", "ph": "E", "rel_ts": 9316000, "pp_rk": 1, "g_rk": 1}      a rank's own file

``pid`` or ``g_rk`` is the rank; a pair's numbers stand on its end. Stage = chunk x pp + pp rank;
where no microbatch is given they are counted. A rank's own file (``benchmark-data-0-pipeline-1-
tensor-0.json``) has nanoseconds since its iteration began, and events that tell of iterations.
Every rank's iteration begins at 0 in all of them (their alignment is switched off), so clocks
of ranks can be off by as much as their iterations began apart.

Source: OpenSQZ/MegatronApp 99c64da, scripts/aggregate.py and profiling/.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from serried.action import ActionKind
from serried.errors import InputError
from serried.trace.formats.event_file import Event, TraceEventFile, nanoseconds, whole
from serried.trace.formats.foreign import (
    ForeignSpan,
    foreign_trace,
    one_after_another,
    pipelines,
    spans_of,
    with_peers,
)
from serried.trace.model.trace import Trace

_KINDS = {
    **dict.fromkeys(("forward", "forward-warmup"), ActionKind.F),
    **dict.fromkeys(("backward", "backward-cooldown"), ActionKind.B),
    "optimizer": ActionKind.OPTIMIZER,
}
_ITERATION = "iteration"
_READ = (*_KINDS, _ITERATION)
_NAMES = {"pp_rank": "pp_rk", "rank": "g_rk"}
"""What MegaScan calls them."""


class _Found(NamedTuple):
    """Holds one computation; a number that the file does not give is -1."""

    rank: int
    start_ns: int
    end_ns: int
    kind: ActionKind
    step: int
    microbatch: int
    chunk: int
    pp_rank: int


def of_megatronapp(event: Event) -> bool:
    """Tells whether an event is one that is read of MegatronApp's, or shows whose it is."""
    return event.get("name") in _READ or _is_marked(event)


def is_megatronapp(file: TraceEventFile) -> bool:
    """Tells whether ``file`` was written by MegatronApp."""
    return any(map(_is_marked, file.events))


def _is_marked(event: Event) -> bool:
    given = _given(event)
    return "model_chunk" in given or ("pp_rk" in given and "g_rk" in given)


def megatronapp_trace(
    files: Sequence[TraceEventFile], sizes: Mapping[str, int] | None = None
) -> Trace:
    """Returns the Trace of MegatronApp's timeline; several files are parts of one run.

    Raises InputError when no pair of events is a forward or a backward, and when two files hold
    the same iteration of a rank.
    """
    of_file = [[*_outermost(_computations(file))] for file in files]
    _require_apart(files, of_file)
    found = [each for mine in of_file for each in mine]
    if not any(each.kind is not ActionKind.OPTIMIZER for each in found):
        raise _without_computations(files)
    # No file says how many stages there are; the highest pp rank does.
    num_stages = 1 + max(each.pp_rank for each in found)
    rows = [_row(each, num_stages) for each in _numbered(found)]
    layout = pipelines(rows, None, sizes)
    spans = one_after_another(spans_of(with_peers(rows, layout)))
    return foreign_trace(files[0].path.stem, layout, {"": range(layout.world_size)}, spans)


def _without_computations(files: Sequence[TraceEventFile]) -> InputError:
    """Returns why nothing was computed: no such event, or none that says its stage."""
    computing = _KINDS.keys() - {"optimizer"}
    given = [
        _numbers(event) for file in files for event in file.events if event.get("name") in computing
    ]
    if given and not any("pp_rank" in each for each in given):
        return InputError(
            "{path} holds forwards and backwards without a pp_rank, so that their stages are not "
            "known; MegatronApp writes it into args",
            path=files[0].path,
        )
    return InputError("{path} holds no forward and no backward", path=files[0].path)


def _require_apart(files: Sequence[TraceEventFile], found: Sequence[Sequence[_Found]]) -> None:
    """Raises InputError for files of two runs, or for parts beside what they were joined into."""
    holders: dict[tuple[int, int], TraceEventFile] = {}
    for file, mine in zip(files, found, strict=True):
        for rank, step in sorted({(each.rank, each.step) for each in mine}):
            if (other := holders.setdefault((rank, step), file)) is not file:
                raise InputError(
                    "{first} and {second} both hold iteration {step} of rank {rank}; give the "
                    "files of one run, or the one that they were joined into",
                    first=other.path,
                    second=file.path,
                    step=step,
                    rank=rank,
                )


def _row(each: _Found, num_stages: int) -> ForeignSpan:
    if each.kind is ActionKind.OPTIMIZER:
        return ForeignSpan(each.rank, -1, each.kind, -1, each.step, each.start_ns, each.end_ns)
    stage = each.chunk * num_stages + each.pp_rank
    return ForeignSpan(
        each.rank, stage, each.kind, each.microbatch, each.step, each.start_ns, each.end_ns
    )


def _numbered(found: Sequence[_Found]) -> Iterator[_Found]:
    """Yields computations, those without a microbatch counted by rank, step, kind and chunk."""
    turns: dict[tuple[int, ...], int] = {}
    for each in sorted(found):
        key = (each.rank, each.step, each.kind, each.chunk)
        turns[key] = turns.get(key, -1) + 1
        yield each if each.microbatch >= 0 else each._replace(microbatch=turns[key])


def _outermost(found: Sequence[_Found]) -> Iterator[_Found]:
    """Yields what does not lie within another of its kind: a scope may hold one of its name."""
    until: dict[tuple[int, ...], int] = {}
    for each in sorted(found, key=lambda each: (each.rank, each.start_ns, -each.end_ns)):
        key = (each.rank, each.kind, each.step)
        if each.end_ns > until.get(key, each.start_ns - 1):
            until[key] = each.end_ns
            yield each


def _computations(file: TraceEventFile) -> list[_Found]:
    begun: dict[tuple[int, str, ActionKind], list[int]] = {}
    found: list[_Found] = []
    iteration = -1
    for event in file.events:
        name, phase = str(event.get("name")), event.get("ph")
        # Only a rank's own file has these; in the others each event tells its iteration, which
        # wins below.
        if name == _ITERATION and phase == "B":
            iteration += 1
        kind, at, numbers = _KINDS.get(name), _moment(event), _numbers(event)
        rank = whole(numbers.get("rank", event.get("pid")))
        if kind is None or at is None or rank is None or rank < 0:
            continue
        begins = begun.setdefault((rank, str(event.get("tid")), kind), [])
        if phase == "B":
            begins.append(at)
            continue
        length = nanoseconds(event.get("dur")) if phase == "X" else None
        start, end = (at, at + length) if length is not None else (None, at)
        # Scopes of one name may nest: an end closes the begin that was opened last.
        if phase == "E" and begins:
            start = begins.pop()
        if start is None or end < start:
            continue
        if (
            one := _computation(rank, (start, end), kind, {"iteration": iteration, **numbers})
        ) is not None:
            found.append(one)
    return found


def _computation(
    rank: int, times: tuple[int, int], kind: ActionKind, numbers: Mapping[str, object]
) -> _Found | None:
    """Returns a computation; None where a number of its is damaged."""
    # A lone optimizer may lack its pp_rank, for it has no stage. A forward or backward without
    # one (None here) is damaged; without a microbatch (-1) it is counted later.
    given = {
        name: whole(numbers.get(name, otherwise))
        for name, otherwise in (
            *(("iteration", 0), ("microbatch", -1)),
            *(("model_chunk", 0), ("pp_rank", 0 if kind is ActionKind.OPTIMIZER else None)),
        )
    }
    step, microbatch, chunk, pp_rank = (given[name] for name in given)
    if step is None or microbatch is None or chunk is None or pp_rank is None:
        return None
    if ("microbatch" in numbers and microbatch < 0) or min(chunk, pp_rank) < 0:
        return None
    return _Found(rank, *times, kind, max(step, 0), microbatch, chunk, pp_rank)


def _moment(event: Event) -> int | None:
    """Returns when an event was: microseconds, or a rank's own nanoseconds."""
    if "rel_ts" in event:
        at = event["rel_ts"]
        return at if type(at) is int and abs(at) < 2**61 else None
    return nanoseconds(event.get("ts"))


def _numbers(event: Event) -> Event:
    """Returns what an event says beside its name and time, in the aggregated file's names."""
    given = _given(event)
    return given | {name: given[other] for name, other in _NAMES.items() if other in given}


def _given(event: Event) -> Event:
    """Returns what an event says beside its name and time, as it stands."""
    given = event.get("args") if "args" in event else event if "rel_ts" in event else None
    return given if isinstance(given, dict) else {}
