"""What offloading adds to a layer and to the optimizer's step, with its numbers.

Formulas are those of ``plan.time.offloaded``.
"""

from __future__ import annotations

from serried.finding import said
from serried.plan.time.offloaded import STEP_BYTES, STEP_SHARE, moved_bytes
from serried.views.plan.explain_layer import Explained
from serried.views.plan.formula import ShownTerm, excess, number, seconds, size
from serried.views.plan.timed_plan import TimedPlan, one
from serried.views.plan.words import time_word


def layer_offload(job: TimedPlan) -> Explained:
    """Returns what goes to the host and comes back beside a layer, longer than it computes."""
    sent = size(one(moved_bytes(job.jobs, job.times.layer.weights))) / job.host
    layer = job.times.layer
    ahead = one(layer.forward) - one(layer.waited)
    behind = one(layer.total) - one(layer.parts["offload"]) - ahead
    numbers = excess(sent, seconds(ahead)) + excess(sent, seconds(behind))
    what = said("{part}, one layer", part=time_word("offload"))
    return Explained(what, said("max(S/H - forward, 0) + max(S/H - backward, 0)"), numbers)


def host_step(job: TimedPlan, updated: ShownTerm) -> Explained:
    """Returns the optimizer's step on the host: gradients out, Adam, weights back."""
    layers = job.value("layers") + job.value("mtp_layers")
    microbatch = number(0.9) * seconds(one(job.times.layer.total) * layers / job.value("pp"))
    weights = number(updated.value)
    out = weights * job.term("reduced_bytes") / job.host
    step = weights * number(STEP_BYTES) / (number(STEP_SHARE) * job.host_memory)
    back = weights * job.term("gathered_bytes") / job.host
    text = said("max(G W/H - 0.9 microbatch, 0) + 28 W / (0.43 host memory) + P W/H")
    return Explained(time_word("optimizer"), text, excess(out, microbatch) + step + back)
