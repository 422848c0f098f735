"""Kineto, the files of ``torch.profiler``: the ranges that PyTorch's pipelining names.

    rank0.json      "distributedInfo": {"rank": 0, "world_size": 4}, "baseTimeNanoseconds": …
                    ProfilerStep#3      PP:0F0    PP:0SEND_F0    PP:0B0    …
    rank1.json.gz   …

``PP:`` ranges carry the action's own text; GPipe writes ``Forward 0`` and ``Backward 0``, of
the rank's one stage, which the sizes given say (without them ranks are taken for stages, and a
finding says so), and Schedule1F1B nothing (run it from its CSV). A range of an action
holds the wait for its input too, so its length is not its computation's alone; a SEND or RECV
range is only the posting of a message, no transfer and no wait, and is left out, and so is what
lies outside every step, where the file has steps. Of a GPU the same ranges stand a second time,
by stream (``gpu_user_annotation``); those are left out, for backwards, which another thread
launches, have none. Time stamps are microseconds since the file's base. A file that does not say
its rank is of the rank that its name says, or of its place among the names, 2 before 10.

Source: torch 2.13.0, torch/distributed/pipelining/schedules.py (record_function names) and
kineto's output_json.cpp.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path

from serried.action import Action, ActionKind
from serried.errors import InputError, listed
from serried.finding import Finding, said
from serried.trace.formats.event_file import (
    Event,
    TraceEventFile,
    nanoseconds,
    natural,
    printable,
    whole,
)
from serried.trace.formats.foreign import TOWARDS, ForeignSpan, foreign_trace, pipelines, spans_of
from serried.trace.model.laid_out import laid_out
from serried.trace.model.recorded_order import pipeline_ranks
from serried.trace.model.trace import Trace

_PREFIX = "PP:"
_EAGER = re.compile(r"(Forward|Backward) (\d{1,9})")
_STEP = re.compile(r"ProfilerStep#(\d{1,9})")
# "Optimizer.step#AdamW.step"
_OPTIMIZER = re.compile(r"Optimizer\.step#.*\.step")
_BEGINNINGS = (_PREFIX, "Forward ", "Backward ", "ProfilerStep#", "Optimizer.step#")

_NAMED = re.compile(r"rank[_-]?(\d{1,7})", re.IGNORECASE)
_ON_STREAM = "gpu_user_annotation"

Interval = tuple[int, int, int]


def of_kineto(event: Event) -> bool:
    """Tells whether an event may be an action or a step of torch.profiler's."""
    name = event.get("name")
    return isinstance(name, str) and name.startswith(_BEGINNINGS)


def marks_pipeline(event: Event) -> bool:
    """Tells whether an event is an action of a pipeline, and no mere step or optimizer."""
    name = event.get("name")
    return isinstance(name, str) and (name.startswith(_PREFIX) or bool(_EAGER.fullmatch(name)))


def is_kineto(file: TraceEventFile) -> bool:
    """Tells whether ``file`` was written by torch.profiler."""
    return "distributedInfo" in file.about or any(
        str(each.get("name")).startswith(_PREFIX) for each in file.events
    )


def kineto_trace(files: Sequence[TraceEventFile], sizes: Mapping[str, int] | None = None) -> Trace:
    """Returns the Trace of a job's Kineto files, one of each rank.

    Raises InputError when two are of one rank or of two runs, and when none holds a pipeline
    action.
    """
    by_rank: dict[int, TraceEventFile] = {}
    for file, named in zip(files, ranks_by_name(files), strict=True):
        rank = rank_said(file, named)
        if rank in by_rank:
            raise InputError(
                "rank {rank} stands twice, in {first} and {second}; give only one of them",
                rank=rank,
                first=by_rank[rank].path,
                second=file.path,
            )
        by_rank[rank] = file
    of_rank = {rank: _rows(rank, file) for rank, file in by_rank.items()}
    _require_one_run(by_rank, of_rank)
    rows = [row for mine in of_rank.values() for row in mine]
    if not any(row.kind is not ActionKind.OPTIMIZER for row in rows):
        raise InputError(
            "{paths} hold no pipeline action (PP:0F0 …); profile a schedule of "
            "torch.distributed.pipelining that has several stages a rank or is read from CSV",
            paths=listed((file.path for file in files), limit=3),
        )
    # The world is the largest that anything says: world_size, a rank, the number of files.
    worlds = [_number(f.about.get("distributedInfo"), "world_size", 0) for f in files]
    world_size = max(*worlds, 1 + max(by_rank), len(files))
    findings: list[Finding] = []
    is_eager = any(_is_eager(row) for row in rows)
    if is_eager:
        rows, findings = _placed(rows, world_size, sizes)
    # GPipe's stages were already laid over this world. Otherwise a world that no file states
    # is left to be found from the stages.
    layout = pipelines(rows, world_size if is_eager or max(worlds) else None, sizes)
    machines: dict[str, list[int]] = {}
    for rank, file in sorted(by_rank.items()):
        machines.setdefault(printable(file.about.get("host_name")), []).append(rank)
    run = files[0].path.parent.resolve().name
    return foreign_trace(
        run, layout, machines, spans_of(rows), findings=findings, waits_inside=True
    )


def _require_one_run(
    files: Mapping[int, TraceEventFile], rows: Mapping[int, Sequence[ForeignSpan]]
) -> None:
    """Raises InputError for files of jobs of two sizes, or of one host and different times.

    Hosts of one job may have clocks that are hours apart; ranks of one host share theirs.
    """
    worlds: dict[int, Path] = {}
    hosts: dict[str, list[tuple[int, int, Path]]] = {}
    for rank, file in files.items():
        if world := _number(file.about.get("distributedInfo"), "world_size", 0):
            worlds.setdefault(world, file.path)
        if rows[rank] and (host := printable(file.about.get("host_name"))):
            times = [(row.start_ns, row.end_ns) for row in rows[rank]]
            ends = min(start for start, _ in times), max(end for _, end in times)
            hosts.setdefault(host, []).append((*ends, file.path))
    if len(worlds) > 1:
        raise _mixed(*list(worlds.values())[:2])
    for windows in hosts.values():
        (_, until, path), *others = sorted(windows, key=lambda window: window[0])
        # Windows come by start, and `until` is the latest end so far: a window that begins after
        # it shares no moment with any before.
        for start, end, other in others:
            if start > until:
                raise _mixed(path, other)
            until, path = max((until, path), (end, other), key=lambda last: last[0])


def _mixed(first: Path, second: Path) -> InputError:
    return InputError(
        "two runs are mixed: {first} and {second} are of jobs of two sizes, or of one host at "
        "different times; give the files of one run",
        first=first,
        second=second,
    )


def ranks_by_name(files: Sequence[TraceEventFile]) -> list[int]:
    """Returns the rank of each file by its name: as its number says, else its place in order.

    >>> names = ("rank10.json", "rank2.json", "a.json")
    >>> ranks_by_name([TraceEventFile(Path(name), [], {}, cut_off=False) for name in names[:2]])
    [10, 2]
    >>> ranks_by_name([TraceEventFile(Path(name), [], {}, cut_off=False) for name in names])
    [2, 1, 0]
    """
    names = [file.path.name for file in files]
    found = [_NAMED.search(name) for name in names]
    ranks = [int(match[1]) for match in found if match]
    # Numbers count only where every file has one of its own: a.json beside rank0.json has none.
    if len(set(ranks)) == len(files):
        return ranks
    order = sorted(range(len(names)), key=lambda at: (natural(names[at]), names[at]))
    place = {at: rank for rank, at in enumerate(order)}
    return [place[at] for at in range(len(names))]


def rank_said(file: TraceEventFile, otherwise: int) -> int:
    """Returns the rank that a file says it is of, else ``otherwise``."""
    return _number(file.about.get("distributedInfo"), "rank", otherwise)


def _is_eager(row: ForeignSpan) -> bool:
    """Tells whether a row is of GPipe's ranges, which name no stage."""
    return row.stage < 0 and row.kind in (ActionKind.F, ActionKind.B)


def _placed(
    rows: Sequence[ForeignSpan], world_size: int, sizes: Mapping[str, int] | None
) -> tuple[list[ForeignSpan], list[Finding]]:
    """Returns GPipe's rows with their stages, and what is to be said where nobody gave sizes."""
    layout = laid_out("megatron", world_size, sizes)
    table = pipeline_ranks(layout, world_size).tolist()
    place = {rank: at for column in table for at, rank in enumerate(column)}
    placed = [row._replace(stage=place[row.rank]) if _is_eager(row) else row for row in rows]
    # With sizes, or of one rank alone, nothing was guessed.
    if sizes or world_size == 1:
        return placed, []
    guess = said(
        "GPipe's ranges name no stage, so every one of the {ranks} ranks is taken for a stage",
        ranks=world_size,
    )
    cure = said("give the sizes by --pp, --dp and --tp")
    return placed, [Finding("stages", (guess,), cure=cure)]


def _rows(rank: int, file: TraceEventFile) -> list[ForeignSpan]:
    base = file.about.get("baseTimeNanoseconds")
    base_ns = base if isinstance(base, int) and abs(base) < 2**62 else 0
    steps: list[Interval] = []
    found: list[tuple[Action, int, int]] = []
    for event in file.events:
        start, length = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
        if event.get("ph") != "X" or start is None or length is None or length < 0:
            continue
        if event.get("cat") == _ON_STREAM:
            continue
        name = str(event.get("name"))
        begun = base_ns + start
        if step := _STEP.fullmatch(name):
            steps.append((begun, begun + length, int(step[1])))
        elif action := _action(name):
            found.append((action, begun, begun + length))
    # A step's range may stand behind its actions, so actions look for theirs only now.
    steps.sort()
    rows = (_row(rank, action, start, end, steps) for action, start, end in found)
    return [row for row in rows if row is not None]


def _action(name: str) -> Action | None:
    """Returns the action that a range's name says, None for any other range."""
    if eager := _EAGER.fullmatch(name):
        kind = ActionKind.F if eager[1] == "Forward" else ActionKind.B
        return Action(kind, -1, int(eager[2]))
    if _OPTIMIZER.fullmatch(name):
        return Action(ActionKind.OPTIMIZER)
    if not name.startswith(_PREFIX) or len(name) > 100:
        return None
    try:
        action = Action.parse(name.removeprefix(_PREFIX))
    except InputError:
        return None  # WAIT_SEND_B, WAIT_REDUCE_GRAD: waits that belong to no action of ours
    return None if action.kind in TOWARDS else action


def _row(
    rank: int, action: Action, start: int, end: int, steps: Sequence[Interval]
) -> ForeignSpan | None:
    """Returns an action as a row; ``steps`` ascend. None where it is of none of them."""
    step = 0
    if steps:
        # The last step that began before the action; one before all steps, or after the end of
        # that one (in the gap between two), is of none.
        _, last, step = steps[max(bisect_right(steps, start, key=lambda each: each[0]) - 1, 0)]
        if not steps[0][0] <= start <= last:
            return None
    # A pair goes under its forward's numbers: one span holds one stage and one microbatch.
    numbers = action.parts[0] if action.parts else action
    return ForeignSpan(rank, numbers.stage, action.kind, numbers.microbatch, step, start, end)


def _number(about: object, key: str, otherwise: int) -> int:
    value = whole(about.get(key)) if isinstance(about, dict) else None
    return otherwise if value is None or value < 0 else value
