"""The entry of ``serried``: help without a command, and completion in every shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from serried.views.cli.main import COMMANDS
from tests.conftest import Call

SHELLS = ("bash", "zsh", "fish")
CODE = "from serried.views.cli.main import main; main()"


def run(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line in a process of its own, as the shell's completion does."""
    return subprocess.run(
        [sys.executable, "-c", CODE, *words],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )


def completed(shell: str, *words: str) -> list[str]:
    """Returns what a shell is offered for the last of ``words``."""
    environment = {
        "_SERRIED_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - 1),
    }
    done = run(environment)
    assert (done.returncode, done.stderr) == (0, "")
    return re.split(r"[,\s]", done.stdout)


def test_without_a_command_help_is_shown(serried: Call) -> None:
    answer = serried()
    assert answer.code == 2
    assert answer.err.startswith("Usage: serried ")
    assert all(command in answer.err for command in COMMANDS)


def test_without_words_a_process_shows_help_and_no_traceback() -> None:
    done = run({})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: serried ")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_that_a_shell_reads_is_printed(shell: str) -> None:
    done = run({"_SERRIED_COMPLETE": f"{shell}_source"})
    assert done.returncode == 0, done.stderr
    assert f"_SERRIED_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_and_an_option_are_completed(shell: str) -> None:
    assert "groups" in completed(shell, "serried", "gr")
    assert "--framework" in completed(shell, "serried", "groups", "--frame")


def test_bash_itself_completes_with_the_printed_script(tmp_path: Path) -> None:
    source = run({"_SERRIED_COMPLETE": "bash_source"}).stdout
    command = tmp_path / "serried"
    command.write_text(f"#!{sys.executable}\n{CODE.replace('; ', chr(10))}\n", encoding="utf-8")
    command.chmod(0o755)
    script = f"""{source}
COMP_WORDS=(serried sched); COMP_CWORD=1
_serried_completion serried
echo "${{COMPREPLY[@]}}"
"""
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path},
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("schedule", "")
