"""What the plan of the job in view runs over a group, so that the player shows it as it is planned.

priced=plan model=llama3-70b cluster=dgx-h100 … kind=tp rank=0
all-reduce of 128 MiB over the network of dgx-h100, 1,280 times a step
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from serried.mesh import Groups
from serried.plan.request import PlanRequest
from serried.plan.traffic.flows import kind_of_transfer
from serried.plan.traffic.transfers import Transfer, step_transfers
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.query import Query, Words, read_word

_NAMES = {"sendrecv": "send-receive"}
"""Collectives that the player knows by another name."""


@dataclass(frozen=True)
class PlannedUse:
    """Holds what a planned step runs over one group, and on which network."""

    asked: PlanRequest
    transfers: tuple[Transfer, ...]

    def told(self, name: str) -> dict[str, str]:
        """Returns the words of a question that the plan knows: collective, bytes, network.

        The bytes are those of the collective ``name`` where the plan runs it, else of the first
        that it runs.
        """
        network = self.asked.cluster.network
        words = {"network": network} if network else {}
        if not self.transfers:
            return words
        names = [collective_name(each) for each in self.transfers]
        at = names.index(name) if name in names else 0
        return words | {"name": names[at], "bytes": str(round(self.transfers[at].size_bytes))}

    def document(self) -> dict[str, Any]:
        """Returns what the page says of it; times are in seconds."""
        uses = [
            {
                "collective": collective_name(each),
                "bytes": each.size_bytes,
                "times": each.times,
                "step_s": each.step_seconds,
            }
            for each in self.transfers
        ]
        return {"model": self.asked.model.name, "cluster": self.asked.cluster.name, "uses": uses}


def collective_name(transfer: Transfer) -> str:
    """Returns what the player calls a transfer's collective."""
    return _NAMES.get(transfer.collective, transfer.collective.replace("_", "-"))


def planned_use(query: Query, words: Words, kind: str) -> PlannedUse | None:
    """Returns what the plan runs over groups of a kind, None where no plan is asked for.

    Raises InputError as ``serried plan`` does.
    """
    if read_word(words, "priced") != "plan":
        return None
    asked = read_plan_request(query, words)
    groups = query.layout.groups(kind)
    found = []
    for each in step_transfers(asked):
        own = kind_of_transfer(each, query.layout)
        if own and _same(groups, query.layout.groups(own)):
            found.append(each)
    return PlannedUse(asked, tuple(found))


def _same(one: Groups, other: Groups) -> bool:
    return np.array_equal(one.members, other.members) and np.array_equal(one.bounds, other.bounds)
