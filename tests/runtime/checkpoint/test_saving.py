"""Runs that stop and go on: the same losses, in the layout that saved and in any other.

Every run of this file is on one launch of four processes; what a run saved, later ones read.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from serried.errors import InputError
from serried.runtime.checkpoint.checkpoint import METADATA, committed, describe
from serried.runtime.checkpoint.export import export, load
from serried.runtime.checkpoint.files import metadata_of, whole_tensors
from serried.runtime.job.report import Resumed, Saved, Validated
from serried.runtime.job.settings import (
    CheckpointSettings,
    ModelSizes,
    OptimizerSettings,
    TrainSettings,
    Validation,
)
from serried.runtime.training.data import Corpus
from tests.runtime.many_runs import Ran, run_many
from tests.soaked import launched, rows

MODEL = ModelSizes(layers=2, hidden=32, heads=4, kv_heads=2, seq_len=32)
BASE = TrainSettings(
    world_size=4,
    model=MODEL,
    optimizer=OptimizerSettings(warmup=2, min_lr=1e-4),
    global_batch_size=8,
    microbatches=2,
    device="cpu",
    steps=4,
    dtype="float64",
    validation=Validation(every=2, sequences=5),
)
UNCUT = replace(BASE, microbatches=1)
"""What has no pipeline to fill: its losses are the same, and it computes half as often."""
CUT = replace(UNCUT, zero=2)
HALF = replace(
    BASE,
    world_size=2,
    pp=2,
    schedule="zbv",
    model=replace(MODEL, layers=4, tie=True),
    dp_style="buffer",
    dtype="float16",
    optimizer=OptimizerSettings(loss_scale=2.0**19, lr_schedule="constant"),
    steps=12,
)
"""Both ends of a tied model on one rank, wide copies of its weights, a loss scale that falls."""

EXPERTS = replace(
    BASE, ep=2, model=replace(MODEL, experts=4, dropout=0.1), validation=Validation(every=0)
)
PADDED = "tp x zero 3, padded"
"""Goes on from a vocabulary without padding, and keeps one."""
OTHERS: Mapping[str, TrainSettings] = {
    "one process": replace(UNCUT, world_size=1),
    "pp x dp zero 3": replace(BASE, pp=2, zero=3),
    "tp x zero 2": replace(CUT, tp=2, sequence_parallel=True),
    "tp x pp, scores split": replace(BASE, tp=2, pp=2, loss_parallel=True),
    "cp x dp buffer": replace(UNCUT, cp=2, dp_style="buffer"),
    PADDED: replace(UNCUT, tp=2, zero=3, loss_parallel=True, vocab_divisible_by=150),
    "tp x dp buffer, padded": replace(UNCUT, tp=2, dp_style="buffer", vocab_divisible_by=150),
}
"""Layouts that go on from what CUT saved."""
SOAKED = {"tp x zero 2", "tp x pp, scores split", "tp x dp buffer, padded"}


def going_on(settings: TrainSettings, folder: Path, step: int = 2) -> TrainSettings:
    return replace(settings, checkpoints=CheckpointSettings(begin_from=folder / f"step-{step:06}"))


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """Mounts a file system of 1500 KiB; None where that is not permitted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=20).returncode
    except FileNotFoundError:
        done = 1
    try:
        yield folder if done == 0 else None
    finally:
        if done == 0:
            subprocess.run(["umount", str(folder)], check=True, timeout=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def disk(folder: Path) -> Iterator[Path | None]:
    with small_disk(folder / "disk") as mounted:
        yield mounted


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, folder: Path, disk: Path | None) -> dict[str, Ran]:
    named = {
        "whole": replace(CUT, checkpoints=CheckpointSettings(folder / "cut", every=2)),
        "again": replace(going_on(CUT, folder / "cut")),
        **{
            name: going_on(each, folder / "cut")
            for name, each in launched(request, OTHERS, SOAKED).items()
        },
        "half": replace(HALF, checkpoints=CheckpointSettings(folder / "half", every=10)),
        "half again": going_on(HALF, folder / "half", 10),
        "half in one": going_on(replace(HALF, world_size=1, pp=1), folder / "half", 10),
        "experts": replace(EXPERTS, checkpoints=CheckpointSettings(folder / "experts", every=2)),
        "experts again": going_on(EXPERTS, folder / "experts"),
        PADDED: replace(
            OTHERS[PADDED],
            checkpoints=CheckpointSettings(
                folder / "padded", every=1, begin_from=folder / "cut" / "step-000002"
            ),
        ),
        "unpadded": going_on(replace(UNCUT, world_size=1), folder / "padded", 3),
        "pruned": replace(
            UNCUT, world_size=2, checkpoints=CheckpointSettings(folder / "pruned", every=1, last=2)
        ),
    }
    if disk:
        # A checkpoint takes about 900 KiB: the first fits, and those after it do not.
        kept = CheckpointSettings(disk / "a", every=2, on_error="continue")
        named["full disk"] = replace(UNCUT, world_size=2, steps=6, checkpoints=kept)
        named["full disk, stop"] = replace(
            BASE,
            world_size=1,
            checkpoints=CheckpointSettings(disk / "b", every=2),
        )
    return dict(zip(named, run_many(list(named.values())), strict=True))


def losses(ran: Ran) -> dict[int, float]:
    return {step.step: step.loss for step in ran.steps if step.loss is not None}


def assert_goes_on(again: Ran, whole: Ran, first: int, tolerance: float) -> None:
    wanted = {step: loss for step, loss in losses(whole).items() if step >= first}
    assert wanted and losses(again) == pytest.approx(wanted, rel=tolerance, abs=0)
    resumed = [event for event in again.events if isinstance(event, Resumed)]
    assert [event.step for event in resumed] == [first]


def test_a_run_goes_on_with_the_losses_it_would_have_had(runs: dict[str, Ran]) -> None:
    assert_goes_on(runs["again"], runs["whole"], 2, 1e-12)


@pytest.mark.parametrize("name", rows(OTHERS, SOAKED))
def test_a_run_goes_on_in_another_layout(name: str, runs: dict[str, Ran]) -> None:
    assert_goes_on(runs[name], runs["whole"], 2, 1e-9)


def test_a_padded_vocabulary_is_kept_without_its_padding(
    runs: dict[str, Ran], folder: Path
) -> None:
    assert_goes_on(runs["unpadded"], runs["whole"], 3, 1e-9)
    ends = ("model.embed.weight", "optimizer.output.weight.exp_avg")
    held = metadata_of(folder / "padded" / "step-000003").state_dict_metadata
    assert [list(getattr(held[name], "size", ())) for name in ends] == [[256, 32]] * 2
    export(folder / "padded", folder / "unpadded.safetensors")
    assert len(load(folder / "unpadded.safetensors").embed.weight) == 256


def test_wide_copies_tied_weights_and_the_loss_scale_go_on(runs: dict[str, Ran]) -> None:
    whole, again = runs["half"], runs["half again"]
    skipped = [step.step for step in whole.steps if step.learned and step.learned.is_skipped]
    assert skipped and max(skipped) < 10  # the scale came down, and something was learned since
    assert_goes_on(again, whole, 10, 0)
    assert [step.learned for step in again.steps] == [step.learned for step in whole.steps[10:]]


def test_a_tied_weight_goes_on_in_one_piece(runs: dict[str, Ran]) -> None:
    assert_goes_on(runs["half in one"], runs["half"], 10, 1e-2)  # float16, in another order


def test_experts_and_dropout_go_on_with_their_random_numbers(runs: dict[str, Ran]) -> None:
    assert_goes_on(runs["experts again"], runs["experts"], 2, 1e-12)


def test_validation_counts_every_byte_once_in_every_layout(
    runs: dict[str, Ran], folder: Path
) -> None:
    names = ["whole", "again", *(OTHERS.keys() & runs.keys())]
    measured = {
        name: [event for event in runs[name].events if isinstance(event, Validated)]
        for name in names
    }
    assert {(each.step, each.num_bytes) for told in measured.values() for each in told} == {
        (2, 5 * 32),
        (4, 5 * 32),
    }
    first, last = (event.loss for event in measured["whole"])
    for name in names[1:]:
        assert [event.loss for event in measured[name]] == pytest.approx([last], rel=1e-9)
    export(folder / "cut" / "step-000002", folder / "early.safetensors")
    assert first == pytest.approx(loss_held_out(folder / "early.safetensors"), rel=1e-9)


def loss_held_out(file: Path) -> float:
    """Returns the mean loss over the last 5 sequences of the text, in one process."""
    corpus, model = Corpus.of(None), load(file)
    first = corpus.num_bytes - 1 - 5 * 32
    text = torch.from_numpy(corpus.read(first, 5 * 32 + 1).copy()).long()
    with torch.no_grad():
        scores = model(text[:-1].view(5, 32)).flatten(0, 1)
    return functional.cross_entropy(scores, text[1:]).item()


def test_each_checkpoint_is_a_folder_told_of_when_it_is_committed(
    runs: dict[str, Ran], folder: Path
) -> None:
    told = [event for event in runs["whole"].events if isinstance(event, Saved)]
    paths = [folder / "cut" / f"step-00000{step}" for step in (2, 4)]
    assert [(event.step, event.path, event.reason) for event in told] == [
        (2, str(paths[0]), None),
        (4, str(paths[1]), None),
    ]
    assert committed(folder / "cut") == paths
    assert (describe(paths[0]).step, describe(paths[0]).samples) == (2, 16)


def test_only_the_newest_stay_where_so_many_are_to_be_kept(
    runs: dict[str, Ran], folder: Path
) -> None:
    assert not runs["pruned"].error
    assert sorted(each.name for each in (folder / "pruned").iterdir()) == [
        "step-000003",
        "step-000004",
    ]


def test_a_full_disk_leaves_the_last_commit_and_the_run_goes_on(
    runs: dict[str, Ran], disk: Path | None
) -> None:
    if disk is None:
        pytest.skip("needs the right to mount a tmpfs (CAP_SYS_ADMIN)")
    ran = runs["full disk"]
    assert sorted(losses(ran)) == list(range(6))
    told = [event for event in ran.events if isinstance(event, Saved)]
    assert [(event.step, event.reason) for event in told] == [
        (2, None),
        (4, "No space left on device"),
        (6, "No space left on device"),
    ]
    assert [each.name for each in (disk / "a").iterdir()] == ["step-000002"]
    describe(disk / "a" / "step-000002")


def test_a_full_disk_ends_a_run_that_is_to_stop_then(
    runs: dict[str, Ran], disk: Path | None
) -> None:
    if disk is None:
        pytest.skip("needs the right to mount a tmpfs (CAP_SYS_ADMIN)")
    assert runs["full disk, stop"].error == (
        f"checkpoint {disk / 'b' / 'step-000002'} could not be written: No space left on device; "
        "there is no earlier one. Make room and --resume, or let the run go on without it: "
        "--on-save-error continue"
    )


# ------------------------------------------------------------------------------- what is read


def spoilt(runs: dict[str, Ran], folder: Path, tmp_path: Path) -> Path:
    """Returns a copy of a checkpoint, to be spoilt."""
    assert runs["whole"].steps
    copy = tmp_path / "step-000002"
    copy.mkdir()
    for file in (folder / "cut" / "step-000002").iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    return copy


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\x80\x04N.",
        b"cos\nsystem\n(S'touch PLACE'\ntR.",
        b'cbuiltins\neval\n(S\'open("PLACE", "w")\'\ntR.',
    ],
)
def test_metadata_that_is_no_metadata_is_refused_and_runs_nothing(
    runs: dict[str, Ran], folder: Path, tmp_path: Path, metadata: bytes
) -> None:
    copy, trap = spoilt(runs, folder, tmp_path), tmp_path / "trap"
    (copy / METADATA).write_bytes(metadata.replace(b"PLACE", str(trap).encode()))
    with pytest.raises(InputError) as refused:
        whole_tensors(copy, "model.")
    assert str(refused.value) == (
        f".metadata of {copy} is damaged or not torch's; begin from another checkpoint"
    )
    assert not trap.exists()


def test_tensors_that_cannot_be_read_are_told_of(
    runs: dict[str, Ran], folder: Path, tmp_path: Path
) -> None:
    copy = spoilt(runs, folder, tmp_path)
    for file in copy.glob("*.distcp"):
        file.write_bytes(bytes(file.stat().st_size))
    with pytest.raises(InputError, match=r"^checkpoint .* cannot be read: .*; begin from another$"):
        whole_tensors(copy, "model.")


def test_a_checkpoint_holds_each_tensor_under_its_name_in_the_whole_model(
    runs: dict[str, Ran], folder: Path
) -> None:
    assert runs["half"].steps
    names = set(metadata_of(folder / "half" / "step-000010").state_dict_metadata)
    layer = "layers.3.attention.wq.weight"
    assert {f"model.{layer}", f"optimizer.{layer}.exp_avg", "random.1.cpu"} <= names
    assert "model.embed.weight" in names and "model.output.weight" not in names


# ------------------------------------------------------------------------------- export


def logits_of(folder: Path, name: str, text: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    import transformers

    model = getattr(transformers, name).from_pretrained(folder, dtype=dtype)
    with torch.no_grad():
        logits: torch.Tensor = model.eval()(input_ids=text).logits
    return logits.double()


@pytest.mark.parametrize(
    ("name", "loaded_by", "dtype", "tolerance"),
    [
        # transformers turns by angles of float32 in any type, and its experts take no float64.
        ("cut", "LlamaForCausalLM", torch.float64, 1e-6),
        ("half", "LlamaForCausalLM", torch.float64, 1e-6),
        ("experts", "MixtralForCausalLM", torch.float32, 1e-5),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_transformers_computes_the_same_from_an_export(
    runs: dict[str, Ran],
    folder: Path,
    tmp_path: Path,
    name: str,
    loaded_by: str,
    dtype: torch.dtype,
    tolerance: float,
) -> None:
    assert runs["whole"].steps
    export(folder / name, tmp_path / "model.safetensors")
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == [loaded_by]
    text = torch.randint(256, (2, 32), generator=torch.Generator().manual_seed(0))
    model = load(tmp_path / "model.safetensors").double().eval()
    with torch.no_grad():
        own = model(text)
    found = logits_of(tmp_path, loaded_by, text, dtype)
    torch.testing.assert_close(found, own, rtol=0, atol=tolerance)


def test_others_may_read_an_export_as_any_file(
    runs: dict[str, Ran], folder: Path, tmp_path: Path
) -> None:
    assert runs["whole"].steps
    export(folder / "cut", tmp_path / "model.safetensors")
    (tmp_path / "any").touch()
    assert len({file.stat().st_mode for file in tmp_path.iterdir()}) == 1


def test_an_export_that_cannot_be_written_is_told_of(
    runs: dict[str, Ran], folder: Path, tmp_path: Path
) -> None:
    assert runs["whole"].steps
    (tmp_path / "no").write_text("a file, where a folder is asked for")
    with pytest.raises(InputError, match=f"^folder {tmp_path}/no cannot be made: "):
        export(folder / "cut", tmp_path / "no" / "m.safetensors")
