"""The command line as a whole: help without a command, and completion in every shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from serried.views import mishap
from serried.views.cli.main import COMMANDS
from serried.views.cli.main import serried as root
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


def test_without_words_a_process_greets_and_help_lists_all_commands(serried: Call) -> None:
    done = run({})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("serried shows every rank ")
    assert all(command in serried("--help").out for command in COMMANDS)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_that_a_shell_reads_is_printed(shell: str) -> None:
    done = run({"_SERRIED_COMPLETE": f"{shell}_source"})
    assert done.returncode == 0, done.stderr
    assert f"_SERRIED_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_and_an_option_are_completed(shell: str) -> None:
    assert "groups" in completed(shell, "serried", "gr")
    assert "--framework" in completed(shell, "serried", "groups", "--frame")


ASKED = {
    "bash": """SOURCE
COMP_WORDS=(serried sched); COMP_CWORD=1
_serried_completion serried
echo "${COMPREPLY[@]}"
""",
    # Outside its line editor zsh has no compdef and no compadd.
    "zsh": """
compdef() { :; }
SOURCE
compadd() { print -r -- "${completions[@]}"; }
_describe() { print -r -- "${completions_with_descriptions[@]%%:*}"; }
words=(serried sched); CURRENT=2
_serried_completion
""",
    "fish": """SOURCE
complete --do-complete "serried sched" | string split --fields 1 \\t
""",
}
"""How each shell is made to complete ``serried sched`` once it has read the printed script."""


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_itself_completes_with_the_printed_script(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here; make test installs it")
    source = run({"_SERRIED_COMPLETE": f"{shell}_source"}).stdout
    command = tmp_path / "serried"
    command.write_text(f"#!{sys.executable}\n{CODE.replace('; ', chr(10))}\n", encoding="utf-8")
    command.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    home = {"PATH": path, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    done = subprocess.run(
        [shell, "-c", ASKED[shell].replace("SOURCE", source)],
        capture_output=True,
        text=True,
        env=os.environ | home,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("schedule", "")


# ----------------------------------------------------------------------- what nobody foresaw


def broken(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Makes a command fail in a way that nobody foresaw."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(root, "invoke", fail)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_nobody_foresaw_is_one_sentence_and_a_file_to_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, serried: Call, lang: str
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(mishap, "_files", {})
    monkeypatch.delenv("SERRIED_TRACEBACK", raising=False)
    broken(monkeypatch, KeyError("stage"))
    answer = serried("serve", "--token", "secret", "--lang", lang)
    (kept,) = tmp_path.iterdir()
    assert (answer.code, answer.out, answer.err.count("\n")) == (3, "", 1)
    assert str(kept) in answer.err
    assert ("这是 serried 自己的错" if lang == "zh" else "a mistake in serried") in answer.err
    text = kept.read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "KeyError: 'stage'" in text
    assert "asked: serve --token …" in text
    assert kept.stat().st_mode & 0o077 == 0


def test_a_traceback_is_to_be_had_on_request(
    monkeypatch: pytest.MonkeyPatch, serried: Call
) -> None:
    monkeypatch.setenv("SERRIED_TRACEBACK", "1")
    broken(monkeypatch, KeyError("stage"))
    with pytest.raises(KeyError):
        serried("groups")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "there is not enough memory here for what was asked"),
        (OSError(28, "No space left on device"), "the system refuses: No space left on device"),
        (OSError(5, "Input/output error", "/x"), "the system refuses: Input/output error (/x)"),
    ],
)
def test_what_the_machine_refuses_is_no_mistake_of_ours(
    monkeypatch: pytest.MonkeyPatch, serried: Call, error: Exception, sentence: str
) -> None:
    broken(monkeypatch, error)
    answer = serried("groups", "--lang", "en")
    assert (answer.code, answer.err) == (3, f"serried: {sentence}\n")


def test_a_mistake_is_told_where_no_file_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, serried: Call
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    monkeypatch.setattr(mishap, "_files", {})
    broken(monkeypatch, ZeroDivisionError("division by zero"))
    answer = serried("groups", "--lang", "en")
    assert answer.code == 3
    assert "(ZeroDivisionError: division by zero); SERRIED_TRACEBACK=1 prints" in answer.err


def test_an_output_that_is_full_ends_in_one_sentence() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-c", CODE, "groups", "--world-size", "8", "--lang", "en"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        3,
        "serried: the system refuses: No space left on device\n",
    )
