"""Which of replicas and stages lie nearer to one another: the order that ranks are numbered in.

    tp-cp-ep-dp-pp    dp within, pp without    rank 0 1 | 2 3      0-2 and 1-3 pass messages
    tp-cp-ep-pp-dp    pp within, dp without                        0-1 and 2-3 pass messages

Megatron writes its fastest axis first, ColossalAI and Paddle their slowest. What lies within a node
goes over its fast links, the other over the network.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from serried import frameworks

Inner = Literal["", "dp", "pp"]
"""Which of the two lies within; "" where nobody says."""
_FASTEST_FIRST = ("tp", "tensor")
_STAGES, _REPLICAS = ("pp", "pipe", "pipeline"), ("dp", "data", "dp_shard")


def inner_axis(order: str) -> Inner:
    """Returns which of stages and replicas an order puts nearer; "" where it names not both.

    >>> inner_axis("tp-cp-ep-dp-pp"), inner_axis("tp-cp-ep-pp-dp"), inner_axis("pp,dp,tp,sp")
    ('dp', 'pp', 'dp')
    """
    axes = [each.strip() for each in re.split("[-,]", order)]
    stage, replica = (
        next((place for place, axis in enumerate(axes) if axis in names), None)
        for names in (_STAGES, _REPLICAS)
    )
    if stage is None or replica is None:
        return ""
    is_first = stage < replica
    return "pp" if is_first == (axes[0] in _FASTEST_FIRST) else "dp"


@cache
def orders_of(framework: str) -> tuple[str, ...]:
    """Returns the orders that a framework lets one choose among, one for each of the two.

    >>> orders_of("megatron"), orders_of("deepspeed")
    (('tp-cp-ep-dp-pp', 'tp-cp-ep-pp-dp'), ())
    """
    found: dict[Inner, str] = {}
    for order in frameworks.find(framework).orders:
        found.setdefault(inner_axis(order), order)
    chosen = tuple(order for inner, order in found.items() if inner)
    return chosen if len(chosen) > 1 else ()
