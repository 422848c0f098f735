"""What a run may be asked for, and the sentence for what it may not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from serried.errors import InputError
from serried.frameworks import Sizes, layout
from serried.mesh import Layout, Mesh
from serried.runtime.job.settings import (
    Emulated,
    ModelSizes,
    OptimizerSettings,
    TrainSettings,
    stage_layers,
)

REAL_ONLY: dict[str, dict[str, Any]] = {
    "cp": {"cp": 2},
    "zero": {"zero": 1},
    "experts": {"model": ModelSizes(experts=2), "sequence_parallel": True},
    "sequence_parallel": {"sequence_parallel": True},
    "loss_parallel": {"loss_parallel": True},
    "recompute": {"recompute": "full"},
    "dtype": {"dtype": "float16"},
}
"""What emulated compute has no use for, and how each is asked for."""


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"world_size": 0}, "world size 0 cannot be; it is at least 1 rank"),
        ({"world_size": -8}, "world size -8 cannot be; it is at least 1 rank"),
        ({"world_size": 8, "tp": 3}, "tp=3 does not divide 8 ranks; sizes that do: 1, 2, 4, 8"),
        ({"world_size": 8, "pp": 0}, "pp=0; a size is at least 1"),
        (
            {"world_size": 8, "pp": 8},
            "layers=4 cannot fill pp=8 stages; take at least 8 layers, or pp up to 4",
        ),
        (
            {"world_size": 16, "tp": 16},
            "tp=16 does not divide 8 heads; tp can be 1, 2, 4, 8, or take heads=16 with hidden=64",
        ),
        (
            {"world_size": 5, "tp": 5, "model": ModelSizes(heads=6, hidden=48)},
            "tp=5 does not divide 6 heads; tp can be 1, 2, 3, 6, or take heads=10 with hidden=60",
        ),
        (
            {"world_size": 8, "tp": 2, "pp": 2, "global_batch_size": 12},
            "global batch size 12 is not a multiple of dp=2 x 4 microbatches; "
            "sizes that are: 8, 16, 24, 32, …",
        ),
        (
            {"world_size": 4, "options": {"num_experts": "4"}},
            "setting 'num_experts' does not place ranks and a run would ignore it; "
            "settings that do: use_tp_pp_dp_mapping",
        ),
        (
            {"world_size": 1, "trace_steps": (20, 30)},
            "trace steps 20:30 hold none of the steps 0 to 19; "
            "give the first and the one after the last, such as 0:20",
        ),
        (
            {"world_size": 1, "trace_steps": (3, 3)},
            "trace steps 3:3 hold none of the steps 0 to 19; "
            "give the first and the one after the last, such as 0:20",
        ),
        (
            {"world_size": 2, "pp": 2, "schedule": "zbv", "model": ModelSizes(layers=3)},
            "layers=3 cannot fill the 4 stages that zbv has on pp=2; take at least 4 layers",
        ),
        (
            {"world_size": 2, "pp": 2, "schedule": "looped-bfs", "chunks": 3},
            "layers=4 cannot fill the 6 stages that looped-bfs has on pp=2; take at least 6 layers",
        ),
        (
            {"world_size": 4, "pp": 4, "schedule": "dualpipev", "model": ModelSizes(layers=8)},
            "dualpipev with 4 microbatches cannot be; it needs at least 8",
        ),
        (
            {"world_size": 4, "tp": 4, "model": ModelSizes(kv_heads=2)},
            "tp=4 does not divide 2 KV heads, so that ranks would hold parts of one; tp can be "
            "1, 2, or KV heads a multiple of 4 that divides 8",
        ),
        (
            {"world_size": 4, "cp": 4, "model": ModelSizes(seq_len=60)},
            "ring over cp=4 cuts a sequence into 8 equal pieces, which 60 cannot be cut into; "
            "lengths that can: 64, 72, 80, 88, …",
        ),
        (
            {"world_size": 4, "cp": 4, "cp_form": "ulysses", "model": ModelSizes(kv_heads=2)},
            "ulysses gives each of cp=4 ranks whole heads, and 4 does not divide 8 heads and 2 KV "
            "heads; sizes that do: 1, 2; other forms take any: ring, ring-two-pass, all-gather",
        ),
        (
            {"world_size": 4, "cp": 2, "framework": "internlm"},
            "cp=2, but internlm has no cp; it takes tp, pp, dp, ep, zero1, nettest",
        ),
        (
            {"world_size": 2, "sequence_parallel": True},
            "sequence_parallel splits work among tensor parallel ranks, and tp=1; "
            "take tp of 2 or more or leave it out",
        ),
        (
            {"world_size": 2, "loss_parallel": True},
            "loss_parallel splits work among tensor parallel ranks, and tp=1; "
            "take tp of 2 or more or leave it out",
        ),
        (
            {"world_size": 2, "tp": 2, "sequence_parallel": True, "model": ModelSizes(seq_len=33)},
            "sequence_parallel cuts a sequence of 33 into cp x tp = 1 x 2 equal parts, which it "
            "cannot be; lengths that can: 2, 4, 6, 8, …",
        ),
        (
            {"world_size": 2, "ep": 2},
            "ep=2 shares out experts, and the model has none; add experts=8",
        ),
        (
            {"world_size": 4, "ep": 4, "model": ModelSizes(experts=6)},
            "ep=4 does not divide 6 experts; sizes that do: 1, 2, 3, 6",
        ),
        (
            {"world_size": 3, "ep": 2, "model": ModelSizes(experts=6)},
            "ep=2 does not divide 3 ranks; sizes that do: 1, 3",
        ),
        (
            {"world_size": 2, "tp": 2, "model": ModelSizes(experts=4)},
            "experts with tp=2 need sequence_parallel: without it all tensor parallel ranks send "
            "the same bytes to experts; add it or take tp=1",
        ),
        (
            {"world_size": 2, "framework": "internlm", "model": ModelSizes(experts=4)},
            "internlm places no experts; take megatron, which does, or experts=0",
        ),
        ({"world_size": 2, "zero": 4}, "ZeRO stage 4 is not known; stages are 0 to 3"),
        (
            {"world_size": 2, "zero": 2, "dp_style": "buffer"},
            "zero=2 shards what dp_style=buffer keeps whole; take zero=0, or dp_style=replicate",
        ),
        (
            {"world_size": 4, "zero_shard": 2},
            "zero_shard=2 says how many ranks share one copy, and zero=0 shares nothing; "
            "take zero 1, 2 or 3",
        ),
        (
            {"world_size": 4, "zero": 2, "zero_shard": 3},
            "zero_shard=3 does not divide dp x cp = 4 ranks; sizes that do: 1, 2, 4",
        ),
        (
            {"world_size": 4, "zero": 2, "zero_shard": 0},
            "zero_shard=0 does not divide dp x cp = 4 ranks; sizes that do: 1, 2, 4",
        ),
        *(
            (
                {"world_size": 4, "tp": 2, "emulated": Emulated(), **asked},
                f"emulated compute does no arithmetic, so {name} would show nothing; "
                "leave it out or compute for real",
            )
            for name, asked in REAL_ONLY.items()
        ),
        ({"world_size": 1, "steps": 0}, "steps=0; it is at least 1"),
        ({"world_size": 1, "global_batch_size": 0}, "global_batch_size=0; it is at least 1"),
        ({"world_size": 1, "microbatches": -1}, "microbatches=-1; it is at least 1"),
        ({"world_size": 1, "timeout_s": float("nan")}, "timeout=nan; it is above zero"),
        (
            {"world_size": 4, "framework": "internlm", "order": "tp-dp-pp"},
            "order 'tp-dp-pp' cannot be set: internlm always uses tensor-pipeline-data",
        ),
    ],
)
def test_a_run_that_cannot_be_is_refused_with_sizes_that_can(
    asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError) as refused:
        TrainSettings(**asked)
    assert str(refused.value) == sentence


def test_a_framework_that_places_ranks_along_other_axes_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sharded(name: str, sizes: Sizes) -> Layout:
        mesh = Mesh({"replicate": 2, "shard": 2})
        made = layout("internlm", sizes)
        return replace(made, framework=name, meshes={"dense": mesh})

    monkeypatch.setattr("serried.runtime.job.settings.layout", sharded)
    with pytest.raises(InputError) as refused:
        TrainSettings(world_size=4, framework="sharded")
    assert str(refused.value) == (
        "sharded places ranks along replicate=2, shard=2 here; training runs along pp, dp, cp, tp "
        "only, as megatron and internlm place them"
    )


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        (
            {"hidden": 60, "heads": 8},
            "hidden=60 cannot be cut into 8 heads of an even size; "
            "sizes that can: 16, 32, 48, 64, …",
        ),
        ({"layers": 0}, "layers=0; it is at least 1"),
        ({"heads": 0}, "heads=0; it is at least 1"),
        ({"seq_len": -3}, "seq_len=-3; it is at least 1"),
        (
            {"heads": 8, "kv_heads": 3},
            "8 heads cannot share 3 KV heads evenly; numbers that fit: 1, 2, 4, 8",
        ),
        (
            {"heads": 8, "kv_heads": 0},
            "8 heads cannot share 0 KV heads evenly; numbers that fit: 1, 2, 4, 8",
        ),
        ({"experts": 4, "top_k": 5}, "top_k=5 of 4 experts cannot be; take k up to 4"),
        ({"experts": -1}, "experts=-1; it is zero or more"),
        ({"balance": float("inf")}, "balance=inf; it is zero or more"),
        ({"dropout": 1.0}, "dropout=1.0; it is from 0 up to, but not, 1"),
    ],
)
def test_a_model_that_cannot_be_is_refused(sizes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        ModelSizes(**sizes)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"lr": 0.0}, "lr=0.0; it is above zero"),
        ({"loss_scale": float("nan")}, "loss_scale=nan; it is above zero"),
        ({"clip": -1.0}, "clip=-1.0; it is zero or more"),
        ({"loss_scale_window": 0}, "loss_scale_window=0; it is at least 1"),
        (
            {"lr": 1e-3, "min_lr": 2e-3},
            "min_lr=0.002 is above lr=0.001, where the rate comes down from; take at most 0.001",
        ),
    ],
)
def test_a_way_to_learn_that_cannot_be_is_refused(asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        OptimizerSettings(**asked)
    assert str(refused.value) == sentence


def test_the_rate_rises_through_warm_up_and_falls_along_a_cosine_or_stays() -> None:
    cosine = OptimizerSettings(lr=1.0, min_lr=0.2, warmup=2)
    rates = [cosine.rate(update, 10) for update in range(11)]
    assert rates[:3] == [0.5, 1.0, 1.0]
    assert all(after < before for before, after in pairwise(rates[2:]))
    assert [rates[6], rates[10]] == pytest.approx([0.6, 0.2])
    assert {replace(cosine, lr_schedule="constant").rate(n, 10) for n in range(2, 12)} == {1.0}


def test_emulated_times_are_above_zero() -> None:
    with pytest.raises(InputError) as refused:
        Emulated(forward_ms=0)
    assert str(refused.value) == "forward_ms=0; it is above zero"


def test_data_parallelism_takes_what_the_other_sizes_leave() -> None:
    settings = TrainSettings(world_size=16, tp=2, pp=2, global_batch_size=32)
    assert (settings.dp, settings.microbatch_size) == (4, 2)


@pytest.mark.parametrize(
    ("layers", "pp", "held"),
    [
        (4, 1, [[0, 1, 2, 3]]),
        (4, 4, [[0], [1], [2], [3]]),
        (5, 2, [[0, 1, 2], [3, 4]]),
        (7, 3, [[0, 1, 2], [3, 4], [5, 6]]),
    ],
)
def test_stages_hold_all_layers_in_order_as_evenly_as_can_be(
    layers: int, pp: int, held: list[list[int]]
) -> None:
    assert [list(each) for each in stage_layers(layers, pp)] == held


def test_the_recorded_window_is_half_open() -> None:
    settings = TrainSettings(world_size=1, steps=8, trace_steps=(3, 6))
    assert [step for step in range(8) if settings.records(step)] == [3, 4, 5]
    assert all(TrainSettings(world_size=1, steps=8).records(step) for step in range(8))


def test_a_job_says_what_the_layout_can_be_made_of_again() -> None:
    settings = TrainSettings(
        world_size=8,
        tp=2,
        pp=2,
        options={"use_tp_pp_dp_mapping": "true"},
        emulated=Emulated(),
    )
    job = settings.job("gloo")
    assert (job.framework, job.world_size, job.order) == ("megatron", 8, "tp-cp-ep-pp-dp")
    assert {axis: job.sizes[axis] for axis in ("tp", "pp", "dp")} == {"tp": 2, "pp": 2, "dp": 2}
    assert (job.schedule, job.num_microbatches, job.compute) == ("1f1b", 4, "emulated")
    assert job.options == {"use_tp_pp_dp_mapping": "true"}


def test_a_job_names_its_schedule(tmp_path: Path) -> None:
    plan = tmp_path / "plan.csv"
    plan.write_text("0F0,0B0\n")
    named = TrainSettings(world_size=2, pp=2, schedule="zbv")
    read = TrainSettings(world_size=1, microbatches=1, schedule=str(plan))
    assert [each.job("gloo").schedule for each in (named, read)] == ["zbv", "plan.csv"]


def test_resolved_settings_name_files_by_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.csv").write_text("0F0,0B0\n")
    settings = TrainSettings(
        world_size=1,
        microbatches=1,
        data=Path("text"),
        trace_dir=Path("trace"),
        schedule="plan.csv",
    )
    expected = replace(
        settings,
        data=tmp_path / "text",
        trace_dir=tmp_path / "trace",
        schedule=str(tmp_path / "plan.csv"),
    )
    assert settings.resolved() == expected
    assert TrainSettings(world_size=1).resolved().schedule == "1f1b"
