"""Hostile files: one sentence for each, no traceback, and work that grows as the file does."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from cProfile import Profile
from functools import partial

import pytest

from serried.errors import InputError, SerriedError
from serried.launch.read import read, read_among
from serried.launch.shell.follow import follow
from serried.limits import SCRIPT_STEPS
from tests.launch.hostile import BESIDE, TOKENS, answer, bounded, mutant

RUN = "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2\n"
JSON = '{{"zero_optimization": {{"stage": 2}}, "x": [{}]}}'
PARALLEL = "parallel = dict(tensor=dict(size=2))\n"


def refusal(text: str, name: str = "run.sh", **beside: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text, name=name, beside={key.replace("__", "."): each for key, each in beside.items()})
    return str(caught.value)


def calls(text: str, name: str) -> int:
    """Returns how many functions are called while a text is read or refused."""
    return counted(lambda: read(text, name=name))


def counted(work: Callable[[], object]) -> int:
    """Returns how many functions are called while ``work`` is done or refused."""
    with Profile() as counter, suppress(SerriedError):
        work()
    return sum(each.callcount for each in counter.getstats())


# ----------------------------------------------------------------------- limits, each in a sentence


@pytest.mark.parametrize("opened", ["$((", "${A:-", "$(( ${B:-", '"${A:-'])
def test_expansions_nested_without_end_are_refused_with_their_line(opened: str) -> None:
    sentence = refusal(f"#!/bin/bash\nA={opened * 300}\n{RUN}")
    assert "run.sh line 2: " in sentence


def test_closed_expansions_may_nest_as_people_nest_them_and_no_deeper() -> None:
    def nested(depth: int) -> str:
        return f"#!/bin/bash\nA={'${A:-' * depth}2{'}' * depth}\n{RUN.replace(' 2', ' $A')}"

    assert read(nested(30), name="run.sh").sizes().tp == 2
    assert refusal(nested(200)) == (
        "run.sh line 2: expansions are nested too deeply to be a launch script"
    )


def test_words_and_commands_have_a_limit() -> None:
    told = "it has more words and expansions than a launch script, 50000"
    assert refusal("#!/bin/bash\n" + "A=1\n" * 60_000 + RUN).endswith(told)
    assert refusal("#!/bin/bash\nA=" + "$A" * 60_000 + "\n" + RUN).endswith(told)


def test_lines_have_a_limit() -> None:
    assert refusal("#!/bin/bash\n" + "\n" * 200_000 + RUN) == (
        "run.sh has more than 100,000 lines, the most that serried reads of a launch file"
    )


def test_starts_of_ranks_have_a_limit() -> None:
    assert refusal("#!/bin/bash\n" + RUN * 600) == (
        "run.sh starts ranks 600 times, and at most 500 are read; give the one that you mean in a "
        "file of its own"
    )


GROWING = {
    "a variable that is appended to": 'A="$A $B x"\n' * 3000,
    "a file that is appended to": "echo a $A b >> f\n" * 3000,
    "choices that hold choices": "".join(
        f'if a; then A{i}="x $A{i - 1} y $A{i - 1} z"; fi\n' for i in range(900)
    ),
    "functions that call two each": "".join(
        f"f{i}() {{ f{i + 1}; f{i + 1}; }}\n" for i in range(22)
    )
    + "f0\n",
    "files that read one another": "source x.sh\nsource x.sh\n",
    "patterns on long text": f"A={'a' * 4000}\n" + "B=${A%*b}\n" * 3000,
    "loops in loops": "for i in 1 2 3 4 5 6 7 8 9; do\n" * 8 + "A=$i\n" + "done\n" * 8,
}


@pytest.mark.parametrize("shape", GROWING)
def test_work_that_grows_without_end_is_stopped_by_its_count(shape: str) -> None:
    text = f"#!/bin/bash\n{GROWING[shape]}{RUN}"
    try:
        story = follow(text, "run.sh", {"x.sh": GROWING["files that read one another"]})
    except InputError as error:
        assert "more steps than a launch script does" in str(error) or "without end" in str(error)
        return
    assert story.runs


def test_an_edit_that_would_fill_the_memory_is_left_open() -> None:
    lines = f"A={'a' * 4000}\nB={'b' * 4000}\nC=${{A//a/$B}}\n"
    config = read(f"#!/bin/bash\n{lines}{RUN.replace(' 2', ' ${C}')}", name="run.sh")
    assert [each.name for each in config.missing] == ["tp"]


def test_every_public_script_in_the_tests_is_followed_in_a_small_part_of_the_limit() -> None:
    spent = []
    for name, text in BESIDE.items():
        if name.endswith((".sh", ".slurm", ".sbatch")):
            from serried.launch.shell.commands import perform
            from serried.launch.shell.walk import ScriptWalk

            walk = ScriptWalk(BESIDE, perform)
            walk.file(text, name)
            spent.append(walk.scope.steps.done)
    assert max(spent) < SCRIPT_STEPS.most / 20


# ----------------------------------------------------------------------- numbers

LONG = "9" * 5000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", f"#!/bin/bash\nTP={LONG}\nA=$((TP + 1))\n[ $TP -gt 1 ] && B=${{C[$TP]}}\n{RUN}"),
        ("run.sh", f"#!/bin/bash\nA=${{{LONG}}}\nB=${{A:{LONG}}}\nshift {LONG}\n{RUN}"),
        ("run.sh", f"torchrun --nproc_per_node {LONG} x.py --tensor-model-parallel-size {LONG}"),
        ("run.sh", f"srun -N {LONG} -n {LONG} python x.py --tensor-model-parallel-size 2"),
        ("run.sh", f"mpirun -H a:{LONG} python x.py --tensor-model-parallel-size 2"),
        ("x.json", f'{{"train_batch_size": 8, "tensor_parallel": {{"autotp_size": {LONG}}}}}'),
        ("x.json", '{"train_batch_size": 8, "tensor_parallel": {"autotp_size": 1e400}}'),
        ("x.yaml", f"distributed_type: FSDP\nnum_processes: {LONG}\nfsdp_config: {{}}\n"),
        ("x.toml", f"[parallelism]\ntensor_parallel_degree = {LONG}\n"),
        ("x.py", PARALLEL.replace("2", LONG)),
        ("hosts", f"a slots={LONG}\n"),
        ("hosts", "a slots=1000000000\n"),
    ],
)
def test_a_number_of_five_thousand_digits_is_no_size(name: str, text: str) -> None:
    assert answer(text.encode(), name, {}) == ""


def test_a_host_has_no_more_slots_than_a_machine_may_hold() -> None:
    assert refusal("a slots=1000000000\n", "hosts") == (
        "host a is given 1000000000 slots; a host has at most 4,096"
    )


# ----------------------------------------------------------------------- work is linear

SHAPES: dict[str, tuple[str, Callable[[int], str]]] = {
    "assignments": ("run.sh", lambda n: "#!/bin/bash\n" + "A=1\n" * n + RUN),
    "comments": ("run.sh", lambda n: "#!/bin/bash\n" + "# hello\n" * n + RUN),
    "words": ("run.sh", lambda n: "#!/bin/bash\necho " + "ab " * n + "\n" + RUN),
    "values of an option": ("run.sh", lambda n: RUN.strip() + " --x" + " 1" * n),
    "conditions": ("run.sh", lambda n: "#!/bin/bash\n" + "[ $A -gt 1 ] && B=2\n" * n + RUN),
    "JSON keys": ("x.json", lambda n: JSON.format(", ".join('{"a":\n1}' for _ in range(n)))),
    "JSON numbers": ("x.json", lambda n: JSON.format("1,\n" * n + "1")),
    "TOML pairs": (
        "x.toml",
        lambda n: "[parallelism]\n" + "".join(f"a{i} = 1\n" for i in range(n)),
    ),
    "YAML pairs": (
        "x.yaml",
        lambda n: "distributed_type: FSDP\n" + "".join(f"a{i}: 1\n" for i in range(n)),
    ),
    "Python names": ("x.py", lambda n: PARALLEL + "".join(f"a{i} = 1\n" for i in range(n))),
    "Python steps not run": (
        "x.py",
        lambda n: PARALLEL + "".join(f"for i{i} in x: y = 1\n" for i in range(n)),
    ),
    "hosts": ("hostfile", lambda n: "".join(f"node{i} slots=8\n" for i in range(n))),
    "#SBATCH lines": ("x.sh", lambda n: "#!/bin/bash\n" + "#SBATCH -N 2\n" * n + RUN),
    "words that are not known": (
        "x.sh",
        lambda n: RUN.strip() + "".join(f" $X{i}" for i in range(n)),
    ),
    "arrays": ("x.sh", lambda n: f"A=({'--tp 2 ' * n})\n" + RUN.strip() + ' "${A[@]}"'),
    "heredocs": (
        "x.sh",
        lambda n: "".join(f"cat <<E > f{i}\nx\nE\n" for i in range(n)) + RUN,
    ),
    "functions": ("x.sh", lambda n: "".join(f"f{i}() {{ a; }}\n" for i in range(n)) + RUN),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_file_is_at_most_twice_the_work(shape: str) -> None:
    name, made = SHAPES[shape]
    small, middle, large = (calls(made(n), name) for n in (300, 600, 1200))
    assert middle < 2.2 * small + 1000
    assert large < 2.2 * middle + 1000


def test_twice_the_files_of_a_folder_are_at_most_twice_the_work() -> None:
    def folder(num_files: int) -> dict[str, str]:
        return {f"{i}.py": PARALLEL for i in range(num_files)}

    def looked_through(num_files: int) -> int:
        return counted(lambda: read_among(folder(num_files), called="jobs"))

    small, middle, large = map(looked_through, (50, 100, 200))
    assert middle < 2.2 * small + 1000
    assert large < 2.2 * middle + 1000


def test_commands_inside_a_wrapper_of_many_words_are_stopped_by_their_count() -> None:
    wrapped = "srun " + "a " * 1000 + "bash y.sh\n"
    told = refusal(wrapped + RUN, y__sh="#!/bin/bash\n" + "echo a\n" * 1000)
    assert "takes more steps than a launch script does" in told


def test_a_python_config_that_copies_on_and_on_is_refused() -> None:
    copies = "".join(f"x = dict(x, a{i}=1)\n" for i in range(400))
    assert "unfolds to more than" in refusal(f"{PARALLEL}x = {{}}\n{copies}", "x.py")


def test_a_line_of_json_is_found_without_counting_from_the_top() -> None:
    class Uncounted(str):
        def count(self, *_: object) -> int:
            raise AssertionError("counted from the top")

    from serried.launch.documents import json as json_text

    keys = json_text.read(Uncounted('{"a": 1,\n"b": 2}'), "x.json")
    assert keys.entries["b"][0].line == 2


# ----------------------------------------------------------------------- trees that share branches


def test_a_python_config_that_unfolds_without_end_is_refused() -> None:
    doubled = "".join(f"x{i} = [x{i - 1}, x{i - 1}]\n" for i in range(1, 50))
    assert "unfolds to more than" in refusal(f"{PARALLEL}x0 = {{}}\n{doubled}", "x.py")
    assert "unfolds to more than" in refusal(
        f"from base import *\n{PARALLEL}", "x.py", base__py=f"x0 = {{}}\n{doubled}"
    )
    text = f'{PARALLEL}a = "ab"\n' + 'a = f"{a}{a}"\n' * 60
    assert read(text, name="x.py").fields["tp"].value == 2


# ----------------------------------------------------------------------- mutations


@pytest.mark.parametrize("name", sorted(BESIDE))
def test_a_mutant_of_a_launch_file_is_read_or_refused_in_a_sentence(name: str) -> None:
    chance = random.Random(name)
    for _ in range(12):
        data = mutant(BESIDE[name].encode(), chance)
        assert answer(data, name.removesuffix(".txt")) == "", data


@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(BESIDE))
def test_thousands_of_mutants_are_answered_in_bounds(name: str) -> None:
    chance = random.Random(f"soak {name}")
    for _ in range(200):
        data = mutant(BESIDE[name].encode(), chance)
        told = bounded(partial(answer, data, name.removesuffix(".txt")))
        assert told == "", data


@pytest.mark.soak
@pytest.mark.parametrize("start", [RUN, JSON, PARALLEL, "[parallelism]\n", "trainer:\n  x: "])
@pytest.mark.parametrize("token", TOKENS)
def test_a_token_over_and_over_is_answered_in_bounds(start: str, token: str) -> None:
    data = (start + token * (900_000 // len(token))).encode()
    for name in ("run.sh", "x.json", "x.yaml", "x.toml", "x.py"):
        told = bounded(partial(answer, data, name, {}))
        assert told == "", (name, token)
