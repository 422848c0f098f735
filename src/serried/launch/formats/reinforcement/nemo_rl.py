"""Reads NeMo-RL's YAML: a cluster, and the policy that is trained on it.

    policy.megatron_cfg.enabled     Megatron-core, with the sizes beside it
    policy.dtensor_cfg.enabled      a DeviceMesh of dp_replicate, dp_shard, cp and tp

Names: NeMo-RL nemo_rl/models/policy/lm_policy.py, examples/configs/grpo_math_1B.yaml. Meshes:
nemo_rl/models/policy/workers/dtensor_policy_worker.py and nemo_rl/models/automodel/setup.py, after
NeMo-Automodel's device_mesh.py. Answers may be written on nodes of their own, which are none of
the policy's: nemo_rl/algorithms/grpo.py, setup.
"""

from __future__ import annotations

from dataclasses import replace

from serried.launch.facts.config import Reading
from serried.launch.facts.device_mesh import laid_over
from serried.launch.facts.emit import ADD_THE_REST, LaunchJob, settings, yaml_lines
from serried.launch.facts.flags import Meaning, sizes
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.keys import Keys, leave_open, take
from serried.launch.formats.megatron import MEANINGS, WRITTEN, complete
from serried.mesh.sizes import Sizes

MEGATRON, DTENSOR = "policy.megatron_cfg", "policy.dtensor_cfg"
CLUSTER = {"num_nodes": Meaning("nodes"), "gpus_per_node": Meaning("gpus_per_node")}
DEGREES = {
    **sizes(tensor_parallel_size="tp", context_parallel_size="cp", expert_parallel_size="_ep"),
    **sizes(dp_replicate_size="dp_replicate_size"),
}
APART = "policy.generation.colocated"


def is_one(keys: Keys) -> bool:
    """Tells whether a YAML file is NeMo-RL's."""
    return keys.has(MEGATRON) or keys.has(DTENSOR) or keys.has("policy", "cluster")


def read(keys: Keys) -> Reading:
    """Returns what the file says of the policy; a base that is not given leaves sizes open."""
    facts = Facts(keys.file)
    take(facts, keys, CLUSTER, section="cluster", name_of=str)
    for name in CLUSTER.values():
        if not facts.says(name.name) and not keys.missing:
            facts.claim(name.name, Found(1, default_of="NeMo-RL"))
    _leave_answers(facts, keys)
    is_megatron = keys.value(f"{MEGATRON}.enabled") is True
    if is_megatron:
        take(facts, keys, MEANINGS, section=MEGATRON)
        complete(facts)
    else:
        take(facts, keys, DEGREES, section=DTENSOR)
    leave_open(facts, keys, ("tp", "pp") if is_megatron else ("tp", "cp"))
    if is_megatron:
        return Reading("NeMo-RL YAML", facts, "megatron")
    if facts.number("dp_replicate_size") == 1:
        facts.drop("dp_replicate_size")
    experts = facts.drop("_ep")
    if experts and experts.value != 1:
        facts.claim("expert_parallel_size", experts)
    return Reading("NeMo-RL YAML", facts, "devicemesh", derive=_meshes)


def _leave_answers(facts: Facts, keys: Keys) -> None:
    """Takes off the nodes, or on one node the GPUs, that only write answers."""
    if keys.value(f"{APART}.enabled") is not False:
        return
    name, key = (
        ("nodes", "num_nodes")
        if (facts.number("nodes") or 1) > 1
        else (
            "gpus_per_node",
            "gpus_per_node",
        )
    )
    apart = keys.value(f"{APART}.resources.{key}")
    whole = facts.settled().get(name)
    if (
        whole
        and isinstance(whole.value, int)
        and isinstance(apart, int)
        and 0 < apart < whole.value
    ):
        facts.drop(name)
        facts.claim(name, replace(whole, value=whole.value - apart))


def _meshes(sizes: Sizes) -> Sizes:
    """Returns the sizes with the policy's meshes: of dense layers, and of experts."""
    options = dict(sizes.options)
    copies = int(options.pop("dp_replicate_size", 1))
    experts = int(options.pop("expert_parallel_size", 1))
    bare = replace(sizes, options=options)
    rest = sizes.world_size // max(1, sizes.cp * sizes.tp)
    dense = {
        "dp_replicate": copies,
        "dp_shard": max(1, rest // copies),
        "cp": sizes.cp,
        "tp": sizes.tp,
    }
    names = {"dp": rest, "cp_tp": sizes.cp * sizes.tp}
    meshes = [dense, names] if copies > 1 else [{"dp": rest, "cp": sizes.cp, "tp": sizes.tp}]
    if experts > 1:
        wide = sizes.world_size // sizes.tp
        meshes.append({"ep_shard": max(1, wide // experts), "ep": experts} | {"tp": sizes.tp})
    return laid_over(bare, meshes)


# ----------------------------------------------------------------------- writing


def write(job: LaunchJob) -> str:
    """Returns YAML of a job that NeMo-RL trains, under Megatron-core or a DeviceMesh."""
    if job.framework == "megatron":
        policy = {"megatron_cfg": {"enabled": True, **settings(job, WRITTEN)}}
    else:
        degrees = {
            "tensor_parallel_size": job.width("tp"),
            "context_parallel_size": job.width("cp"),
            "dp_replicate_size": job.width("dp_replicate"),
            "expert_parallel_size": job.width("ep"),
        }
        policy = {"dtensor_cfg": {"enabled": True, **degrees}}
    tree: dict[str, object] = {
        "policy": policy,
        "cluster": {"num_nodes": job.num_nodes, "gpus_per_node": job.ranks_per_node},
    }
    return "\n".join([job.mark, ADD_THE_REST, *yaml_lines(tree), ""])
