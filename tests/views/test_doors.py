"""Every door leads to the same answer: flags, an address, dropped and launch files, and Python.

The same random jobs go through all doors, good ones and bad ones: each door gives the same groups
of the same ranks on the same nodes, or refuses with the same sentence. So do random schedules.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.testclient import TestClient

import serried
from serried.errors import InputError
from serried.frameworks import FRAMEWORKS
from serried.launch.read import read
from serried.launch.request import LayoutRequest
from serried.launch.write import TARGETS, write
from serried.mesh import Layout, Placement
from serried.mesh.sizes import COUNTS, TABLE, read_settings
from serried.pipeline import ENTRIES, Costs
from serried.pipeline.measured import MeasuredSchedule
from serried.pipeline.request import ScheduleRequest
from serried.views.cli.main import run
from serried.views.web.gate import Gate
from serried.views.web.layout.launch import dropped_request
from serried.views.web.opening.desk import OpeningDesk
from serried.views.web.server import application
from serried.views.web.wire.dropped import Dropped
from tests.views.web.reader import read as unpacked

PAGE = TestClient(
    application(OpeningDesk(), Gate("127.0.0.1", 8765)), base_url="http://127.0.0.1:8765"
)
BASE = """torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py \\
    --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --num-layers 8
"""


class Job(NamedTuple):
    """What a user asks for, as words: sizes by name, a framework, and settings."""

    sizes: Mapping[str, str]
    framework: str = ""
    settings: Sequence[str] = ()

    @property
    def flags(self) -> list[str]:
        words = [each for name, text in self.sizes.items() for each in (TABLE[name].option, text)]
        words += ["--framework", self.framework] if self.framework else []
        return words + [each for text in self.settings for each in ("--set", text)]

    @property
    def words(self) -> dict[str, list[str]]:
        return {
            **{name: [text] for name, text in self.sizes.items()},
            "framework": [self.framework],
            "set": list(self.settings),
        }


class Answer(NamedTuple):
    """What a door leads to: every group by its kind, and the node of every rank."""

    framework: str
    groups: dict[str, list[list[int]]]
    nodes: list[int]

    @classmethod
    def of(cls, layout: Layout, placement: Placement) -> Answer:
        groups = {kind.name: layout.groups(kind.name).lists() for kind in layout.kinds}
        nodes = [placement.node(rank) for rank in range(layout.world_size)]
        return cls(layout.framework, groups, nodes)


def in_order(sizes: Mapping[str, str]) -> dict[str, str]:
    """Returns sizes in the table's order, in which every door comes upon the first wrong one."""
    return {name: sizes[name] for name in TABLE if name in sizes}


ODD = ["0", "-1", "x", "1.5", "٣", "9" * 30, " 2 ", "+2", "007", "1_0"]
TEXTS = {
    "world_size": ["8", "16", "24", "32"],
    **{name: ["1", "2", "2", "3", "4", "8"] for name in COUNTS},
    "order": ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp", "tp-dp-pp", "tp-tp", "pp"],
    "gpus_per_node": ["4", "8", "16", "4,4,8", "16,16", "4,1"],
    "gpus_per_rank": ["1", "2", "3"],
}
KNOWN = ["", "", "megatron", "megatron@0.12.1", *FRAMEWORKS, "nemo"]
SETTINGS = [(), (), (), ("num_experts=4",), ("use_tp_pp_dp_mapping=true",)]


@st.composite
def jobs(draw: st.DrawFn, names: Sequence[str] = ("world_size", "tp", "pp")) -> Job:
    """Draws ``names`` and a few sizes more; in some jobs one of them is odd."""
    more = draw(st.lists(st.sampled_from(list(TEXTS)), max_size=2))
    sizes = {name: draw(st.sampled_from(TEXTS[name])) for name in dict.fromkeys([*names, *more])}
    if sizes and draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from(sorted(sizes)))
        # The command line takes several worlds, 8,16, and names only the one that is wrong.
        sizes[name] = draw(st.sampled_from([*ODD, "8,x"] if name != "world_size" else ODD))
    framework, told = draw(st.sampled_from(KNOWN)), draw(st.sampled_from(SETTINGS))
    return Job({name: sizes[name] for name in TABLE if name in sizes}, framework, told)


def by_python(job: Job, text: str | None = None) -> Answer | str:
    try:
        config = None if text is None else read(text, name="run.sh")
        request = LayoutRequest.of(
            job.sizes,
            framework=job.framework or None,
            settings=read_settings(job.settings),
            config=config,
        )
        return Answer.of(*request.laid_out())
    except InputError as error:
        return str(error)


def by_layout(job: Job) -> dict[str, list[list[int]]] | str:
    """Returns the groups of ``serried.layout``, which knows no nodes, or its refusal."""
    try:
        told = read_settings(job.settings)
        made = serried.layout(framework=job.framework or None, settings=told, **job.sizes)
        return {kind.name: made.groups(kind.name).lists() for kind in made.kinds}
    except InputError as error:
        return str(error)


def by_flags(job: Job, *file: str) -> Answer | str:
    told = printed("groups", *file, *job.flags, "--format", "json")
    if told.startswith("serried: "):
        return told.removeprefix("serried: ")
    document = json.loads(told)
    nodes = [
        json.loads(printed("groups", *file, *job.flags, "--rank", str(rank), "--format", "json"))
        for rank in (0, document["world_size"] - 1)
    ]
    return Answer(document["framework"], document["groups"], [nodes[0]["node"], nodes[-1]["node"]])


def printed(*words: str) -> str:
    """Returns what a command prints, its refusal where it ends with one."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(words))
    return err.getvalue().strip() if code else out.getvalue()


def by_address(job: Job, kinds: Sequence[str]) -> Answer | str:
    answer = PAGE.get("/api/layout", params={**job.words, "kind": list(kinds)})
    if answer.status_code == 400:
        return str(answer.json()["error"])
    message = unpacked(answer.content)
    shown = message.header["shown"]
    groups = {each["kind"]: message.lists(number) for number, each in enumerate(shown)}
    return Answer(message.header["job"]["framework"], groups, message.columns["node"].tolist())


def by_drop(job: Job, text: str) -> Answer | str:
    dropped = Dropped("run.sh", len(text.encode()), text.encode())
    try:
        return Answer.of(*dropped_request([dropped], job.words).laid_out())
    except InputError as error:
        return str(error)


def ends(answer: Answer | str) -> Answer | str:
    """Returns an answer with the nodes of its first and its last rank alone."""
    if isinstance(answer, str):
        return answer
    return answer._replace(nodes=[answer.nodes[0], answer.nodes[-1]])


@example(Job({"world_size": "16", "tp": "2", "pp": "4"}))
@example(Job({"world_size": "16", "tp": "3", "gpus_per_rank": "3"}))
@example(Job({"dp": "4", "tp": "2"}))
@example(Job({"tp": "2"}))
@example(Job({"world_size": "16"}, settings=["odd"]))
@given(jobs())
def test_flags_an_address_and_python_ask_for_the_same(job: Job) -> None:
    asked = by_python(job)
    kinds = [] if isinstance(asked, str) else list(asked.groups)
    assert ends(by_flags(job)) == ends(asked)
    assert by_address(job, kinds) == asked
    plain = by_layout(job)
    if isinstance(asked, Answer) or isinstance(plain, str):
        assert plain == (asked.groups if isinstance(asked, Answer) else asked)


@example(Job({}))
@example(Job({"world_size": "32"}))
@example(Job({"tp": "3"}))
@given(jobs(names=()))
def test_a_file_given_or_dropped_yields_to_the_same_words(job: Job) -> None:
    asked = by_python(job, BASE)
    assert by_drop(job, BASE) == asked
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.sh"
        path.write_text(BASE, encoding="utf-8")
        assert ends(by_flags(job, str(path))) == ends(asked)


@given(jobs(), st.sampled_from(TARGETS))
def test_a_launch_file_that_is_written_is_read_as_the_same(job: Job, target: str) -> None:
    try:
        request = LayoutRequest.of(
            job.sizes,
            framework=job.framework or None,
            settings=read_settings(job.settings),
        )
        layout, placement = request.laid_out()
        text = write(target, layout, placement, sizes=request.sizes())
    except InputError:
        # What cannot be laid out, or not be written for this target, has no file.
        return
    back = LayoutRequest.of({}, config=read(text, name="run.sh"))
    again = by_drop(Job({}), text)
    assert again == Answer.of(*back.laid_out())
    dims = set(layout.dims) & set(back.layout().dims)
    for dim in dims:
        ours, theirs = layout.dims[dim], back.layout().dims[dim]
        assert set(map(tuple, layout.groups(ours).lists())) == set(
            map(tuple, back.layout().groups(theirs).lists())
        )


def test_a_size_that_there_is_not_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="'pc' is not a size; sizes that are: world_size, tp, pp"):
        LayoutRequest.of({"pc": 2})


# ------------------------------------------------------------------- schedules

TIMES = ("forward", "input_grad", "weight_grad", "backward", "overlap", "recompute", "all_reduce")
PLAN_TEXTS = {
    **{name: ["1", "2", "0", "1/3", "0.25", "3,1,2,2", "1,2"] for name in TIMES},
    **{name: ["0", "1/2", "3"] for name in ("latency", "optimizer", "message_bytes", "bandwidth")},
    **{name: ["1,0,1", "1/2,1,0"] for name in ("embedding", "loss")},
    "memory": ["1,0,-1", "2,-1,-1"],
    "memory_limit": ["1", "3", "4.5", "20"],
    "chunks": ["1", "2", "3"],
    "group": ["1", "4", "6"],
    "of": ["rank", "stage"],
    **{name: ["true"] for name in ("recompute_early", "blocking", "moe_overlap")},
}
FLAGS = ("recompute_early", "blocking", "moe_overlap")


EVERY_TIME = {
    **{"stages": "4", "microbatches": "8", "of": "stage", "forward": "1/3", "input_grad": "2"},
    **{"weight_grad": "0.7", "backward": "3,4,3,5", "recompute": "1/5", "all_reduce": "9"},
    **{"optimizer": "4", "latency": "1/7", "message_bytes": "2", "bandwidth": "11"},
    **{"embedding": "1,0,1", "loss": "1/2,1,0", "recompute_early": "true", "blocking": "true"},
}
"""Every word of time there is, each of them counting in the end of the step."""


@st.composite
def plans(draw: st.DrawFn) -> dict[str, str]:
    """Draws a schedule, its ranks and microbatches, and a few options more; some are odd."""
    words = {
        "name": draw(st.sampled_from([*(each for each in ENTRIES if each != "auto"), "1f2b"])),
        "stages": draw(st.sampled_from(["1", "2", "4", "4", "4", "3"])),
        "microbatches": draw(st.sampled_from(["4", "8", "8", "6", "1"])),
        "of": "stage",  # said, because the page takes times of a rank where it is not
    }
    more = draw(st.lists(st.sampled_from(list(PLAN_TEXTS)), max_size=3, unique=True))
    words |= {name: draw(st.sampled_from(PLAN_TEXTS[name])) for name in more}
    if draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from(sorted({*words} - {"name", *FLAGS})))
        words[name] = draw(st.sampled_from([each for each in ODD if each.strip() == each]))
    return words


class Plan(NamedTuple):
    """What a door tells of a schedule: when the step ends, its bubble, and its actions."""

    name: str
    makespan: float
    bubble: float
    peaks: tuple[int, int]
    num_actions: int
    causes: dict[str, float]
    """Idle time by cause, of which the memory limit explains some."""

    @classmethod
    def of(cls, measured: MeasuredSchedule) -> Plan:
        peaks, schedule = measured.peaks, measured.schedule
        most = int(peaks.to_weight.max()), int(peaks.to_input.max())
        count = sum(len(schedule[rank]) for rank in range(schedule.num_ranks))
        makespan = float(measured.simulation.makespan)
        causes = {cause.name: float(time) for cause, time in measured.idle.by_cause().items()}
        bubble = float(measured.bubble.of_makespan)
        return cls(schedule.name, makespan, bubble, most, count, causes)


def plan_by_python(words: Mapping[str, str]) -> Plan | str:
    try:
        return Plan.of(ScheduleRequest.of(words["name"], words).measured())
    except InputError as error:
        return str(error)


def plan_by_flags(words: Mapping[str, str]) -> Plan | str:
    flags = [
        each
        for name, text in words.items()
        if name != "name"
        for each in (f"--{name.replace('_', '-')}", *(() if name in FLAGS else (text,)))
    ]
    told = printed("schedule", words["name"], *flags, "--format", "json")
    if told.startswith("serried: "):
        return told.removeprefix("serried: ")
    found = json.loads(told)
    most = found["peak_activations"]
    peaks = max(most["to_weight"]), max(most["to_input"])
    count = sum(map(len, found["actions"]))
    makespan = float(found["makespan"])
    told = found["idle"]["causes"].items()
    causes = {re.sub(r"\W", "_", name).upper(): float(time) for name, time in told}
    return Plan(found["name"], makespan, found["bubble"]["makespan"], peaks, count, causes)


def plan_by_address(words: Mapping[str, str]) -> Plan | str:
    answer = PAGE.get("/api/schedule", params=words)
    if answer.status_code == 400:
        return str(answer.json()["error"])
    found = unpacked(answer.content).header
    peaks = found["peak"]["to_weight"], found["peak"]["to_input"]
    count, causes = found["num_actions"], found["idle"]["causes"]
    return Plan(found["name"], found["makespan"], found["bubble"]["makespan"], peaks, count, causes)


@example({"name": "zbv", "stages": "2", "microbatches": "4", "of": "rank", "forward": "1/3"})
@example({"name": "1f1b", "stages": "2", "microbatches": "4", "of": "stage", "chunks": "2"})
@example({"name": "1f1b", "stages": "x", "microbatches": "4", "of": "stage"})
@example(EVERY_TIME | {"name": "1f1b"})
@example(EVERY_TIME | {"name": "dualpipev", "backward": "4", "overlap": "7/2", "of": "rank"})
@example(EVERY_TIME | {"name": "auto", "memory_limit": "9/2", "memory": "2,-1,-1"})
@example(EVERY_TIME | {"name": "interleaved-1f1b", "backward": "4", "chunks": "3", "group": "6"})
@example(EVERY_TIME | {"name": "interleaved-1f1b", "backward": "4", "moe_overlap": "true"})
@given(plans())
def test_options_an_address_and_python_ask_for_the_same_schedule(words: dict[str, str]) -> None:
    asked = plan_by_python(words)
    assert plan_by_flags(words) == asked
    assert plan_by_address(words) == asked


def test_the_function_for_scripts_asks_as_the_options_do() -> None:
    words = {"name": "zbv", "stages": "4", "microbatches": "8", "forward": "2", "of": "rank"}
    made = serried.schedule("zbv", stages=4, microbatches=8, costs=Costs(forward=2), of="rank")
    assert Plan.of(made) == plan_by_flags(words)
    with pytest.raises(InputError, match="of=node is not known"):
        serried.schedule("zbv", stages=4, microbatches=8, of="node")
