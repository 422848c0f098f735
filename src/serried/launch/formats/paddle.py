"""Reads and writes arguments of PaddleNLP and PaddleFormers, and PaddleFleetX's YAML.

Names, defaults and what is derived from them: PaddleNLP 2.8.1 and PaddleFormers 1.2.0
trainer/training_args.py. A sharding degree of -1 takes what tensor, sep and pipeline leave
when ``sharding`` names a stage; data parallelism takes the rest. PaddleFleetX hands the
degrees of its section ``Distributed`` to fleet as they are, in fleet's own order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from serried.errors import InputError, listed
from serried.finding import said
from serried.frameworks.framework import divisors
from serried.frameworks.paddle import EXPERT_ORDERS, FLEET, ORDERS, PIPELINE_PRIORITY
from serried.launch.facts.config import Reading
from serried.launch.facts.emit import LaunchJob, yaml_lines
from serried.launch.facts.flags import Meaning, sizes
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys, take
from serried.mesh.sizes import Sizes

OLDER = sizes(
    tensor_parallel_degree="tp",
    pipeline_parallel_degree="pp",
    sharding_parallel_degree="sharding_degree",
    sep_parallel_degree="sep_degree",
    context_parallel_degree="cp",
    expert_parallel_degree="ep",
)
NEWER = sizes(
    tensor_model_parallel_size="tp",
    pipeline_model_parallel_size="pp",
    sharding_parallel_size="sharding_degree",
    sep_parallel_size="sep_degree",
    context_parallel_size="cp",
    expert_model_parallel_size="ep",
)
OTHERS = {
    "hybrid-parallel-topo-order": Meaning("_topo_order", "text"),
    "use-expert-parallel": Meaning("_use_expert_parallel", "yes"),
    "reorder-pipeline-priority": Meaning("_reorder", "yes"),
    "sharding": Meaning("_sharding", "text"),
    "num-hidden-layers": Meaning("layers"),
}
MEANINGS = {**OLDER, **NEWER, **OTHERS}
MARKS = frozenset(OLDER) | {
    "sharding-parallel-size",
    "sep-parallel-size",
    "hybrid-parallel-topo-order",
}
"""Options that only Paddle's trainers have; PaddleFormers shares other names with Megatron."""

TRAINER = frozenset(("sharding", "stage", "fine-tuning", "train-dataset-path", "do-train"))
"""Keys that stand beside them in a PaddleFormers file."""

FLEETX = {
    "dp-degree": Meaning("dp_degree"),
    "mp-degree": Meaning("tp"),
    "pp-degree": Meaning("pp"),
    "sharding.sharding-degree": Meaning("sharding_degree"),
    "sharding.sharding-stage": Meaning("zero"),
}
"""Keys of PaddleFleetX's section ``Distributed``."""

STAGES = {"stage1": 1, "stage2": 2, "stage3": 3}


def is_one(keys: Keys) -> bool:
    """Tells whether a JSON or YAML file holds arguments of a Paddle trainer."""
    names = {key.replace("_", "-") for key in keys.entries}
    return bool(names & MARKS) or bool(names & set(NEWER) and names & TRAINER)


def is_fleetx(keys: Keys) -> bool:
    """Tells whether a YAML file is PaddleFleetX's."""
    return keys.has("Distributed.mp_degree") or keys.has("Distributed.dp_degree")


def read_fleetx(keys: Keys) -> Reading:
    """Returns what PaddleFleetX's YAML says."""
    facts = Facts(keys.file)
    take(facts, keys, FLEETX, section="Distributed")
    take(facts, keys, {"num-layers": Meaning("layers")}, section="Model")
    product = {"dp_degree": None, "tp": 1, "pp": 1, "sharding_degree": 1}
    return Reading("PaddleFleetX YAML", facts, "paddle", product=product)


def read(keys: Keys, name: str) -> Reading:
    """Returns what the file says; ``name`` is JSON or YAML."""
    facts = Facts(keys.file)
    take(facts, keys, MEANINGS)
    names = {key.replace("_", "-") for key in keys.entries}
    return settle(facts, f"Paddle {name}", is_newer=bool(names & set(NEWER)))


@dataclass(frozen=True)
class Trainer:
    """Holds the arguments that decide the order of axes and what is derived."""

    file: str
    order: str
    shards: bool
    uses_experts: bool
    reorders: bool


def settle(facts: Facts, name: str, *, is_newer: bool) -> Reading:
    """Returns the reading of a trainer's arguments; a size of -1 or 0 is one not set."""
    for axis in ("tp", "pp", "cp", "ep", "sep_degree", "sharding_degree"):
        number = facts.number(axis)
        if number is not None and number < 1:
            facts.drop(axis)
    sharding = facts.drop("_sharding")
    words = str(sharding.value).split() if sharding else []
    if sharding and words and words[0] in STAGES:
        facts.claim("zero", replace(sharding, value=STAGES[words[0]]))
    # Where 'sharding' is left out, PaddleFormers shards all the same, and PaddleNLP does not.
    shards = bool(words) or (sharding is None and is_newer)
    order = facts.drop("_topo_order")
    trainer = Trainer(
        file=facts.file,
        order=str(order.value) if order else "sharding_first" if is_newer else "",
        shards=shards,
        uses_experts=_is_on(facts, "_use_expert_parallel"),
        reorders=_is_on(facts, "_reorder"),
    )
    if not trainer.order:
        _ask_for_order(facts, shards=shards)
    return Reading(name, facts, "paddle", derive=partial(derive, trainer))


def _is_on(facts: Facts, name: str) -> bool:
    found = facts.drop(name)
    return found is not None and str(found.value).lower() in ("true", "1", "yes")


def _ask_for_order(facts: Facts, *, shards: bool) -> None:
    """Asks for the order where it matters: PaddleNLP changed its default between versions."""
    has_sharding = shards or (facts.number("sharding_degree") or 1) > 1
    # The two orders differ only in which of pipeline and sharding is outside the other.
    if facts.says("pp") and facts.number("pp") != 1 and has_sharding:
        facts.lack(
            "order",
            said(
                "{file} gives no hybrid_parallel_topo_order, for which PaddleNLP takes pp_first "
                "until 2.8 and sharding_first since",
                file=facts.file,
            ),
            example="--order sharding_first",
        )


def derive(trainer: Trainer, given: Sizes) -> Sizes:
    """Returns the degrees and the order of axes that the trainer hands to fleet.

    Raises InputError where the sizes do not divide the world.
    """
    sep = int(given.options.get("sep_degree", "1"))
    taken = given.tp * given.pp * sep
    if given.world_size % taken:
        raise InputError(
            "tp={tp} x pp={pp} x sep={sep} does not divide {world} ranks; products that do: {fits}",
            tp=given.tp,
            pp=given.pp,
            sep=sep,
            world=given.world_size,
            fits=listed(divisors(given.world_size), limit=24),
        )
    left = given.world_size // taken
    sharding = int(given.options.get("sharding_degree", "0"))
    sharding = sharding or (left if trainer.shards else 1)
    # A sharding degree that does not divide what is left is not refused here: the product of these
    # degrees then misses the world, and the layout says so.
    degrees = {
        "dp_degree": max(1, left // sharding),
        "pp_degree": given.pp,
        "mp_degree": given.tp,
        "sharding_degree": sharding,
        "sep_degree": sep,
    }
    has_experts = given.ep > 1
    if given.cp > 1 or has_experts:
        degrees["cp_degree"] = given.cp
    if has_experts:
        degrees["ep_degree"] = given.ep
        # Pipeline, moe_sharding and experts make a grid of their own over the whole world.
        degrees["moe_sharding_degree"] = max(1, given.world_size // (given.pp * given.ep))
    order = given.order or trainer.order or "pp_first"
    axes = order.split(",")
    if order in ORDERS:
        axes = _axes(trainer, ORDERS[order].split(","), has_experts=has_experts)
    options: Mapping[str, str] = {key: str(value) for key, value in degrees.items()}
    return Sizes(
        given.world_size,
        zero=given.zero,
        order=",".join(axes),
        options={**given.options, **options},
    )


def _axes(trainer: Trainer, axes: list[str], *, has_experts: bool) -> list[str]:
    """Returns the axes, outermost first, after what expert parallelism changes of them."""
    if trainer.reorders and has_experts:
        return PIPELINE_PRIORITY.split(",")
    # With ep of one, use_expert_parallel only moves data parallelism inside, next to mp.
    if not has_experts:
        if not trainer.uses_experts:
            return axes
        inside = [*axes[1:-1], "dp", "mp"]
        return ["sharding", "pp", "sep", "dp", "mp"] if trainer.reorders else inside
    # dp, sharding, pp, sep, mp becomes dp, moe_sharding, cp, sharding, pp, sep, ep, mp.
    axes.insert(-1, "ep")
    place = axes.index("sharding")
    return [*axes[:place], "moe_sharding", "cp", *axes[place:]]


# ----------------------------------------------------------------------- writing

KEYS = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "sharding": "sharding_parallel_size",
    "sep": "sep_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
}


def write(job: LaunchJob) -> str:
    """Returns arguments of PaddleFormers, whose trainer derives the rest from them."""
    found = job.layout.sizes
    if job.layout.order == FLEET:
        return _fleetx(job)
    settings = _settings(job.layout.order, has_experts=found["ep"] > 1)
    # A sharding of one is written as well: left out, it would be all that tp, pp and sep leave.
    tree: dict[str, object] = {
        key: found[name]
        for name, key in KEYS.items()
        if found[name] > 1 or name in ("tp", "pp", "sharding")
    }
    tree |= settings
    if found["sharding"] > 1:
        tree["sharding"] = "stage1"
    if found["ep"] > 1:
        tree["use_expert_parallel"] = True
    head = [job.mark, "# Layout only: add the model, its data and its training arguments."]
    return "\n".join([*head, *yaml_lines(tree), ""])


def _fleetx(job: LaunchJob) -> str:
    """Returns PaddleFleetX's YAML, for a layout in fleet's own order."""
    found = job.layout.sizes
    for axis in ("sep", "cp", "ep"):
        if found[axis] > 1:
            raise InputError(
                "order '{order}' has a place in PaddleFleetX's YAML only, which has none for "
                "{axis}={size}; an order of Paddle's trainers has: {known}",
                order=FLEET,
                axis=axis,
                size=found[axis],
                known="; ".join(ORDERS.values()),
            )
    tree: dict[str, object] = {
        "dp_degree": found["dp"],
        "mp_degree": found["tp"],
        "pp_degree": found["pp"],
        "sharding": {"sharding_degree": found["sharding"]},
    }
    head = [job.mark, "# Layout only: add the model, its data and the other sections."]
    return "\n".join([*head, *yaml_lines({"Distributed": tree}), ""])


def _settings(order: str, *, has_experts: bool) -> dict[str, object]:
    """Returns what the trainer calls an order; raises InputError for one it has no name for."""
    known: dict[str, dict[str, object]] = {}
    # Beside use_expert_parallel the name of an order stands for another one ('_axes').
    for name, axes in (EXPERT_ORDERS if has_experts else ORDERS).items():
        known[axes] = {"hybrid_parallel_topo_order": name}
        if not has_experts:
            inside = ",".join([*axes.split(",")[1:-1], "dp", "mp"])
            known[inside] = {"hybrid_parallel_topo_order": name, "use_expert_parallel": True}
    if has_experts:
        known[PIPELINE_PRIORITY] = {"reorder_pipeline_priority": True}
    if order not in known:
        raise InputError(
            "order '{order}' has no name in Paddle's trainers; those that have: {known}",
            order=order,
            known="; ".join(known),
        )
    return known[order]
