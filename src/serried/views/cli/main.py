"""The entry of ``serried``: finds the command, and alone turns an error into a line and a code."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from serried.errors import SerriedError
from serried.version import __version__
from serried.views.cli.help import LazyCommand, LazyCommands, speaking
from serried.views.cli.language import language_in, language_of
from serried.views.sentences import phrase, say

COMMANDS = {
    "groups": LazyCommand(
        "groups.command",
        "Prints which rank is in which process group, under the framework's own rules.",
    ),
    "schedule": LazyCommand(
        "schedule",
        "Draws, times and explains pipeline schedules; without a name, lists them.",
    ),
    "collective": LazyCommand(
        "collective.command",
        "Shows who sends which block to whom in a collective, and what each step costs.",
    ),
    "explain": LazyCommand(
        "explain",
        "Explains a word of parallel training with the numbers of a job: dp, etp, zero, bubble …",
    ),
    "plan": LazyCommand(
        "plan.command",
        "Plans a job: whether it fits, where it is fullest, how long a step takes and why.",
    ),
    "check": LazyCommand(
        "check",
        "Makes every process group of a layout on real ranks, checks its members, and times it.",
    ),
    "train": LazyCommand(
        "train.command", "Trains a small GPT, or your own model, cut along any axes of a layout."
    ),
    "search": LazyCommand(
        "plan.search",
        "Finds the best layouts of a model on a cluster, and says why the others lose.",
    ),
    "tune": LazyCommand("plan.tune", "Finds the best layout of a training for the ranks at hand."),
    "export": LazyCommand(
        "export", "Writes a checkpoint's model as one safetensors file that transformers loads."
    ),
    "trace": LazyCommand(
        "trace.command", "Merges and measures the timeline that a run recorded with --trace-dir."
    ),
    "diagnose": LazyCommand(
        "diagnose.command",
        "Says which rank hung, which is slow, and why; or what evidence is missing.",
    ),
    "collect": LazyCommand(
        "diagnose.collect",
        "Brings what a job left on its hosts into one folder, for serried diagnose.",
    ),
    "serve": LazyCommand(
        "serve",
        "Opens the workbench: the cluster map, the groups, and the timelines of recorded runs.",
    ),
    "report": LazyCommand(
        "report",
        "Writes what the workbench shows of a job into one HTML file that opens from disk.",
    ),
    "mcp": LazyCommand(
        "mcp",
        "Answers assistants over the Model Context Protocol, on standard input and output.",
    ),
    "demo": LazyCommand(
        "demo",
        "Trains for real on local ranks, records it, and opens the workbench on what happened.",
    ),
}


@click.command(
    cls=LazyCommands,
    named=COMMANDS,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="serried")
@click.pass_context
def serried(context: click.Context) -> None:
    """Shows every rank of a parallel training job: its groups, its schedule, its timeline."""
    if context.invoked_subcommand is None:
        from serried.views.cli.greeting import greeting

        click.echo(greeting(language_in(context)))


speaking(serried)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs the command line and exits.

    0 fine, 1 something found, 2 bad input, 3 the environment or a mistake in serried itself.
    """
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Runs the command line and returns the exit code; set SERRIED_TRACEBACK=1 for tracebacks."""
    asked = sys.argv[1:] if arguments is None else arguments
    lang = language_of(asked)
    try:
        result = serried.main(arguments, prog_name="serried", standalone_mode=False, obj=lang)
        sys.stdout.flush()
    except SerriedError as error:
        return _tell(say(error, lang), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        return _tell(phrase(error.format_message(), lang), error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        return _tell(phrase("stopped", lang), 130)
    except BrokenPipeError:
        # The reader (head, less) has gone; Python would complain again while closing stdout.
        _close_output()
        return 0
    except Exception as error:
        if isinstance(error, OSError):
            _close_output()
        from serried.views.mishap import mishap_of

        mishap = mishap_of(error, asked)
        return _tell(say(mishap, lang), mishap.exit_code)
    return result if isinstance(result, int) else 0


def _close_output() -> None:
    """Lets what stdout still holds go nowhere, so that Python does not fail on it once more."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(sentence: str, code: int) -> int:
    if os.environ.get("SERRIED_TRACEBACK"):
        raise
    click.echo(f"serried: {sentence}", err=True)
    return code
