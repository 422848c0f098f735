"""Reads options of OpenRLHF, whose trainers are DeepSpeed's with a mesh of their own.

Names and defaults: OpenRLHF 0.9 openrlhf/cli/train_ppo_ray.py (``--ds.zero_stage``), and 0.8
before it (``--zero_stage``). The mesh: openrlhf/utils/deepspeed/deepspeed.py, setup_distributed:
dp, sp and tp, slowest first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from serried.launch.facts.config import Reading
from serried.launch.facts.device_mesh import laid_over
from serried.launch.facts.emit import LaunchJob, torchrun
from serried.launch.facts.flags import Flag, Meaning, take
from serried.launch.facts.found import Facts, Found
from serried.mesh.sizes import Sizes

PROGRAM = re.compile(r"(?:.*[./])?openrlhf[./]cli[./]train_\w+(?:\.py)?")
"""What a command that trains with OpenRLHF starts."""

MEANINGS = {
    "zero-stage": Meaning("zero"),
    "ds.zero-stage": Meaning("zero"),
    "ring-attn-size": Meaning("ring_attn_size"),
    "ds.ring-attn-size": Meaning("ring_attn_size"),
    "ds-tensor-parallel-size": Meaning("tp"),
    "ds.tensor-parallel-size": Meaning("tp"),
    "actor-num-nodes": Meaning("nodes"),
    "actor.num-nodes": Meaning("nodes"),
    "actor-num-gpus-per-node": Meaning("gpus_per_node"),
    "actor.num-gpus-per-node": Meaning("gpus_per_node"),
}
DEFAULTS = {"nodes": 1, "gpus_per_node": 8}


def read_flags(flags: Sequence[Flag], file: str, *, has_ray: bool) -> Reading:
    """Returns what the options say; under Ray they also say where the actor's ranks run."""
    facts = Facts(file)
    take(facts, flags, MEANINGS)
    if not facts.says("zero"):
        facts.claim("zero", Found(2, default_of="OpenRLHF"))
    for name, default in DEFAULTS.items():
        if not has_ray:
            facts.drop(name)
        elif not facts.says(name):
            facts.claim(name, Found(default, default_of="OpenRLHF"))
    for name in ("ring_attn_size", "tp"):
        if facts.number(name) == 1:
            facts.drop(name)
    if facts.says("ring_attn_size") or facts.says("tp"):
        return Reading("OpenRLHF command line", facts, "devicemesh", derive=_mesh)
    return Reading("OpenRLHF command line", facts, "deepspeed")


def _mesh(sizes: Sizes) -> Sizes:
    """Returns the sizes with the mesh that OpenRLHF hands to DeepSpeed."""
    options = dict(sizes.options)
    ring = int(options.pop("ring_attn_size", 1))
    dp = max(1, sizes.world_size // (ring * sizes.tp))
    mesh = {"dp": dp, "sp": ring, "tp": sizes.tp}
    return laid_over(replace(sizes, options=options), [mesh])


# ----------------------------------------------------------------------- writing


def write(job: LaunchJob) -> str:
    """Returns a script that trains with OpenRLHF, under DeepSpeed and the mesh it is handed."""
    ring, tp = job.width("sp"), job.width("tp")
    options = [
        *([f"--zero_stage {job.sizes.zero}"] if job.sizes.zero is not None else []),
        *([f"--ring_attn_size {ring}"] if ring > 1 else []),
        *([f"--ds_tensor_parallel_size {tp}"] if tp > 1 else []),
    ]
    return torchrun(job, "-m openrlhf.cli.train_sft", options)
