"""What a run may be asked for, and the sentence for what it may not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serried.errors import InputError
from serried.frameworks import Sizes, layout
from serried.mesh import Layout, Mesh
from serried.runtime.settings import Emulated, ModelSizes, TrainSettings, stage_layers


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
            "tp=16 does not divide 8 heads and the vocabulary of 256; sizes that do: 1, 2, 4, 8",
        ),
        (
            {"world_size": 3, "tp": 3, "model": ModelSizes(heads=6, hidden=48)},
            "tp=3 does not divide 6 heads and the vocabulary of 256; sizes that do: 1, 2",
        ),
        (
            {"world_size": 8, "tp": 2, "pp": 2, "global_batch_size": 12},
            "global batch size 12 is not a multiple of dp=2 x 4 microbatches; "
            "sizes that are: 8, 16, 24, 32, …",
        ),
        (
            {"world_size": 4, "cp": 2},
            "cp=2: training runs with tensor, pipeline and data parallelism only; leave out cp "
            "(serried groups shows context groups)",
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
        ({"world_size": 1, "steps": 0}, "steps=0; it is at least 1"),
        ({"world_size": 1, "global_batch_size": 0}, "global_batch_size=0; it is at least 1"),
        ({"world_size": 1, "microbatches": -1}, "microbatches=-1; it is at least 1"),
        ({"world_size": 1, "lr": 0.0}, "lr=0.0; it is above zero"),
        ({"world_size": 1, "timeout_s": float("nan")}, "timeout_s=nan; it is above zero"),
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
        return replace(layout("internlm", sizes), meshes={"dense": mesh})

    monkeypatch.setattr("serried.runtime.settings.layout", sharded)
    with pytest.raises(InputError) as refused:
        TrainSettings(world_size=4, framework="sharded")
    assert str(refused.value) == (
        "sharded places ranks along replicate=2, shard=2 here; training runs along pp, dp, tp "
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
    ],
)
def test_a_model_that_cannot_be_is_refused(sizes: dict[str, int], sentence: str) -> None:
    with pytest.raises(InputError) as refused:
        ModelSizes(**sizes)
    assert str(refused.value) == sentence


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
