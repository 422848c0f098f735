"""What starts a command on a cluster: read back by bash, by a YAML reader, word for word."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from serried.errors import InputError
from serried.views.runs.launch import ClusterJob, k8s, slurm, torchrun, written

WORDS = ("train", "--tp", "4", "--data", "my $(rm -rf) 'text'", "--set", 'a="b c"')
JOB = ClusterJob(WORDS, num_nodes=2, ranks_per_node=8, image="registry/serried:1")
STUBS = """
scontrol() { printf 'node7\\nnode8\\n'; }
srun() { "$@"; }
torchrun() { printf '%s\\n' "$@"; }
SLURM_JOB_NODELIST='node[7-8]' SLURM_JOB_ID=12 MASTER_ADDR=node7
"""


def run_by_bash(script: str) -> list[str]:
    """Returns the words that torchrun gets when bash runs ``script``, with stubs for Slurm."""
    done = subprocess.run(
        ["bash", "-c", STUBS + script], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


def test_slurm_starts_torchrun_with_the_very_words_that_were_typed() -> None:
    words = run_by_bash(slurm(JOB))
    assert words == [
        *("--nnodes=2", "--rdzv-backend=c10d", "--rdzv-id=12", "--rdzv-endpoint=node7:29500"),
        *("--nproc-per-node=8", "--no-python", "serried", *WORDS),
    ]


def test_slurm_is_asked_for_a_task_and_all_gpus_on_each_node() -> None:
    asked = [line for line in slurm(JOB).splitlines() if line.startswith("#SBATCH")]
    assert asked == [
        "#SBATCH --job-name=serried-train",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --gpus-per-node=8",
    ]


@pytest.mark.parametrize("target", ["torchrun", "slurm"])
def test_bash_finds_no_fault_with_what_is_written(target: str) -> None:
    subprocess.run(["bash", "-n"], input=written(target, JOB), text=True, check=True, timeout=60)


def test_torchrun_s_line_is_the_same_on_every_node() -> None:
    assert run_by_bash(torchrun(JOB))[:4] == [
        "--nnodes=2",
        "--rdzv-backend=c10d",
        "--rdzv-id=serried-train",
        "--rdzv-endpoint=node7:29500",
    ]


def test_one_node_needs_no_address() -> None:
    assert run_by_bash(torchrun(ClusterJob(WORDS, 1, 8)))[:2] == [
        "--standalone",
        "--nproc-per-node=8",
    ]


def test_kubernetes_gets_an_indexed_job_and_a_service_that_names_its_first_pod() -> None:
    service, job = yaml.safe_load_all(k8s(JOB))
    assert (service["kind"], service["spec"]["clusterIP"]) == ("Service", "None")
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    spec = job["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    pod = spec["template"]["spec"]
    assert pod["subdomain"] == service["metadata"]["name"]
    (container,) = pod["containers"]
    assert container["image"] == "registry/serried:1"
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 8}
    start = container["command"].index("serried")
    assert "--master-addr=serried-train-0.serried-train" in container["command"][:start]
    typed = [word.replace("$$(", "$(") for word in container["command"][start + 1 :]]
    assert typed == list(WORDS)
    assert not any("$(" in word.replace("$$(", "") for word in container["command"][start:])


def test_kubernetes_needs_an_image() -> None:
    with pytest.raises(InputError) as refused:
        k8s(ClusterJob(WORDS, 2, 8))
    assert str(refused.value) == (
        "--emit k8s needs the container image that has serried: --image NAME:TAG"
    )


def test_another_target_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        written("condor", JOB)
    assert str(refused.value) == "--emit writes for torchrun, slurm, k8s; it got 'condor'"
