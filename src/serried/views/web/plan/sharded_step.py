"""A step under ZeRO of the job that is planned: its model's sizes, and what each exchange takes.

priced=plan model=llama3-8b cluster=dgx-h100 …
8.03 G parameters in 32 layers, 16 microbatches; an all_gather of 436 MB takes 1.1 ms
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from serried.plan.model.parameters import model_parameters
from serried.plan.request import PlanRequest
from serried.plan.sharded_step import Moved, ShardedStep
from serried.plan.traffic.transfers import Pricer
from serried.plan.traffic.ways import quickest
from serried.views.web.plan.query import read_plan_request
from serried.views.web.wire.query import Query, Words, read_word


@dataclass(frozen=True)
class PlannedSizes:
    """Holds what the plan of a job says of its model, for a step under ZeRO."""

    asked: PlanRequest

    @property
    def words(self) -> dict[str, str]:
        """The model as the command line takes it."""
        count = model_parameters(self.asked.model)
        experts = {"expert_parameters": str(count.experts)} if count.experts else {}
        return {"parameters": str(count.total), "precision": self.asked.states, **experts}

    @property
    def layers(self) -> int:
        """Layers of the whole model."""
        return self.asked.model.layers

    @property
    def microbatches(self) -> int:
        """Microbatches whose gradients are summed before the optimizer's step."""
        return self.asked.num_microbatches

    def seconds(self, moved: Moved) -> float:
        """Returns what an exchange takes alone on the links of the cluster."""
        degrees = self.asked.degrees
        apart = degrees.tp * (degrees.pp if self.asked.inner == "pp" else 1)
        links = Pricer(self.asked.cluster, None).links(moved.ranks, apart)
        return quickest(moved.collective.replace("-", "_"), float(moved.size_bytes), links)[1]

    def document(self, step: ShardedStep) -> dict[str, Any]:
        """Returns what the page says of it; times are in seconds, an event's null without one."""
        seconds = [self.seconds(each.moved) if each.moved else None for each in step.events]
        return {
            "model": self.asked.model.name,
            "cluster": self.asked.cluster.name,
            "parameters": model_parameters(self.asked.model).total,
            "layers": self.layers,
            "microbatches": self.microbatches,
            "precision": self.asked.states,
            "event_s": seconds,
            "step_s": sum(filter(None, seconds)),
        }


def planned_sizes(query: Query, words: Words) -> PlannedSizes | None:
    """Returns the sizes of the job's plan, None where they are not asked for.

    Raises InputError as ``serried plan`` does.
    """
    if read_word(words, "priced") != "plan":
        return None
    return PlannedSizes(read_plan_request(query, words))
