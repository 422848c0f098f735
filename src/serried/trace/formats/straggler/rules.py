"""The rules of StragglerAnalysis: which operation of a stage comes after which, and which meet.

    compute   F0 F1 … B0 …       in the order of the first step        gc, then per stage
    forward-send / -recv         one stream each, with its compute     layernorm, embedding,
    backward-send / -recv        one stream each                       reduce-scatter, clip,
    params-all-gather, grads-reduce-scatter   one stream, over dp      optimizer

The profiler wrote sends and receives that never ran (before the first and after the last
compute, and at the two ends of the model); they keep their place in their stream and meet
nobody.

Source: ByteDance-Seed/StragglerAnalysis 8efcd7f, readme.md and analyzer/dependency_model.py,
Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from serried.errors import InputError

FORWARD, BACKWARD = "forward-compute", "backward-compute"
GATHER, SCATTER = "params-all-gather", "grads-reduce-scatter"
SEPARATE = "separate-grads-all-reduce"
LAYERNORM, EMBEDDING = "layernorm-grads-all-reduce", "embedding-grads-all-reduce"
CLIP, OPTIMIZER, COLLECT = "optimizer-clip-main-grad", "optimizer", "gc"
P2P = ("forward-send", "forward-recv", "backward-send", "backward-recv")
_MATCH_S = 5e-5
"""How far the profiler's clocks may disagree on what came first."""


@dataclass(frozen=True)
class Operation:
    """Holds one operation of the first step's first replica."""

    type: str
    seq: int
    stage: int
    start: float
    end: float
    chunk: int
    global_chunk: int

    @property
    def key(self) -> tuple[str, int, int]:
        """What names it in every step and replica."""
        return self.type, self.seq, self.stage


_NEVER = Operation("", 0, 0, -inf, -inf, 0, 0)
Key = tuple[str, int, int]
After = dict[Key, list[Key]]


def rules_of(rows: Sequence[Operation], *, uses_dp: bool) -> tuple[After, list[list[Key]]]:
    """Returns what each operation comes after, and which operations meet."""
    after: After = {row.key: [] for row in rows}
    stages = range(1 + max(row.stage for row in rows))
    partners: dict[tuple[Key, Key], list[Key]] = {}
    meetings: list[list[Key]] = []
    # A table with a separate all-reduce reduced its gradients beside the backwards: a chunk then
    # waits for its own last backward (_scatters). Without one all is reduced in the tail.
    overlaps = any(row.type == SEPARATE for row in rows)
    of_stage: dict[int, list[Operation]] = {stage: [] for stage in stages}
    for row in rows:
        of_stage[row.stage].append(row)
    for mine in of_stage.values():
        compute = [row for row in mine if row.type in (FORWARD, BACKWARD)]
        _chain(after, [row.key for row in compute])
        for type_ in P2P:
            stream = [row for row in mine if row.type == type_]
            _chain(after, [row.key for row in stream])
            meetings += _match(after, partners, type_, stream, compute, len(stages))
        _first_backward(after, mine, compute)
        if uses_dp:
            shared = [row for row in mine if row.type in (GATHER, SCATTER)]
            _chain(after, [row.key for row in shared])
            _gathers(after, shared, compute)
            if overlaps:
                _scatters(after, shared, compute)
        _tail(after, mine, compute, uses_dp=uses_dp, overlaps=overlaps)
    meetings += partners.values()
    # Within one replica each of these stands alone: it meets its likes of the other replicas,
    # which the table adds (_OVER_REPLICAS). Embedding reductions and clips meet over the stages.
    meetings += [[row.key] for row in rows if uses_dp and row.type in (GATHER, SCATTER, SEPARATE)]
    for type_ in (EMBEDDING, CLIP):
        meetings += [keys] if (keys := [row.key for row in rows if row.type == type_]) else []
    return after, meetings


def _chain(after: After, keys: Sequence[Key]) -> None:
    for before, key in pairwise(keys):
        after[key].append(before)


def _match(
    after: After,
    partners: dict[tuple[Key, Key], list[Key]],
    type_: str,
    stream: Sequence[Operation],
    compute: Sequence[Operation],
    num_stages: int,
) -> list[list[Key]]:
    """Ties a stream of sends or receives to its computes; returns those that meet nobody.

    ``partners`` takes the others: the k-th real send of a stage meets the k-th real receive.
    """
    way, what = type_.split("-")
    mine = {row.seq: row for row in compute if row.type == f"{way}-compute"}
    ran = _that_ran(stream, mine.values(), is_receive=what == "recv")
    _require_matched(type_, len(ran), len(mine), stream)
    ran_keys = {row.key for row in ran}
    # With one receive too few the first computation had none; with one send too few, the last.
    skipped = len(mine) - len(ran) if what == "recv" else 0
    up = 1 if type_ in ("forward-send", "backward-recv") else -1
    last_chunk = num_stages * (1 + max(row.chunk for row in compute)) - 1
    alone = [[row.key] for row in stream if row.key not in ran_keys]
    real = 0
    for seq, row in enumerate(ran, skipped):
        target = mine[seq]
        if what == "send":
            after[row.key].append(target.key)
        else:
            after[target.key].append(row.key)
            if seq:
                after[row.key].append(mine[seq - 1].key)
        # The model ends here: nobody sends to its first chunk, nobody receives of its last.
        if not 0 <= target.global_chunk + up <= last_chunk:
            alone.append([row.key])
            continue
        here = (type_, real, row.stage)
        other = "recv" if what == "send" else "send"
        there = (f"{way}-{other}", real, (row.stage + up) % num_stages)
        partners.setdefault((min(here, there), max(here, there)), []).append(row.key)
        real += 1
    return alone


def _that_ran(
    stream: Sequence[Operation], compute: Collection[Operation], *, is_receive: bool
) -> list[Operation]:
    """Returns the messages that were really sent.

    A receive that starts after the last computation did, or a send that ends before the first one
    did, never ran: it keeps its place in the stream, and meets nobody.
    """
    if is_receive:
        last_start = max(row.start for row in compute)
        return [row for row in stream if row.start <= last_start + _MATCH_S]
    first_end = min(row.end for row in compute)
    return [row for row in stream if row.end >= first_end - _MATCH_S]


def _require_matched(type_: str, ran: int, computes: int, stream: Sequence[Operation]) -> None:
    if ran and ran not in (computes - 1, computes):
        raise InputError(
            "stage {stage} has {ran} {type} for {computes} computations; a table with one for "
            "each can be replayed",
            stage=stream[0].stage,
            ran=ran,
            type=type_,
            computes=computes,
        )


def _first_backward(after: After, mine: Sequence[Operation], compute: Sequence[Operation]) -> None:
    """Lets the first backward message wait for the second last forward before it."""
    backward = next((at for at, row in enumerate(compute) if row.type == BACKWARD), 0)
    if backward < 2:
        return
    for row in mine:
        # F0 F1 F2 B0: the first backward messages come after F1.
        if row.type in ("backward-recv", "backward-send") and row.seq == 0:
            after[row.key].append(compute[backward - 2].key)


def _gathers(after: After, shared: Sequence[Operation], compute: Sequence[Operation]) -> None:
    """Lets the first forward of each chunk wait for the last gather of its parameters."""
    # Later entries take the place of earlier ones: what stays is the last gather of a chunk
    # and, since computations are gone through from behind, its first forward.
    last = {row.chunk: row for row in sorted(shared, key=lambda r: r.seq) if row.type == GATHER}
    first = {row.chunk: row for row in reversed(compute) if row.type == FORWARD}
    for chunk, row in last.items():
        if chunk in first:
            after[first[chunk].key].append(row.key)


def _scatters(after: After, shared: Sequence[Operation], compute: Sequence[Operation]) -> None:
    """Lets the first reduction of each chunk wait for the chunk's last backward."""
    # From the highest number down, so that the lowest of each chunk is what stays.
    ordered = sorted(shared, key=lambda row: -row.seq)
    first = {row.chunk: row for row in ordered if row.type == SCATTER}
    last: dict[int, Operation] = {}
    for each in compute:
        if each.type == BACKWARD and each.end > last.get(each.chunk, _NEVER).end:
            last[each.chunk] = each
    for chunk, row in first.items():
        if chunk in last:
            after[row.key].append(last[chunk].key)


def _tail(
    after: After,
    mine: Sequence[Operation],
    compute: Sequence[Operation],
    *,
    uses_dp: bool,
    overlaps: bool,
) -> None:
    """Chains what follows the last compute, to the optimizer."""
    by_type: dict[str, list[Key]] = {}
    for row in sorted(mine, key=lambda row: row.seq):
        by_type.setdefault(row.type, []).append(row.key)
    scatters = by_type.get(SCATTER, [])
    collect = by_type.get(COLLECT, [])
    if collect:
        after[collect[0]].append(max(compute, key=lambda row: row.end).key)
    # Where reductions overlap the backwards they are no part of this chain, which then only
    # waits for the last of them.
    reduce = by_type.get(SEPARATE, []) if overlaps else scatters if uses_dp else []
    chain = [
        *(key for type_ in (LAYERNORM, EMBEDDING) for key in by_type.get(type_, [])),
        *reduce,
        *(key for type_ in (CLIP, OPTIMIZER) for key in by_type.get(type_, [])),
    ]
    last = collect[:1] or [max(compute, key=lambda row: row.end).key]
    if not chain:
        return
    after[chain[0]] += [*last, *(scatters[-1:] if uses_dp and overlaps else [])]
    _chain(after, chain)
