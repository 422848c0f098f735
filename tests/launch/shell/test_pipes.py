"""What plain tools print of a known text, beside what they really print."""

from __future__ import annotations

import subprocess

import pytest

from serried.launch.shell.follow import follow

PRINTED = [
    "echo '8(x4)' | cut -d '(' -f 1",
    "echo a,b,c | cut -f2 -d,",
    "echo a=b | cut -d= -f2",
    "echo plain | cut -d, -f2",
    "echo 'a  b c' | wc -w",
    "echo a:b:c | tr ':' '\\n' | wc -l",
    "echo Model-7B | tr '[:upper:]' '[:lower:]'",
    "echo 1,2,3 | tr -d ,",
    "echo 'n1 8 4' | awk '{print $2}'",
    "echo 'a/b/c' | awk -F/ '{print NF}'",
    "echo 'a/b/c' | awk -F'/' '{ print $3 }'",
    'grep -oP "(?<=--tp )[^ ]+" <<< "--pp 2 --tp 4 --x"',
    "grep -oP '(?<=--steps )[0-9]+' <<< '--steps 20x'",
    "echo x12y | grep -oE '[0-9]+'",
    "echo 'a b' | sed 's/ /-/'",
    "echo a_b_c | sed -e 's/_/-/g'",
    "echo 'a  b   c' | sed 's/ \\+/ /g'",
    "echo 'a   b' | tr -s ' '",
    "seq 3 | head -n 2 | tail -1",
    "seq 2 4 | tail -n 1",
    "basename runs/train_7B.sh .sh",
    "basename /a/b/c",
    "printf '%s' 8",
    "echo '  8  ' | xargs",
    "echo -n 8 | cut -c1",
    "printf '%s\\n' 4 8 | head -n 1",
    "echo 8 | sort",
]


@pytest.fixture(scope="module")
def bash() -> dict[str, str]:
    """Returns what bash prints for each command."""
    script = "".join(f'printf "%s\\0" "$({each})"\n' for each in PRINTED)
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    return dict(zip(PRINTED, run.stdout.split("\0"), strict=False))


def value(command: str) -> str | None:
    """Returns what the reader makes of a substitution, None where it leaves it open."""
    [run] = list(follow(f'go "$({command})"', "x.sh", {}).runs)
    return run.fields[1].text


@pytest.mark.parametrize("command", PRINTED[:-3])
def test_a_pipe_prints_what_it_prints_in_bash(command: str, bash: dict[str, str]) -> None:
    assert value(command) == bash[command]


@pytest.mark.parametrize("command", PRINTED)
def test_what_is_said_at_all_is_what_bash_says(command: str, bash: dict[str, str]) -> None:
    assert value(command) in (None, bash[command])


@pytest.mark.parametrize(
    "command",
    [
        "nvidia-smi -L | wc -l",
        "wc -l < hosts",
        "grep -c slots hosts",
        "echo $1 | cut -d, -f1",
        "grep -oP '(a+)+$' <<< aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!",
        "echo a.b | sed 's/a.b/x/'",
        "echo a && echo b",
        "echo a | cut -f 0",
        "awk -F, '{print $1}' list.csv",
    ],
)
def test_what_only_running_would_tell_stays_open(command: str) -> None:
    assert value(command) is None
