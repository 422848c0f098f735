"""What starts a serried command on a cluster: a torchrun line, a Slurm script, a Kubernetes Job.

    torchrun   one line, the same on every node; MASTER_ADDR names the first
    slurm      an sbatch script: srun starts that line once on every node
    k8s        an Indexed Job and a headless Service, which need no operator; pod 0's name is
               where ranks meet

Every word of the user's command stands quoted, so that it arrives as it was typed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

from serried.errors import InputError, listed

PORT = 29500


@dataclass(frozen=True)
class ClusterJob:
    """Holds a serried command, its arguments, and how many ranks start where."""

    words: tuple[str, ...]
    """The command and its arguments, such as ``("train", "--tp", "2")``."""
    num_nodes: int
    ranks_per_node: int
    image: str | None = None
    """The container image, for Kubernetes."""

    @property
    def name(self) -> str:
        """What the job is called."""
        return f"serried-{self.words[0]}"


def torchrun(job: ClusterJob) -> str:
    """Returns the line that each node runs.

    >>> print(torchrun(ClusterJob(("train", "--data", "my text"), 1, 8)), end="")
    torchrun --standalone --nproc-per-node=8 --no-python serried train --data 'my text'
    """
    if job.num_nodes == 1:
        return _line("--standalone", job) + "\n"
    meet = f'--rdzv-backend=c10d --rdzv-id={job.name} --rdzv-endpoint="$MASTER_ADDR:{PORT}"'
    start = f"# On each of {job.num_nodes} nodes, MASTER_ADDR being the first one's address:\n"
    return f"{start}{_line(f'--nnodes={job.num_nodes} {meet}', job)}\n"


def slurm(job: ClusterJob) -> str:
    """Returns a script for sbatch."""
    meet = '--rdzv-backend=c10d --rdzv-id="$SLURM_JOB_ID" --rdzv-endpoint="$MASTER_ADDR:'
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={job.name}",
        f"#SBATCH --nodes={job.num_nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={job.ranks_per_node}",
        "set -eu",
        'MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        "srun " + _line(f'--nnodes={job.num_nodes} {meet}{PORT}"', job),
    ]
    return "\n".join(lines) + "\n"


def k8s(job: ClusterJob) -> str:
    """Returns the manifest for ``kubectl apply``; raises InputError without an image."""
    if job.image is None:
        raise InputError("--emit k8s needs the container image that has serried: --image NAME:TAG")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": job.name},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,  # ranks meet before any pod is ready
            "selector": {"job-name": job.name},
            "ports": [{"name": "rendezvous", "port": PORT}],
        },
    }
    pods = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": job.name},
        "spec": {
            "completionMode": "Indexed",
            "completions": job.num_nodes,
            "parallelism": job.num_nodes,
            "backoffLimit": 0,
            "template": {"spec": _pod(job)},
        },
    }
    import yaml

    text: str = yaml.safe_dump_all([service, pods], sort_keys=False, allow_unicode=True)
    return text


def _pod(job: ClusterJob) -> dict[str, object]:
    start = [
        "torchrun",
        f"--nnodes={job.num_nodes}",
        f"--nproc-per-node={job.ranks_per_node}",
        "--node-rank=$(JOB_COMPLETION_INDEX)",
        f"--master-addr={job.name}-0.{job.name}",
        f"--master-port={PORT}",
        "--no-python",
        "serried",
    ]
    container = {
        "name": "ranks",
        "image": job.image,
        # Kubernetes puts variables where it reads $(NAME); $$( keeps a user's own.
        "command": [*start, *(word.replace("$(", "$$(") for word in job.words)],
        "resources": {"limits": {"nvidia.com/gpu": job.ranks_per_node}},
        # A path of the pod, which nothing opens here.
        "volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}],  # nosec B108
    }
    return {
        "subdomain": job.name,
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}],
    }


def _line(meet: str, job: ClusterJob) -> str:
    command = shlex.join(("serried", *job.words))
    return f"torchrun {meet} --nproc-per-node={job.ranks_per_node} --no-python {command}"


TARGETS: dict[str, Callable[[ClusterJob], str]] = {"torchrun": torchrun, "slurm": slurm, "k8s": k8s}
"""What can be written, by the name that ``--emit`` takes."""


def written(target: str, job: ClusterJob) -> str:
    """Returns what starts ``job`` under ``target``; raises InputError for an unknown target."""
    if target not in TARGETS:
        raise InputError(
            "--emit writes for {known}; it got '{target}'", known=listed(TARGETS), target=target
        )
    return TARGETS[target](job)
