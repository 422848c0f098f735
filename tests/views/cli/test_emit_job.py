"""``--emit`` of train and check: the same arguments, for nodes of a cluster."""

from __future__ import annotations

import shlex

import pytest

from tests.conftest import Call


def command(text: str) -> list[str]:
    """Returns the words that torchrun starts, of the last line written."""
    words = shlex.split(text.strip().splitlines()[-1])
    return words[words.index("--no-python") + 1 :]


def test_train_keeps_every_argument_but_where_ranks_run(serried: Call) -> None:
    words = ["--tp", "4", "--tie", "--set", "a=b c", "--set", "use_tp_pp_dp_mapping=true"]
    refused = serried("train", *words, "--emit", "slurm", "--nodes", "2")
    assert refused.code == 2  # what cannot run is refused before anything is written
    answer = serried(
        *("train", *words[:3], *words[5:], "--nproc", "3"),
        *("--emit", "slurm", "--nodes", "2", "--gpus-per-node", "4"),
    )
    assert answer.code == 0, answer.err
    assert command(answer.out) == ["serried", "train", "--set", words[6], "--tp", "4", "--tie"]
    assert "#SBATCH --nodes=2\n" in answer.out and "--nproc-per-node=4 " in answer.out


def test_the_world_is_that_of_the_nodes(serried: Call) -> None:
    answer = serried("train", "--tp", "3", "--emit", "torchrun", "--gpus-per-node", "4")
    assert (answer.code, answer.out) == (2, "")
    assert "tp=3 does not divide 4 ranks; sizes that do: 1, 2, 4" in answer.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--nodes", "2"], "--nodes goes with --emit; add --emit slurm"),
        (["--gpus-per-node", "2"], "--gpus-per-node goes with --emit; add --emit slurm"),
        (["--emit", "slurm", "--nodes", "0"], "nodes=0; it is at least 1"),
        (["--emit", "condor"], "--emit writes for torchrun, slurm, k8s; it got 'condor'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: list[str], sentence: str, serried: Call
) -> None:
    answer = serried("train", *words)
    assert (answer.code, answer.err) == (2, f"serried: {sentence}\n")


def test_check_is_written_for_the_nodes_of_its_layout(serried: Call) -> None:
    answer = serried("check", "--world-size", "16", "--tp", "4", "--emit", "torchrun")
    assert answer.code == 0, answer.err
    assert "--nnodes=2" in answer.out and "--nproc-per-node=8" in answer.out
    assert command(answer.out) == ["serried", "check", "--world-size", "16", "--tp", "4"]


def test_nodes_that_ranks_do_not_fill_are_refused(serried: Call) -> None:
    answer = serried("check", "--world-size", "12", "--emit", "slurm")
    assert answer.code == 2
    assert "12 ranks do not fill nodes of 8" in answer.err
