"""The factor that makes the speeds of collectives comparable with a link's own.

A collective of S bytes over n ranks that takes t has algbw = S / t and busbw = algbw x factor:

    operation              S                          factor
    all_reduce             the buffer                 2 (n - 1) / n
    all_gather             received in all            (n - 1) / n
    reduce_scatter         sent in all                (n - 1) / n
    all_to_all             one rank's whole buffer    (n - 1) / n
    broadcast, reduce      the buffer                 1
    sendrecv               one message                1

Source: nccl-tests, doc/PERFORMANCE.md.
"""

from __future__ import annotations


def bus_factor(operation: str, ranks: int) -> float:
    """Returns busbw / algbw of ``operation`` over ``ranks`` ranks.

    >>> [bus_factor(name, 4) for name in ("all_reduce", "all_gather", "broadcast", "sendrecv")]
    [1.5, 0.75, 1.0, 1.0]
    """
    share = (ranks - 1) / ranks
    ones = dict.fromkeys(("broadcast", "reduce", "sendrecv"), 1.0)
    return {"all_reduce": 2 * share, **ones}.get(operation, share)
