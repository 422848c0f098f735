"""Every control is alive: each is in view somewhere, and using it changes what the page shows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from serried.trace.formats.reading import read_recording
from serried.views.web.check.heat import read_check
from serried.views.web.diagnose.cases import read_case
from serried.views.web.trace.payload import NamedTrace
from tests.page import Open
from tests.soaked import rows
from tests.trace.gpu.samples import FOLDER
from tests.views.web import slow_node
from tests.views.web.diagnose.test_cases import KILLED
from tests.views.web.served import served
from tests.views.web.test_page_diagnose import CLOSED
from tests.views.web.test_page_run import RUN
from tests.views.web.workbench import Workbench

WALK = (Path(__file__).parent / "rooms.js").read_text(encoding="utf-8")
JOB = "?view=layout&world_size=16&tp=2&pp=2&dims=dp,tp&lang=en"
PLAN = "?view=plan&world_size=16&tp=2&pp=2&lang=en"
STARTED = "torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 4"
Step = tuple[str] | tuple[str, str]


@dataclass(frozen=True)
class Situation:
    """An address, and what is clicked, typed or pressed there before the walk."""

    search: str
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Room:
    """A part of the page, the situations in which it is walked, and what its fields take."""

    within: str
    situations: tuple[Situation, ...]
    typed: dict[str, list[str]] = field(default_factory=dict)


ROOMS = {
    "frame": Room(
        "#bar, #start, dialog, #card, #skip-map, #right-bar, #notices, #opening",
        (
            Situation(f"{JOB}&rank=5"),
            Situation("?view=learn&lang=en"),
            Situation(JOB, (("#launch-open",), ("#launch-text", STARTED))),
            Situation(JOB, (("#export",),)),
            Situation(JOB, (("#help",),)),
            Situation(JOB, (("#tour-open",), ("#tour-next",))),
            Situation(JOB, (("#right-toggle",), (".term", "key Enter"))),
            Situation(f"{JOB}&cp=2&ep=2", (("#framework", "colossalai"),)),
        ),
        {"#search": ["5"], "#launch-text": ["torchrun --nproc_per_node 4 x.py"]},
    ),
    "layout": Room(
        "#reset, #framework, #version, #job summary, #map-section > :not(#traffic), #selected,"
        " #groups, #explanation, #basics, #copy-command",
        (
            Situation(f"{JOB}&rank=5"),
            Situation(JOB, (("#command-open",),)),
            Situation(f"{JOB}&map=5,3,60"),
            Situation(f"{JOB}&arrange=cube"),
            Situation(f"{JOB}&side=groups"),
            Situation(f"{JOB}&side=learn"),
            Situation(f"{JOB}&beside=tp%3D4"),
            Situation("?view=layout&lang=en&world_size=6&tp=2&heat=check0.best_send"),
            Situation(JOB, (("#launch-open",), ("#launch-text", STARTED), ("#launch-read",))),
        ),
    ),
    "players": Room(
        "#collective-section, #sharding-section",
        (
            Situation(f"{JOB}&collective=all-reduce&collective_of=dp:0&step=1"),
            Situation(f"{JOB}&cp=2&collective=attention&collective_of=cp:0"),
            Situation(f"{JOB}&zero=1&sharded=1&event=2"),
        ),
        {
            "#collective-bytes": ["1MiB"],
            "#sharding-parameters": ["13B"],
            "#sharding-layers": ["8"],
            "#sharding-accumulated": ["3"],
        },
    ),
    "schedule": Room(
        "#schedule-form, #schedule-section, #right [data-views=schedule], #copy-schedule-command",
        (
            Situation(
                "?view=schedule&stages=4&name=interleaved-1f1b,zb-h1&chunks=2&group=4&lang=en"
            ),
            Situation("?view=schedule&stages=4&name=1f1b,zb-h1&action=3F0&window=2,9&lang=en"),
            Situation("?view=schedule&lang=en", (("#command-open",),)),
        ),
        {
            "#schedule-stages": ["3"],
            "#schedule-microbatches": ["12"],
            "#schedule-chunks": ["3"],
            "#schedule-group": ["8"],
            "#schedule-forward": ["2"],
            "#schedule-input_grad": ["2"],
            "#schedule-weight_grad": ["2"],
            "#schedule-latency": ["1/2"],
            "#schedule-memory_limit": ["20"],
            "#schedule-search": ["0F1"],
        },
    ),
    "plan": Room(
        "#plan-form, #plan-section, #traffic, #splitter",
        (
            Situation(PLAN),
            Situation(f"{PLAN}&searched=1"),
            Situation(f"{PLAN}&planned_step=1"),
            Situation(f"{PLAN}&plan_a=", (("#plan_a",), ("#tp", "4"), ("#plan_b",))),
        ),
        {
            "#plan-model": ["llama3.2-1b"],
            "#plan-cluster": ["dgx-a100"],
            "#plan-sequence": ["4096"],
            "#plan-global_batch": ["128"],
            "#plan-micro_batch": ["2"],
            "#plan-recompute": ["full"],
            "#plan-schedule": ["zb-h1"],
            "#plan-plan_chunks": ["2"],
            "#plan-plan_more": ["lora=16"],
        },
    ),
    "run": Room(
        "#timeline-section, #stretch, #gpus, #heat-panel, #trace-other",
        (
            Situation("?view=run&lang=en&rank=1"),
            Situation("?view=run&lang=en&range=1000000,9000000,0"),
            Situation("?view=run&lang=en&trace=1"),
            Situation("?view=run&lang=en&tp=2&pp=2&world_size=8"),
            Situation("?view=run&lang=en&seek=0F0"),
            Situation("?view=run&lang=en&by=stage"),
        ),
        {"#timeline-search": ["0F0"]},
    ),
    "diagnose": Room(
        "#diagnose-told, #diagnose-section",
        (
            Situation("?view=diagnose&diagnosed=console.log&lang=en"),
            Situation("?view=diagnose&diagnosed=example:skipped-all-reduce&lang=en"),
        ),
    ),
    "learn": Room(
        "#learn-nav, #learn-section, #lesson",
        (
            Situation("?view=learn&lang=en"),
            Situation("?view=learn&lang=en&card=dp&side=learn"),
        ),
        {"#learn-find": ["zero"]},
    ),
}
SOAKED = {"frame", "players", "plan", "run"}
"""Rooms whose controls have tests of their own, of which most walk long."""
FORM = "#job :is(input, select, textarea, button):not(#reset, #framework, #version)"
"""What test_page_controls walks: the form of the job, in every framework."""
ANY = ", ".join([FORM, *(room.within for room in ROOMS.values())])
CONTROLS = "button, input, select, textarea, [role=separator], [role=listbox], canvas[tabindex]"
ELSEWHERE = {
    "opening-cancel": "test_page_open cancels what is sent",
    "timeline-live": "test_page_run follows a run that is being written",
    "launch-files": "the button beside it opens it",
    "launch-folder": "the button beside it opens it",
}
"""Controls that a walk cannot meet, and what uses them instead."""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a workbench with two runs, a report of a check and two diagnoses."""
    folder = tmp_path_factory.mktemp("everything")
    (folder / "monday.json").write_text(json.dumps(slow_node.document()))
    (folder / "console.log").write_text(KILLED + CLOSED)
    (folder / "other.log").write_text(KILLED)
    profile = read_recording([FOLDER / f"sampled_rank-{rank}.json.gz" for rank in (0, 1)])
    with served(
        [RUN, NamedTrace.read("profile", profile)],
        checks=[read_check(folder / "monday.json")],
        cases=[read_case(folder / name) for name in ("console.log", "other.log")],
    ) as address:
        yield address


def walked(workbench: Workbench, call: str, *values: object) -> Any:
    """Calls a function of ``rooms.js`` in the page."""
    return workbench.page.evaluate(f"(values) => ({WALK}).{call}(...values)", list(values))


@pytest.mark.parametrize("name", rows(ROOMS, SOAKED))
def test_every_control_of_a_room_is_seen_and_changes_what_is_shown(
    page_of: Open, everything: str, name: str
) -> None:
    workbench = page_of(everything, "lang=en", width=1100, height=480)
    found = walked(workbench, "room", asdict(ROOMS[name]), ANY)
    assert {control: what for control, what in found.items() if what != "alive"} == {}
    homes = walked(workbench, "homes", {name: ROOMS[name].within}, CONTROLS)
    named = [each for each, home in homes.items() if home and each not in ELSEWHERE]
    assert [each for each in named if f"#{each}" not in found] == []
    assert len(found) > 3


def test_every_control_of_the_page_is_in_one_room(page_of: Open, everything: str) -> None:
    rooms = {name: room.within for name, room in ROOMS.items()} | {"form": FORM}
    homes = walked(page_of(everything, "lang=en"), "homes", rooms, CONTROLS)
    assert len(homes) > 100
    assert {each: home for each, home in homes.items() if len(home) != 1} == {}


def test_the_walk_tells_a_control_that_does_nothing_and_one_that_is_new(
    page_of: Open, everything: str
) -> None:
    workbench = page_of(everything, "lang=en", width=1100, height=480)
    added = "<p id=idle><button>Nothing</button><select><option>1<option>2</select><input></p>"
    workbench.page.evaluate(
        "(html) => document.getElementById('map-section').insertAdjacentHTML('afterbegin', html)",
        added,
    )
    found = walked(workbench, "room", asdict(Room("#idle", (Situation(JOB),))), ANY)
    assert found == {
        "#idle button": "dead",
        "#idle select": "dead",
        '#idle input[type="text"]': "the walk does not know how to use it",
    }
