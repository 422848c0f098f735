"""Merge clocks: the hosts of a run aligned without holding its spans.

    some steps' messages between hosts ──> a line per host     (align, fit)
    all steps' messages, some at a time ──> how many pair, how many arrived before they left

What aligns is a sample of whole steps, spread over the run from the first to the last; what is
counted is every message.
"""

from __future__ import annotations

import fnmatch
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serried.action import ActionKind, Spans
from serried.finding import Finding, Sentence, said
from serried.limits import PINGS_BYTES
from serried.trace.clocks.align import Crossings, clock_findings, host_clocks, on_line
from serried.trace.clocks.line import ClockLine
from serried.trace.clocks.pings import PATTERN as PINGS
from serried.trace.clocks.pings import read_pings
from serried.trace.clocks.setbacks import Setback, told
from serried.trace.merge.attempts import with_restarts
from serried.trace.merge.files import Folder, Url, names_in_folder, read_text
from serried.trace.merge.part import Part, Steps, no_spans
from serried.trace.merge.run import Engine, SurveyedRun
from serried.trace.merge.survey import COMPUTATIONS, MESSAGES
from serried.trace.model.messages import Alignment, MessageStatistics, measure_messages
from serried.trace.model.trace import Trace

SAMPLED_SPANS = 1_000_000
"""About how many sends and receives align the hosts."""
COUNTED_SPANS = 500_000
"""About how many are paired at once."""


@dataclass(frozen=True, eq=False)
class ClockedPart:
    """Holds a recording with what brings its spans onto the first host's clock."""

    part: Part
    line: ClockLine | None
    first_ns: int
    """The first start of the whole run, on the first host's clock."""

    def blocks(
        self, steps: Steps | None = None, kinds: Sequence[ActionKind] | None = None
    ) -> Iterator[Spans]:
        """Yields the blocks of its part on the first host's clock, each ordered by start."""
        for spans in self.part.blocks(steps, kinds):
            start, end = spans.start_ns, spans.end_ns
            if self.line is not None:
                start, end = on_line(self.line, start), on_line(self.line, end)
            moved = replace(spans, start_ns=start, end_ns=np.maximum(end, start))
            yield moved.where(np.argsort(start, kind="stable")).shifted(-self.first_ns)


@dataclass(frozen=True, eq=False)
class ClockedRun:
    """Holds a run whose hosts are aligned, its spans still unread."""

    trace: Trace
    parts: tuple[ClockedPart, ...]


def clocked(run: SurveyedRun, folders: Sequence[Folder], engine: Engine) -> ClockedRun:
    """Returns ``run`` with every host on the first one's clock, as ``align.aligned`` does."""
    pings = pings_in(folders, run.trace)
    lines, clocks = host_clocks(_sample(run, engine, MESSAGES), pings, run.windows)
    # Messages leave some host untied: the order of computations, read only now, may tie it.
    if len(lines) > 1 and any(line is None for line in lines):
        every = _sample(run, engine, (*MESSAGES, *COMPUTATIONS))
        lines, clocks = host_clocks(every, pings, run.windows)
    unmoved = [ClockedPart(part, lines[part.host], 0) for part in run.parts]
    first_ns = _first_ns(run, lines, unmoved)
    found = (*clock_findings(run.trace, lines, pings), *told(_setbacks(unmoved)))
    trace = run.trace.with_warnings(*found)
    return ClockedRun(
        replace(trace, clocks=clocks, base_ns=run.trace.base_ns + first_ns),
        tuple(replace(part, first_ns=first_ns) for part in unmoved),
    )


def _setbacks(parts: Sequence[ClockedPart]) -> Iterator[Setback]:
    """Yields where a rank's steps go back, once its host's clock is brought onto the first's."""
    for each in parts:
        for step, *moments in each.part.backwards:
            # A clock that was set may be brought right by its line: what still goes back is said.
            at = np.array(moments, dtype=np.int64) + each.part.offset_ns
            before, begun = (at if each.line is None else on_line(each.line, at)).tolist()
            if begun < before:
                yield Setback(each.part.rank, step, before - begun)


def counted_messages(
    run: SurveyedRun, clocked: ClockedRun, engine: Engine
) -> tuple[MessageStatistics, Alignment]:
    """Counts the messages of all steps, and those that were received before they were sent."""
    work = [_Window(clocked, steps) for steps in _step_windows(run)]
    # A run without any message still has clocks to tell of: one window of nothing does it.
    found = list(engine(_count, work)) or [_count(_Window(clocked, None))]
    messages = [each for each, _ in found]
    expected = [each.expected_spans for each in messages]
    known = [each for each in expected if each is not None]
    return (
        MessageStatistics(
            spans=sum(each.spans for each in messages),
            pairs=sum(each.pairs for each in messages),
            lone_sends=sum(each.lone_sends for each in messages),
            lone_receives=sum(each.lone_receives for each in messages),
            expected_spans=sum(known) if len(known) == len(expected) else None,
        ),
        replace(
            found[0][1],
            checked=sum(each.checked for _, each in found),
            causality_violations=sum(each.causality_violations for _, each in found),
        ),
    )


# ----------------------------------------------------------------------- what aligns


def pings_in(folders: Sequence[Folder], trace: Trace) -> Crossings:
    """Returns the pings in all ``folders`` and in those of restarts; a URL's are fetched first."""
    folders = with_restarts(folders)
    with tempfile.TemporaryDirectory() as name:
        # Pings behind a URL are copied, so that one reader does for all. What it says of a copy
        # is brought back to the URL below.
        fetched = {
            Path(name) / str(number): folder
            for number, folder in enumerate(sorted(dict.fromkeys(folders), key=str))
        }
        for place, folder in fetched.items():
            if isinstance(folder, Url):
                _fetch_pings(folder, place)
        here = [folder if isinstance(folder, Path) else place for place, folder in fetched.items()]
        found = read_pings(here, trace)
    return replace(found, findings=tuple(_as_named(each, fetched) for each in found.findings))


def _fetch_pings(url: Url, place: Path) -> None:
    place.mkdir()
    for name in names_in_folder(url):
        if fnmatch.fnmatch(name, PINGS):
            (place / name).write_text(
                read_text(url, name, PINGS_BYTES.most, said("a rank's pings")), encoding="utf-8"
            )


def _as_named(finding: Finding, fetched: Mapping[Path, Folder]) -> Finding:
    """Returns a finding that calls a fetched file what it is called behind its URL."""

    def named(sentence: Sentence) -> Sentence:
        path = sentence.values.get("path")
        folder = fetched.get(path.parent) if isinstance(path, Path) else None
        if folder is None or not isinstance(path, Path):
            return sentence
        return said(sentence.template, **{**sentence.values, "path": f"{folder}/{path.name}"})

    return replace(finding, evidence=tuple(map(named, finding.evidence)))


@dataclass(frozen=True, eq=False)
class _Sampled:
    part: Part
    steps: NDArray[np.int64]
    kinds: tuple[ActionKind, ...]
    host: NDArray[np.int64]


def _sample(run: SurveyedRun, engine: Engine, kinds: tuple[ActionKind, ...]) -> Trace:
    """Returns the run with spans of ``kinds`` of some steps, of messages those between hosts."""
    if len(run.trace.hosts) < 2:
        return run.trace
    # A rank without a recording is on host -1, and so on another than any that has one.
    host = np.full(run.trace.job.world_size, -1, dtype=np.int64)
    for number, each in enumerate(run.trace.hosts):
        host[list(each.ranks)] = number
    steps = _sampled_steps(run, with_computations=len(kinds) > len(MESSAGES))
    work = [_Sampled(part, steps, kinds, host) for part in run.parts]
    return replace(run.trace, spans=Spans.joined([no_spans(), *engine(_sampled_spans, work)]))


def _sampled_steps(run: SurveyedRun, *, with_computations: bool) -> NDArray[np.int64]:
    counts = run.counts
    spans = counts.messages + counts.computations * with_computations
    every = max(1, -(-int(spans.sum()) // SAMPLED_SPANS))
    wanted = max(2, len(counts.step) // every)
    # The first and the last step are always among them: over the whole run a drift shows best.
    places = np.linspace(0, len(counts.step) - 1, min(wanted, len(counts.step)))
    return counts.step[np.unique(np.rint(places).astype(np.int64))]


def _sampled_spans(work: _Sampled) -> Spans:
    found = [no_spans()]
    steps = int(work.steps[0]), int(work.steps[-1])
    for spans in work.part.blocks(steps, work.kinds):
        # Rank 0 stands in where there is no peer, and is masked again below.
        is_known = (spans.peer >= 0) & (spans.peer < len(work.host))
        away = work.host[np.where(is_known, spans.peer, 0)] != work.part.host
        keep = np.isin(spans.step, work.steps)
        keep &= (is_known & away) | np.isin(spans.kind, COMPUTATIONS)
        found.append(spans.where(keep))
    return Spans.joined(found)


def _first_ns(
    run: SurveyedRun, lines: Sequence[ClockLine | None], parts: Sequence[ClockedPart]
) -> int:
    """Returns the first start of all, on the first host's clock."""
    if any(line is not None and line.jumps for line in lines):
        # A clock that was set back may show a later span at an earlier time.
        starts = [spans.start_ns.min() for part in parts for spans in part.blocks() if len(spans)]
        return int(min(starts))
    hosts = {part.host for part in run.parts if part.num_spans}
    firsts = []
    for number in hosts:
        line, first = lines[number], np.array([run.windows[number][0]])
        firsts.append(int((first if line is None else on_line(line, first))[0]))
    return min(firsts)


# ----------------------------------------------------------------------- what is counted


@dataclass(frozen=True, eq=False)
class _Window:
    clocked: ClockedRun
    steps: Steps | None


def _step_windows(run: SurveyedRun) -> Iterator[Steps]:
    """Yields runs of steps, each with so many messages as are paired at once, or one step."""
    counts = run.counts
    number = (np.cumsum(counts.messages) - counts.messages) // COUNTED_SPANS
    for each in np.unique(number[counts.messages > 0]):
        steps = counts.step[number == each]
        yield int(steps[0]), int(steps[-1])


def _count(window: _Window) -> tuple[MessageStatistics, Alignment]:
    parts = [] if window.steps is None else window.clocked.parts
    found = [spans for part in parts for spans in part.blocks(window.steps, MESSAGES)]
    spans = Spans.joined([no_spans(), *found])
    trace = replace(window.clocked.trace, spans=spans)
    return measure_messages(trace, np.unique(spans.step))
