"""Event files of one run: which tool wrote each, and all of them as one trace.

    rank0.json   PP:0F0 …                    torch.profiler, with marks of a pipeline  ─> Trace
    rank0.json   kernels, copies, launches   torch.profiler of any other program   ─> GpuTrace
    trace.json   model_chunk                 MegatronApp                               ─> Trace

Each file is read once, piece by piece: what a reader of pipelines wants is kept as it stands,
and what GPUs did as columns, until the first mark of a pipeline shows that nobody will ask.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from serried.errors import InputError, listed
from serried.finding import Finding, said
from serried.trace.formats.event_file import Event, TraceEventFile, read_event_file
from serried.trace.formats.gpu.job import gpu_trace
from serried.trace.formats.gpu.torch_profiler import KernelReader, require_activity
from serried.trace.formats.kineto import (
    is_kineto,
    kineto_trace,
    marks_pipeline,
    of_kineto,
    rank_said,
    ranks_by_name,
)
from serried.trace.formats.megatronapp import is_megatronapp, megatronapp_trace, of_megatronapp
from serried.trace.formats.ndtimeline import is_ndtimeline, ndtimeline_trace, of_ndtimeline
from serried.trace.formats.own_chrome import is_own, of_own, own_trace
from serried.trace.formats.paddle.dynamic import (
    is_paddle_dynamic,
    of_paddle_dynamic,
    paddle_dynamic_trace,
)
from serried.trace.gpu.activity import GpuTrace
from serried.trace.model.progress import LARGE_BYTES, LARGE_SPANS, Listener, size_bytes
from serried.trace.model.trace import Trace


class Tool(NamedTuple):
    """Says how the event files of one tool are told from others', and read."""

    name: str
    wants: Callable[[Event], bool]
    """Whether an event is one that its reader looks at; others need not be kept."""
    wrote: Callable[[TraceEventFile], bool]
    read: Callable[[Sequence[TraceEventFile], Mapping[str, int] | None], Trace]


TOOLS = (
    Tool("serried", of_own, is_own, own_trace),
    Tool("MegatronApp", of_megatronapp, is_megatronapp, megatronapp_trace),
    Tool("torch.profiler", of_kineto, is_kineto, kineto_trace),
    Tool("ndtimeline", of_ndtimeline, is_ndtimeline, ndtimeline_trace),
    Tool("Paddle", of_paddle_dynamic, is_paddle_dynamic, paddle_dynamic_trace),
)
"""Who writes event files; of those that fit several the first counts."""
_PROFILER = "torch.profiler"


@dataclass
class _Sorted:
    """Holds the files by what they are."""

    of_tool: dict[Tool, list[TraceEventFile]] = field(default_factory=dict)
    of_gpus: list[tuple[TraceEventFile, KernelReader]] = field(default_factory=list)
    of_hosts: list[tuple[TraceEventFile, KernelReader]] = field(default_factory=list)
    """Profiles of torch's in which no GPU did anything and nothing marks a pipeline."""
    unknown: list[Path] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    seen: dict[bytes, Path] = field(default_factory=dict)

    def add(self, file: TraceEventFile, kernels: KernelReader) -> None:
        """Puts a file where it belongs."""
        tool = next((each for each in TOOLS if each.wrote(file)), None)
        activity = kernels.columns
        if tool is None and not activity.num_operations and not activity.num_calls:
            self.unknown.append(file.path)
        elif (other := self.seen.get(file.digest)) is not None:
            self.findings.append(_copied(file.path, other))
        else:
            self.seen[file.digest] = file.path
            if activity.num_operations:
                self.of_gpus.append((file, kernels))
            elif activity.num_calls and (tool is None or tool.name == _PROFILER):
                self.of_hosts.append((file, kernels))
            elif tool is not None:
                self.of_tool.setdefault(tool, []).append(file)


def read_events(
    paths: Sequence[Path], sizes: Mapping[str, int] | None, listener: Listener
) -> Trace | GpuTrace:
    """Returns what the event files of a run hold.

    Raises InputError where all are bad, of no tool that is known, of two, or of two runs.
    """
    files = _sorted(paths, listener)
    # All were bad: the first one's own reason says more than that nothing is left.
    if not files.seen and files.findings and not files.unknown:
        read_event_file(paths[0])  # raises what the first of them lacks
    if files.of_gpus and not files.of_tool:
        return _of_gpus(files)
    if files.of_hosts and not files.of_tool:
        file, kernels = files.of_hosts[0]
        require_activity(kernels.columns, file.path)
    if not files.of_tool:
        raise InputError(
            "{paths} are of no tool that is known; known are {tools}, Paddle's worker logs, "
            "StragglerAnalysis tables and serried's own recordings",
            paths=listed(paths, limit=3),
            tools=listed(tool.name for tool in TOOLS),
        )
    return _of_pipeline(files, sizes, listener)


def _sorted(paths: Sequence[Path], listener: Listener) -> _Sorted:
    files = _Sorted()
    is_large = len(paths) > 1 and sum(map(size_bytes, paths)) >= LARGE_BYTES
    for number, path in enumerate(paths, 1):
        if is_large:
            where = {"path": path, "number": number, "count": len(paths)}
            listener(said("reading {path}, {number} of {count}", **where))
        try:
            files.add(*_read(path))
        except InputError as error:
            # One bad file among many is left out and named; the only one is refused.
            if len(paths) == 1:
                raise
            files.findings.append(_unusable(error))
    return files


def _read(path: Path) -> tuple[TraceEventFile, KernelReader]:
    kernels = KernelReader(path)

    def is_wanted(event: Event) -> bool:
        kernels.take(event)
        if marks_pipeline(event):
            kernels.close()
        return any(tool.wants(event) for tool in TOOLS)

    return read_event_file(path, is_wanted), kernels


def _of_gpus(files: _Sorted) -> GpuTrace:
    profiles = [file for file, _ in files.of_gpus]
    numbers = [
        rank_said(file, named)
        for file, named in zip(profiles, ranks_by_name(profiles), strict=True)
    ]
    ranks = [
        kernels.rank(file, number)
        for (file, kernels), number in zip(files.of_gpus, numbers, strict=True)
    ]
    beyond = [_beyond(file, kernels) for file, kernels in files.of_gpus if kernels.num_beyond]
    return gpu_trace(_PROFILER, ranks).with_warnings(
        *(_cut_off(file) for file in profiles if file.cut_off),
        *beyond,
        *(_without_gpus(file) for file, _ in files.of_hosts),
        *map(_foreign, files.unknown),
        *files.findings,
    )


def _of_pipeline(
    sorted_files: _Sorted, sizes: Mapping[str, int] | None, listener: Listener
) -> Trace:
    by_tool = sorted_files.of_tool
    names = [f"{tool.name} ({files[0].path.name})" for tool, files in by_tool.items()]
    names += [f"{_PROFILER} ({file.path.name})" for file, _ in sorted_files.of_gpus[:1]]
    if len(names) > 1:
        raise InputError(
            "files of {tools} are mixed; give those of one run",
            tools=listed(names),
        )
    ((tool, files),) = by_tool.items()
    if (count := sum(len(file.events) for file in files)) >= LARGE_SPANS:
        listener(said("sorting {count:,} events of {tool} by rank", count=count, tool=tool.name))
    trace = tool.read(files, sizes)
    return trace.with_warnings(
        *(_cut_off(file) for file in files if file.cut_off),
        *(_without_gpus(file) for file, _ in sorted_files.of_hosts),
        *map(_foreign, sorted_files.unknown),
        *sorted_files.findings,
    )


def _copied(path: Path, other: Path) -> Finding:
    evidence = said("{path} holds the same as {other}; counted once", path=path, other=other)
    return Finding("copied", (evidence,))


def _unusable(error: InputError) -> Finding:
    """Says why a file beside others is left out."""
    return Finding("torn", (said(error.template, **error.values), said("it is left out")))


def _cut_off(file: TraceEventFile) -> Finding:
    evidence = said(
        "{path} ends in the middle; its first {count} events are kept",
        path=file.path,
        count=file.num_events,
    )
    return Finding("torn", (evidence,))


def _beyond(file: TraceEventFile, kernels: KernelReader) -> Finding:
    evidence = said(
        "{count} events of {path} are at times that no clock shows; left out",
        count=kernels.num_beyond,
        path=file.path,
    )
    return Finding("torn", (evidence,))


def _without_gpus(file: TraceEventFile) -> Finding:
    evidence = said("{path} holds no kernel and no copy of a GPU; left out", path=file.path)
    return Finding("foreign", (evidence,))


def _foreign(path: Path) -> Finding:
    return Finding("foreign", (said("{path} is of no tool that is known; left out", path=path),))
