"""A package refuses a schedule's sizes exactly where a finding here says that it does."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serried.errors import InputError
from serried.pipeline import ENTRIES, Refusal, Request, Schedule, generate, refusals

TORCH = {
    "gpipe": "ScheduleGPipe",
    "1f1b": "Schedule1F1B",
    "eager-1f1b": "ScheduleInterleaved1F1B",
    "interleaved-1f1b": "ScheduleInterleaved1F1B",
    "looped-bfs": "ScheduleLoopedBFS",
    "zb-h1": "ScheduleInterleavedZeroBubble",
    "interleaved-zb": "ScheduleInterleavedZeroBubble",
    "zbv": "ScheduleZBVZeroBubble",
    "dualpipev": "ScheduleDualPipeV",
}
IN_A_V = ("zbv", "dualpipev")
PLAIN = ("ScheduleGPipe", "Schedule1F1B")
"""Classes without a list of actions, or with a wrong one."""


class Stage:
    """Is as much of a stage as a schedule looks at before it runs."""

    has_backward = True
    submod = None
    group = None
    device = "cpu"

    def __init__(self, index: int, num_stages: int, num_ranks: int) -> None:
        self.stage_index, self.num_stages = index, num_stages
        self.group_rank, self.group_size = 0, num_ranks
        self.is_first, self.is_last = index == 0, index == num_stages - 1
        self.stage_index_to_group_rank: dict[int, int] = {}


def in_torch(name: str, p: int, m: int, chunks: int) -> Any:
    """Returns PyTorch's schedule of these sizes; None where it refuses them."""
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    own = [0, 2 * p - 1] if name in IN_A_V else range(0, p * chunks, p)
    stages = [Stage(index, p * chunks, p) for index in own]
    made = getattr(schedules, TORCH[name])
    try:
        return made(stages[0] if TORCH[name] in PLAIN else stages, m)
    except ValueError:
        return None


def against(schedule: Schedule, package: str) -> Refusal | None:
    """Returns what a package is said to have against a schedule's sizes."""
    return next((each for each in refusals(schedule) if each.runner.package == package), None)


def own_group(p: int, m: int) -> int:
    return m // max(1, m // p)


sizes = (st.integers(1, 7), st.integers(1, 24), st.integers(1, 3))


@settings(deadline=None)
@given(st.sampled_from(sorted(TORCH)), *sizes)
def test_pytorch_refuses_just_what_a_finding_says(name: str, p: int, m: int, v: int) -> None:
    v = ENTRIES[name].chunks or v
    theirs = in_torch(name, p, m, v)
    group = own_group(p, m) if ENTRIES[name].takes_group else None
    try:
        schedule = generate(name, Request(p, m, v, group))
    except InputError:
        assert theirs is None
        return
    found = against(schedule, "PyTorch")
    assert (theirs is None) == (found is not None)
    if theirs is not None and TORCH[name] not in PLAIN:
        assert lists(theirs) == [schedule.texts(rank) for rank in range(p)]
    if found:
        for near in found.nearest["microbatches"]:
            assert in_torch(name, p, near, v)
        for near in found.nearest["ranks"]:
            assert in_torch(name, near, m, v)


def lists(theirs: Any) -> list[list[str]]:
    ranks = theirs.pipeline_order
    return [
        [str(action) for action in ranks[rank] if action is not None and action.is_compute_op]
        for rank in sorted(ranks)
    ]


class Accepted(Exception):
    """Says that Megatron got as far as asking its model's type, beyond its checks of sizes."""


class Config(SimpleNamespace):
    """Is a configuration in which all is off but the groups."""

    def __getattr__(self, name: str) -> None:
        return None


def megatron_takes(p: int, m: int, group: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Asks Megatron's own functions whether they run these sizes."""
    pytest.importorskip("megatron.core", reason="megatron-core is missing: make bench installs it")
    torch = pytest.importorskip("torch")
    from megatron.core import parallel_state
    from megatron.core.pipeline_parallel import schedules

    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda *a, device=None, **rest: zeros(*a, **rest))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: p)
    # Past its checks it would make groups, which asks for the rank first.
    monkeypatch.setattr(torch.distributed, "get_rank", accepted)
    config = Config(microbatch_group_size_per_vp_stage=group)
    chunk = torch.nn.Identity()
    chunk.config = config
    ranks = SimpleNamespace(size=lambda: p, rank=lambda: 0)
    types = iter([SimpleNamespace()])
    monkeypatch.setattr(schedules, "get_model_type", lambda _: next(types, None) or accepted())
    names = ("tp", "cp", "embd", "pos_embd", "pp", "dp_cp")
    try:
        parallel_state.initialize_model_parallel(
            pipeline_model_parallel_size=p, virtual_pipeline_model_parallel_size=2
        )
    except RuntimeError:
        return False
    except Accepted:
        pass
    try:
        schedules.forward_backward_pipelining_with_interleaving(
            forward_step_func=None,
            data_iterator=[None, None],
            model=[chunk, chunk],
            num_microbatches=m,
            seq_length=1,
            micro_batch_size=1,
            p2p_communicator=SimpleNamespace(config=config, pp_group=ranks),
            pg_collection=SimpleNamespace(**dict.fromkeys(names)),
        )
    except (ValueError, RuntimeError):
        return False
    except Accepted:
        return True
    raise AssertionError("Megatron ran without ranks")


def accepted(*_: object) -> NoReturn:
    raise Accepted


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 24), st.data())
def test_megatron_refuses_just_what_a_finding_says(p: int, m: int, data: st.DataObject) -> None:
    group = data.draw(st.none() | st.integers(1, m + 3))
    with pytest.MonkeyPatch.context() as patched:
        takes = megatron_takes(p, m, p if group is None else group, patched)
    try:
        schedule = generate("interleaved-1f1b", Request(p, m, 2, group))
    except InputError:
        assert not takes
        return
    found = against(schedule, "Megatron Core")
    assert takes == (found is None)
    for changed in near(found, p, m, schedule.group):
        with pytest.MonkeyPatch.context() as patched:
            assert megatron_takes(*changed, patched)


def near(found: Refusal | None, p: int, m: int, group: int | None) -> list[tuple[int, int, int]]:
    """Returns ranks, microbatches and groups of the sizes that a refusal says would run."""
    if found is None:
        return []
    assert group is not None
    is_default = group == min(p, m)
    return [
        *((p, m, each) for each in found.nearest["group"]),
        *(
            (p, each, min(p, each) if is_default else group)
            for each in found.nearest["microbatches"]
        ),
        *((each, m, min(each, m) if is_default else group) for each in found.nearest["ranks"]),
    ]


def test_a_finding_names_package_version_rule_who_runs_it_and_what_would_run() -> None:
    torch, megatron = refusals(generate("interleaved-1f1b", Request(4, 17, 2, 8)))
    assert str(megatron.finding) == (
        "Megatron Core 0.16.1 (forward_backward_pipelining_with_interleaving) refuses "
        "interleaved-1f1b of these sizes: 17 microbatches in groups of 8 leave a last group of 1, "
        "which must be full or hold at least as many as there are ranks, 4; no package that was "
        "checked runs it; near these it runs groups of 6, groups of 9, 16 microbatches or 20 "
        "microbatches"
    )
    assert str(torch.finding) == (
        "PyTorch 2.13.0 (ScheduleInterleaved1F1B) refuses interleaved-1f1b of these sizes: 17 "
        "microbatches over 4 ranks make 4 rounds, which cannot be equal; no package that was "
        "checked runs it; near these it runs 16 microbatches, 20 microbatches or 9 ranks"
    )


@pytest.mark.parametrize(
    ("name", "request_", "rule"),
    [
        ("1f1b", Request(4, 3), "3 microbatches are fewer than 4 stages"),
        ("interleaved-1f1b", Request(4, 3), "groups of 3, where a group holds at least as many "
                                            "microbatches as there are ranks, 4, and at most all "
                                            "3"),
        ("interleaved-1f1b", Request(1, 3), "it needs a pipeline of at least 2 ranks"),
        ("v-half", Request(1, 4), "it needs a pipeline of at least 2 ranks"),
    ],
)  # fmt: skip
def test_each_rule_is_told(name: str, request_: Request, rule: str) -> None:
    (refusal,) = refusals(generate(name, request_))
    assert str(refusal.rule) == rule


def test_a_package_whose_own_groups_are_others_is_not_said_to_run_it() -> None:
    (refusal,) = refusals(generate("interleaved-1f1b", Request(2, 4, 2, 7)))
    assert refusal.runner.package == "Megatron Core"
    assert refusal.run_by == ()
    larger = replace(Request(2, 4, 2), group=4)
    assert refusals(generate("interleaved-1f1b", larger)) == []
