"""A priced collective for the terminal: the verdict, where the time goes, then the steps.

all-reduce by ring, 8 ranks on 1 node, 1.00 GiB: 5.12 ms in 14 steps; …
step  moves                                      link      sent     time     so far
   0  0>1: 0+  1>2: 1+  2>3: 2+ … 5 more moves   NVLink 4  1.07 GB  365 us   374 us
"""

from __future__ import annotations

from collections.abc import Iterator

from serried.collective.price import LinkClass, LinkCost
from serried.collective.registry import COLLECTIVES, ENTRIES
from serried.collective.step import CollectiveStep
from serried.plan.collective_price import PricedCollective
from serried.units import duration_text, memory_text, speed_text
from serried.views.collective.document import place_name, steps_within
from serried.views.sentences import phrase, tell
from serried.views.table import Table

MOST_STEPS = 16
"""Steps that are all printed; of more, the first and the last are."""
FIRST_STEPS, LAST_STEPS = 8, 4
MOST_MOVES = 8
"""Moves of a step that are all printed; of more, the first are."""
FIRST_MOVES = 6


def verdict_lines(priced: PricedCollective, *, lang: str = "en") -> list[str]:
    """Returns what the collective takes, and what it waits for."""
    collective = priced.collective
    asked, group = priced.asked, collective.group
    if group.size == 1:
        return [
            tell(
                "{name} of one rank: nothing travels, for it has all that it would be sent",
                lang,
                name=collective.name,
            )
        ]
    values = {
        "name": collective.name,
        "algorithm": collective.algorithm,
        "ranks": group.size,
        "nodes": group.num_nodes,
        "size": memory_text(asked.size_bytes),
        "time": duration_text(priced.time_s * 1e9),
        "steps": len(collective.steps),
        "sent": memory_text(round(priced.most_sent)),
    }
    return [
        tell(
            "{name} by {algorithm}, {ranks:,} ranks on {nodes:,} nodes, {size}: {time} in "
            "{steps:,} steps; a rank sends {sent} at most"
            if group.num_nodes > 1
            else "{name} by {algorithm}, {ranks:,} ranks on one node, {size}: {time} in "
            "{steps:,} steps; a rank sends {sent} at most",
            lang,
            **values,
        ),
        _speeds(priced, lang),
    ]


def _speeds(priced: PricedCollective, lang: str) -> str:
    """Returns the bandwidths, and what the model says that is waited for; a table says no link."""
    if priced.asked.measured is not None:
        busbw, algbw = (speed_text(each or 0.0) for each in (priced.busbw, priced.algbw))
        return tell("busbw {busbw}, algbw {algbw}, as measured", lang, busbw=busbw, algbw=algbw)
    kind = priced.bottleneck
    values = {
        "algbw": speed_text(priced.algbw or 0.0),
        "busbw": speed_text(priced.busbw or 0.0),
        "link": link_text(priced, kind, lang),
        "share": f"{100 * priced.cost.time_by_link()[kind] / priced.cost.time_s:.0f}%",
    }
    return tell(
        "busbw {busbw}, algbw {algbw}; {share} of the time waits for {link}"
        if priced.busbw is not None
        else "algbw {algbw}; {share} of the time waits for {link}",
        lang,
        **values,
    )


def about_lines(priced: PricedCollective, *, lang: str = "en") -> list[str]:
    """Returns what the algorithm does, its formula, and what the price was made of."""
    if priced.collective.group.size == 1:
        return []
    network = priced.cost.network
    lines = [
        phrase(priced.entry.about, lang),
        tell(
            "sent by a rank: {formula}, with n ranks and S bytes",
            lang,
            formula=phrase(priced.entry.formula, lang),
        ),
    ]
    if priced.asked.measured is not None:
        return lines + _measured(priced, lang)
    lines.append(tell("in the node: {link}", lang, link=_link(network.in_node, lang)))
    if priced.collective.group.num_nodes > 1:
        lines.append(tell("across nodes: {link}", lang, link=_link(network.across, lang)))
    if priced.chunks:
        lines.append(tell("chunks: {chunks}", lang, chunks=priced.chunks))
    if network.protocol:
        lines.append(
            tell(
                "network {network}, protocol {protocol}, the quickest here; {launch} to launch",
                lang,
                network=network.name,
                protocol=network.protocol,
                launch=duration_text(network.launch_s * 1e9),
            )
        )
    return lines


def _measured(priced: PricedCollective, lang: str) -> list[str]:
    table = priced.asked.measured
    assert table is not None
    rows = [
        tell(
            "measured: {operation} over {ranks:,} ranks on {nodes:,} nodes, {size}: {time}, busbw "
            "{busbw}"
            if row.nodes > 1
            else "measured: {operation} over {ranks:,} ranks on one node, {size}: {time}, busbw "
            "{busbw}",
            lang,
            operation=row.operation,
            ranks=row.ranks,
            nodes=row.nodes,
            size=memory_text(row.size_bytes),
            time=duration_text(row.time_ns),
            busbw=speed_text(row.busbw_bytes_per_s),
        )
        for row in priced.measured_rows
    ]
    model = tell(
        "the time is the table's ({source}), whatever algorithm ran there; the model says {time}",
        lang,
        source=table.source,
        time=duration_text(priced.cost.time_s * 1e9),
    )
    return [*rows, model]


def _link(link: LinkCost, lang: str) -> str:
    """Returns what a message over a link costs, and how much of its peak is reached."""
    peak = link.peak_bytes_per_s
    return tell(
        "{name}, {latency} + bytes / {speed}, {share} of its peak"
        if peak
        else "{name}, {latency} + bytes / {speed}",
        lang,
        share=f"{100 * link.bytes_per_s / (peak or 1):.0f}%",
        name=phrase(link.name, lang),
        latency=duration_text(link.latency_s * 1e9),
        speed=speed_text(link.bytes_per_s),
    )


def steps_table(
    priced: PricedCollective, steps: tuple[int, int] | None = None, *, lang: str = "en"
) -> Table:
    """Returns a row for each step: its moves, the link it waits for, bytes and times."""
    table = Table()
    table.add_column(tell("step", lang), justify="right")
    table.add_column(tell("moves", lang))
    has_pairs = priced.collective.attention is not None
    if has_pairs:
        table.add_column(tell("pairs", lang), justify="right")
    table.add_column(tell("link", lang))
    for name in (tell("bytes", lang), tell("time", lang), tell("so far", lang)):
        table.add_column(name, justify="right")
    first, end = steps_within(priced, steps)
    until = priced.launch_s + priced.step_s.cumsum()
    for numbers in _shown(first, end, all_of_them=steps is not None):
        if len(numbers) > 1:
            table.add_row("…", tell("… {count:,} more steps", lang, count=len(numbers)))
            continue
        number = numbers[0]
        step = priced.collective.steps[number]
        table.add_row(
            str(number),
            moves_text(priced, step, lang=lang),
            *([pairs_text(priced, step)] if has_pairs else []),
            link_text(priced, LinkClass(priced.cost.link[number]), lang),
            memory_text(round(float(priced.cost.step_bytes[number]))),
            duration_text(float(priced.step_s[number]) * 1e9),
            duration_text(float(until[number]) * 1e9),
        )
    return table


def pairs_text(priced: PricedCollective, step: CollectiveStep) -> str:
    """Returns how many pairs of blocks a rank computes in a step: 2, or the least and the most."""
    if step.work is None:
        return ""
    pairs = step.work.pairs(priced.collective.group.size)
    ends = dict.fromkeys((float(pairs.min()), float(pairs.max())))
    return "-".join(f"{each:g}" for each in ends)


def legend_lines(
    priced: PricedCollective, steps: tuple[int, int] | None = None, *, lang: str = "en"
) -> list[str]:
    """Returns how moves are written, and what is left out."""
    told = tell(
        "0>1: 2+ means that rank 0 sends block 2 to rank 1, which adds it to its own; without + "
        "it keeps what comes; a buffer has {blocks:,} blocks of about {size}",
        lang,
        blocks=priced.collective.num_blocks // priced.collective.num_buffers,
        size=memory_text(round(float(priced.collective.block_bytes(priced.asked.size_bytes)))),
    )
    lines = [told]
    if priced.collective.attention is not None:
        lines.append(
            tell(
                "pairs counts how many blocks of queries meet a block of keys on a rank, the least "
                "and the most of all ranks; one on the diagonal of a causal mask counts as a half",
                lang,
            )
        )
    if steps is None and len(priced.collective.steps) > MOST_STEPS:
        more = tell(
            "of more than {most} steps the first {first} and the last {last} are printed; --steps "
            "FIRST:END prints others",
            lang,
            most=MOST_STEPS,
            first=FIRST_STEPS,
            last=LAST_STEPS,
        )
        lines.append(more)
    return lines


def _shown(first: int, end: int, *, all_of_them: bool) -> Iterator[range]:
    """Yields steps one by one, and as one range those that are left out."""
    if all_of_them or end - first <= MOST_STEPS:
        yield from (range(number, number + 1) for number in range(first, end))
        return
    yield from (range(number, number + 1) for number in range(first, first + FIRST_STEPS))
    yield range(first + FIRST_STEPS, end - LAST_STEPS)
    yield from (range(number, number + 1) for number in range(end - LAST_STEPS, end))


def moves_text(priced: PricedCollective, step: CollectiveStep, *, lang: str = "en") -> str:
    """Returns the moves of a step, the first of them where they are many."""
    if not len(step):
        return tell("no message: ranks compute", lang)
    collective = priced.collective
    shown = len(step) if len(step) <= MOST_MOVES else FIRST_MOVES
    texts = []
    for at in range(shown):
        ends = (place_name(collective, int(each[at])) for each in (step.source, step.target))
        source, target = (phrase(str(each), lang) for each in ends)
        plus = "+" if step.reduces[at] else ""
        blocks = blocks_text(
            int(step.first[at]), int(step.count[at]), step.stride, collective.num_blocks
        )
        texts.append(f"{source}>{target}: {blocks}{plus}")
    text = "  ".join(texts)
    if len(step) == shown:
        return text
    return tell("{moves} … {count:,} more moves", lang, moves=text, count=len(step) - shown)


def blocks_text(first: int, count: int, stride: int, num_blocks: int) -> str:
    """Returns the blocks of a move: 3, 3-6, or the first of them and how many."""
    if count == 1:
        return str(first)
    last = first + (count - 1) * stride
    if last < num_blocks and stride == 1:
        return f"{first}-{last}"
    return f"{first},{(first + stride) % num_blocks}…{last % num_blocks}"


def link_text(priced: PricedCollective, kind: LinkClass, lang: str) -> str:
    """Returns what a kind of link is called in the network at hand."""
    network = priced.cost.network
    named = {LinkClass.IN_NODE: network.in_node.name, LinkClass.ACROSS: network.across.name}
    plain = {LinkClass.IN_NODE: "in node", LinkClass.ACROSS: "across nodes"}
    if priced.asked.measured is not None:
        return phrase(plain.get(kind, ""), lang)
    return phrase(named.get(kind) or plain.get(kind, ""), lang)


def registry_table(*, lang: str = "en") -> Table:
    """Returns a row for each algorithm of each collective that there is."""
    table = Table()
    for name in (
        tell("collective", lang),
        tell("algorithm", lang),
        tell("what it does", lang),
        tell("sent by a rank, steps", lang),
        tell("source", lang),
    ):
        table.add_column(name)
    before = ""
    for entry in sorted(ENTRIES, key=lambda each: _order(each.collective)):
        name = "" if entry.collective == before else entry.collective
        before = entry.collective
        texts = (phrase(text, lang) for text in (entry.about, entry.formula))
        table.add_row(name, entry.name, *texts, entry.source)
    return table


def _order(collective: str) -> int:
    """Returns the place of a collective, so that all its algorithms stand together."""
    return COLLECTIVES.index(collective)
