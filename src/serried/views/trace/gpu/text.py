"""What is measured of GPUs for the terminal: a verdict, then ranks, streams, kernels, copies."""

from __future__ import annotations

from collections.abc import Sequence

from serried.errors import listed
from serried.plan.traffic.reference import TrafficReference
from serried.trace.gpu.activity import GpuTrace, OperationKind
from serried.trace.gpu.analysis import GpuAnalysis, GpuRankFigures
from serried.trace.gpu.critical_path import GpuPath
from serried.trace.gpu.kind import short_name
from serried.trace.gpu.launches import LONG_CALL_NS, LONG_DELAY_NS
from serried.units import bytes_text, duration_text
from serried.views.sentences import phrase, say, tell
from serried.views.table import Table
from serried.views.trace.text import count_text, figures_table, labelled, rows_of
from serried.views.trace.traffic import traffic_table
from serried.views.trace.words import cut, look_into, next_line

RANKS_SHOWN = 4
STREAMS_SHOWN = 2
KERNELS_SHOWN = 5
GROUPS_SHOWN = 2
COPIES_SHOWN = 2
_TOLD = 2
"""What a verdict tells of, the command that comes next not counted."""
_MUCH_IDLE = 0.1
_MUCH_EXPOSED = 0.1
_MOST = 0.5


def verdict_lines(
    found: GpuAnalysis, *, places: Sequence[object] = (), lang: str = "en"
) -> list[str]:
    """Returns what costs most, on which rank, and why, and a command to run next on ``places``.

    They are three lines at most.
    """
    return [*finding_lines(found, lang=lang)[:_TOLD], next_line(look_into, places, lang)]


def finding_lines(found: GpuAnalysis, *, lang: str = "en") -> list[str]:
    """Returns what costs most, on which rank, and why: the worst first, three lines at most."""
    idlest = found.idlest
    exposed = max(found.ranks, key=lambda each: _share(each, each.time.exposed_ns))
    lines = []
    if (late := found.waited_for) is not None:
        lines.append(
            tell(
                "the others wait for {who}: {wait} of {window}; it comes last to {last} of {count}",
                lang,
                who=_who(next(each for each in found.ranks if each.rank == late.rank), lang),
                wait=duration_text(late.waited_for_ns),
                window=duration_text(idlest.time.window_ns),
                last=f"{late.was_last:,}",
                count=count_text(late.meetings, "collective", lang),
            )
        )
    if idlest.time.idle_share >= _MUCH_IDLE:
        lines.append(_idle_line(idlest, lang))
    if _share(exposed, exposed.time.exposed_ns) >= _MUCH_EXPOSED:
        lines.append(_exposed_line(exposed, lang))
    if not lines:
        lines.append(
            tell(
                "GPUs compute: {who} is idle for {share:.1%} of {window}, the most of all",
                lang,
                who=_who(idlest, lang),
                share=idlest.time.idle_share,
                window=duration_text(idlest.time.window_ns),
            )
        )
    return lines


def _idle_line(rank: GpuRankFigures, lang: str) -> str:
    host = rank.host_wait_share
    return tell(
        "the GPU of {who} is idle for {share:.1%} of {window}; {host:.0%} of it for a late launch"
        if host is not None and host >= _MOST
        else "the GPU of {who} is idle for {share:.1%} of {window}",
        lang,
        who=_who(rank, lang),
        share=rank.time.idle_share,
        window=duration_text(rank.time.window_ns),
        host=host,
    )


def _exposed_line(rank: GpuRankFigures, lang: str) -> str:
    return tell(
        "{who} communicates for {share:.1%} of it with no computation beside; {overlap:.1%} of its "
        "messages overlap",
        lang,
        who=_who(rank, lang),
        share=_share(rank, rank.time.exposed_ns),
        overlap=rank.time.overlap or 0.0,
    )


def _who(rank: GpuRankFigures, lang: str) -> str:
    if not rank.host:
        return f"rank {rank.rank}"
    return tell("rank {rank} on {host}", lang, rank=rank.rank, host=rank.host)


def _share(rank: GpuRankFigures, part_ns: int) -> float:
    return part_ns / rank.time.window_ns if rank.time.window_ns else 0.0


def source_line(trace: GpuTrace, found: GpuAnalysis, *, lang: str = "en") -> str:
    """Returns what was read and which of it counts."""
    first = found.ranks[0]
    read = tell(
        "{tool}: {ranks}, {operations} on GPUs",
        lang,
        tool=trace.tool,
        ranks=count_text(len(found.ranks), "rank", lang),
        operations=count_text(sum(each.num_operations for each in found.ranks), "operation", lang),
    )
    if not any(each.num_left_out for each in found.ranks):
        return read
    left = tell("without step {step}, which may be cut off", lang, step=first.last_step)
    return f"{read}; {left}"


def gpu_ranks_table(found: GpuAnalysis, *, lang: str = "en") -> Table:
    """Returns a row per rank, the idlest first."""
    words = ("window", "computing", "communication alone", "copies alone", "idle", "overlap")
    table = figures_table(phrase("rank", lang), *(phrase(word, lang) for word in words))
    for rank in sorted(found.ranks, key=lambda each: -each.time.idle_share)[:RANKS_SHOWN]:
        time = rank.time
        copies = time.not_computing_ns - time.exposed_ns
        table.add_row(
            _who(rank, lang) if rank.host else str(rank.rank),
            duration_text(time.window_ns),
            *(f"{_share(rank, ns):.1%}" for ns in (time.computing_ns, time.exposed_ns, copies)),
            f"{time.idle_share:.1%}",
            "" if time.overlap is None else f"{time.overlap:.1%}",
        )
    _add_more(table, len(found.ranks) - RANKS_SHOWN, lang)
    return table


def streams_table(rank: GpuRankFigures, *, lang: str = "en") -> Table:
    """Returns a row per stream of a rank, the busiest first."""
    words = ("busy", "gaps", "host wait", "kernel wait", "other", "queue, median")
    table = figures_table(
        tell("stream of rank {rank}", lang, rank=rank.rank),
        *(phrase(word, lang) for word in words),
    )
    queues = {(each.device, each.stream): each.length.median for each in rank.queues}
    for stream in rank.streams[:STREAMS_SHOWN]:
        queue = queues.get((stream.device, stream.stream))
        parts = stream.idle_ns, stream.host_wait_ns, stream.kernel_wait_ns, stream.other_ns
        table.add_row(
            str(stream.stream),
            duration_text(stream.busy_ns),
            *map(duration_text, parts),
            "" if queue is None else f"{queue:g}",
        )
    _add_more(table, len(rank.streams) - STREAMS_SHOWN, lang)
    return table


def kernels_table(rank: GpuRankFigures, *, lang: str = "en") -> Table:
    """Returns a row per name of a rank's operations, the longest together first."""
    table = figures_table(
        tell("on rank {rank}", lang, rank=rank.rank),
        *(phrase(word, lang) for word in ("total", "share", "count", "mean")),
    )
    together: dict[str, tuple[int, int]] = {}
    for kernel in rank.names:
        name = short_name(kernel.name)
        total, count = together.get(name, (0, 0))
        together[name] = total + kernel.total_ns, count + kernel.count
    whole = sum(total for total, _ in together.values()) or 1
    rows = sorted(together.items(), key=lambda row: -row[1][0])
    for name, (total, count) in rows[:KERNELS_SHOWN]:
        share = f"{total / whole:.1%}"
        mean = duration_text(total / count)
        table.add_row(cut(name), duration_text(total), share, f"{count:,}", mean)
    _add_more(table, len(rows) - KERNELS_SHOWN, lang)
    return table


def gpu_lines(rank: GpuRankFigures, *, lang: str = "en") -> list[str]:
    """Returns kinds, launches and copies of one rank, a label before each."""
    return [
        *labelled(tell("by kind", lang), _kinds(rank, lang)),
        *labelled(tell("launches", lang), _launches(rank, lang)),
        *labelled(tell("copies", lang), _copies(rank, lang)),
        *labelled(tell("critical path", lang), _path(rank.path, lang)),
    ]


def _kinds(rank: GpuRankFigures, lang: str) -> list[str]:
    busy = sum(each.length_ns for each in rank.kinds) or 1
    told = [f"{_together(each.kinds, lang)} {each.length_ns / busy:.1%}" for each in rank.kinds]
    return rows_of(told, lang)


def _together(kinds: Sequence[OperationKind], lang: str) -> str:
    return " + ".join(phrase(kind.name.lower(), lang) for kind in kinds)


def _launches(rank: GpuRankFigures, lang: str) -> list[str]:
    figures = rank.launches
    if not figures.count:
        return []
    counts = tell(
        "{count:,}; {short:,} shorter than their call, {calls:,} calls above {call_limit}, "
        "{delays:,} delays above {delay_limit}",
        lang,
        count=figures.count,
        short=figures.num_short,
        calls=figures.num_long_calls,
        delays=figures.num_long_delays,
        call_limit=duration_text(LONG_CALL_NS),
        delay_limit=duration_text(LONG_DELAY_NS),
    )
    means = tell(
        "means: a call {call}, the delay after it {delay}, what it launches {run}",
        lang,
        call=duration_text(figures.calls_ns / figures.count),
        delay=duration_text(figures.delays_ns / figures.count),
        run=duration_text(figures.run_ns / figures.count),
    )
    return [counts, means]


def _path(path: GpuPath | None, lang: str) -> list[str]:
    if path is None or not path.length_ns:
        return []
    parts = [
        f"{phrase(part.value, lang)} {ns / path.length_ns:.1%}"
        for part, ns in path.by_part.items()
        if ns
    ]
    told = f"{duration_text(path.length_ns)}: {say(listed(parts), lang)}"
    names = [f"{cut(short_name(name), 34)} {duration_text(ns)}" for name, ns in path.by_name[:2]]
    return [told, str(say(listed(names), lang))]


def _copies(rank: GpuRankFigures, lang: str) -> list[str]:
    parts = []
    for each in sorted(rank.copies, key=lambda each: -each.total_ns):
        size = "" if each.size_bytes is None else f", {bytes_text(each.size_bytes)}"
        rate = "" if each.gb_per_s is None else f", {each.gb_per_s.mean:.3g} GB/s"
        parts.append(f"{each.way} {each.count:,} x, {duration_text(each.total_ns)}{size}{rate}")
    return parts[:COPIES_SHOWN]


def traffic_parts(
    found: GpuAnalysis, rows: Sequence[TrafficReference], *, lang: str = "en"
) -> list[str | Table]:
    """Returns a table of what kinds of groups exchanged, behind an empty line; [] without any."""
    if not rows:
        return []
    has_waits = len(found.ranks) > 1
    return ["", traffic_table(rows, shown=GROUPS_SHOWN, has_waits=has_waits, lang=lang)]


def alignment_lines(found: GpuAnalysis, *, lang: str = "en") -> list[str]:
    """Returns how clocks of several hosts were put onto one; [] where there was nothing to do."""
    alignment = found.alignment
    moved = [clock for clock in alignment.clocks if clock.within_ns is not None]
    if not moved:
        return []
    most = max(moved, key=lambda clock: abs(clock.moved_ns))
    told = tell(
        "{hosts} by {checked:,} collectives; {host} by {moved}, within {within}; {bad:,} violated",
        lang,
        hosts=count_text(len(alignment.clocks), "host", lang),
        checked=alignment.checked,
        host=most.host,
        moved=duration_text(abs(most.moved_ns)),
        within=duration_text(most.within_ns or 0),
        bad=alignment.violations,
    )
    return labelled(tell("clocks", lang), [told])


def _add_more(table: Table, number: int, lang: str) -> None:
    if number > 0:
        table.add_row(tell("{count:,} more", lang, count=number))
