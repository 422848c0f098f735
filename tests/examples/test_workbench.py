"""All five recorded examples open in the workbench at once: the printed command, a real browser."""

from __future__ import annotations

import shlex
import signal

from serried.trace.merge.in_memory import merge
from tests.examples.pages import STAYS, Commands
from tests.examples.pages import pages as printed
from tests.page import Open

NAMES = ["ddp", "fsdp2", "accelerate", "deepspeed", "serried"]


def test_the_printed_command_shows_groups_and_spans_of_all_five(
    commands: Commands, page_of: Open
) -> None:
    (command,) = (each for each in printed()["README.md"] if each.startswith(STAYS))
    folder = commands.at("README.md")
    for each in printed()["README.md"]:
        if each.startswith("SERRIED_TRACE_DIR="):
            commands.ran(each.partition(" ")[2])
    traces = [folder / word for word in shlex.split(command) if word.startswith("runs/")]
    assert [trace.name for trace in traces] == NAMES

    serving = commands.shell.start(f"exec {command} --port 0 --no-open", folder)
    assert serving.stdout is not None
    address = next(line for line in serving.stdout if "http://" in line).split()[-1].rstrip("/")
    try:
        workbench = page_of(address)
        for number, trace in enumerate(traces):
            workbench.choose("trace", str(number))
            recorded = merge([trace])
            assert workbench.read("slices()") == len(recorded.spans)
            ranks = workbench.page.evaluate(
                "Array.from({length: serried.slices()}, (_, i) => serried.slice(i).rank)"
            )
            assert set(ranks) == {0, 1}
            assert workbench.value("world_size") == "2"
            groups = workbench.read("groups()")
            assert [[0, 1]] in groups.values(), (trace.name, groups)
    finally:
        serving.send_signal(signal.SIGINT)
        serving.communicate()
