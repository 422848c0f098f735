"""Reads and writes nanotron's YAML: the section ``parallelism``, and how the optimizer is sharded.

Keys and defaults: nanotron src/nanotron/config/parallelism_config.py. The product of dp, pp,
tp and cp is the number of ranks; nanotron refuses any other.
"""

from __future__ import annotations

from serried.launch.facts.config import Reading
from serried.launch.facts.emit import LaunchJob, yaml_lines
from serried.launch.facts.flags import sizes
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys, take

PARALLELISM = sizes(
    dp="dp", pp="pp", tp="tp", context_parallel_size="cp", expert_parallel_size="ep"
)


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is nanotron's."""
    return keys.has("parallelism.dp", "parallelism.tp", "parallelism.pp")


def read(keys: Keys) -> Reading:
    """Returns what the file says."""
    facts = Facts(keys.file)
    take(facts, keys, PARALLELISM, section="parallelism")
    layers = sizes(num_hidden_layers="layers")
    take(facts, keys, layers, section="model.model_config")
    take(facts, keys, sizes(zero_stage="zero"), section="optimizer")
    product: dict[str, int | None] = {"dp": None, "pp": None, "tp": None, "cp": 1}
    experts = facts.number("ep") or 1
    if experts > 1 and not facts.says("cp"):
        # Only 0.4, which has no context parallelism, can lay out experts (ep is a factor there).
        return Reading("nanotron YAML", facts, "nanotron", "0.4", {**product, "ep": 1})
    return Reading("nanotron YAML", facts, "nanotron", product=product)


def tell_nodes(reading: Reading) -> None:
    """Says how many ranks a node has, as a launcher told: main groups them, eight by default."""
    found = reading.facts.settled().get("gpus_per_node")
    is_main = reading.framework == "nanotron" and reading.version != "0.4"
    if is_main and found and found.value != 8:
        reading.facts.claim("LOCAL_WORLD_SIZE", found)


def write(job: LaunchJob) -> str:
    """Returns the section ``parallelism`` of a job; nanotron wants all degrees spelled out."""
    # Experts are a factor of the world in releases (0.4), and none in main.
    known = job.sizes.tp * job.sizes.pp * job.sizes.cp * (job.sizes.ep if _is_old(job) else 1)
    degrees = {
        "dp": job.sizes.dp or max(1, job.sizes.world_size // known),
        "pp": job.sizes.pp,
        "tp": job.sizes.tp,
        "pp_engine": "1f1b",
        "tp_mode": "REDUCE_SCATTER",
    }
    if not _is_old(job):
        degrees["context_parallel_size"] = job.sizes.cp
    degrees["expert_parallel_size"] = job.sizes.ep
    head = [job.mark, "# Layout only: add the model, its data and the other sections."]
    return "\n".join([*head, *yaml_lines({"parallelism": degrees}), ""])


def _is_old(job: LaunchJob) -> bool:
    return job.version.startswith("0.")
