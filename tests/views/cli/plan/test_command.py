from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serried.views.cli.main import run
from serried.views.cli.plan import command

JOB = ("plan", "--cluster", "h100", "--world-size", "16", "--tp", "2", "--pp", "4")
LLAMA = (*JOB, "--model", "llama3-8b", "--sequence", "8192", "--global-batch", "64")


def test_a_plan_is_printed_and_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*LLAMA]) == 0
    assert capsys.readouterr().out.startswith("fits: ")


def test_what_does_not_fit_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*JOB, "--model", "llama3-70b", "--sequence", "8192", "--global-batch", "64"]) == 1
    assert capsys.readouterr().out.startswith("does not fit: ")


def test_options_reach_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    told = ("--recompute", "full", "--micro-batch", "2", "--compute", "fp8", "--chunks", "2")
    assert run([*LLAMA, *told, "--format", "json"]) == 0
    asked = json.loads(capsys.readouterr().out)["asked"]
    assert (asked["micro_batch"], asked["compute"], asked["recompute"]["kind"]) == (
        2,
        "fp8",
        "full",
    )
    assert (asked["schedule"], len(asked["stage_layers"])) == ("interleaved-1f1b", 8)


def test_layers_are_listed_as_groups_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*LLAMA, "--layers", "7,8,9,8", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["asked"]["stage_layers"] == [7, 8, 9, 8]


@pytest.mark.parametrize("ending", ["svg", "png", "json", "txt"])
def test_the_ending_of_a_file_says_its_form(tmp_path: Path, ending: str) -> None:
    assert run([*LLAMA, "-o", str(tmp_path / f"plan.{ending}")]) == 0
    assert (tmp_path / f"plan.{ending}").stat().st_size > 500


def test_a_layout_is_handed_to_the_launch_writers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*LLAMA, "--emit", "megatron"]) == 0
    assert "--pipeline-model-parallel-size 4" in capsys.readouterr().out


def test_formulas_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*LLAMA, "--explain"]) == 0
    assert "MFU: FLOPs x tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ((), "the model is missing; give it, such as --model llama3-8b"),
        (("--model", "lama3-8b"), "there is no model 'lama3-8b'; the nearest are llama3-8b"),
        (("--model", "none.json"), "none.json cannot be read"),
        ((*LLAMA[9:], "--format", "png"), "a PNG goes into a file"),
        ((*LLAMA[9:], "--constants", "none.toml"), "none.toml cannot be read"),
    ],
)
def test_bad_input_is_a_sentence(
    told: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*JOB, *told]) == 2
    assert sentence in capsys.readouterr().err


def test_a_launch_script_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(__file__).parents[3] / "launch/files/megatron_gpt_175b.sh"
    assert run(["plan", str(file), "--cluster", "h100"]) == 0
    assert "128 GPUs of dgx-h100: tp 8 pp 16, ZeRO 0" in capsys.readouterr().out
    assert run(["plan", str(file), "--cluster", "h100", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["read"]["hidden"] == {
        "value": 12288,
        "where": "megatron_gpt_175b.sh line 33, --hidden-size",
    }


def test_the_planned_step_is_written_as_a_timeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*LLAMA, "--trace", str(tmp_path / "plan.json")]) == 0
    capsys.readouterr()
    assert run(["trace", "stats", str(tmp_path / "plan.json"), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "serried.trace-stats/1"
    assert run([*LLAMA, "--trace", str(tmp_path / "plan.doc")]) == 2
    assert "no suffix that says what to write; those that do: .json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lang", "told"), [("en", "spans of 16 ranks …\n"), ("zh", "正在写入 16 个 rank 的 ")]
)
def test_a_long_timeline_is_told_before_it_is_written(
    lang: str,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "LONG_TRACE", 1)
    assert run([*LLAMA, "--lang", lang, "--trace", str(tmp_path / "plan.json")]) == 0
    written = capsys.readouterr().err
    assert told in written and written.index(told) < written.index("plan.json")


def test_a_png_loses_no_words_in_chinese(tmp_path: Path) -> None:
    paths = {lang: tmp_path / f"{lang}.png" for lang in ("en", "zh")}
    for lang, path in paths.items():
        assert run([*LLAMA, "--lang", lang, "-o", str(path)]) == 0
    assert paths["zh"].read_bytes() == paths["en"].read_bytes()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--explain", "--emit", "megatron"), "two answers"),
        (("--emit", "megatron", "--format", "json"), "has no --format"),
        (("--explain", "-o", "plan.json"), "--explain is text"),
        (("--world-size", "16,32"), "one number of ranks"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert run([*LLAMA, *words]) == 2
    assert sentence in capsys.readouterr().err


def planned(capsys: pytest.CaptureFixture[str], *told: str) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["plan", *told, "--format", "json"]) in (0, 1)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_hybrid_shards_hold_more_and_say_over_how_many_ranks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = ("--model", "llama3-8b", "--cluster", "h100", "--world-size", "32", "--framework", "fsdp")
    told = (*job, "--zero", "3", "--sequence", "4096", "--global-batch", "32")
    whole, hybrid = planned(capsys, *told), planned(capsys, *told, "--set", "dp_shard=8")
    kept = ("parameters", "gradients", "optimizer")
    states = [sum(told["memory"][0]["items"][name] for name in kept) for told in (whole, hybrid)]
    assert states[1] == pytest.approx(4 * states[0], rel=0.01)
    summed = [each for each in hybrid["traffic"] if each["collective"] == "all_reduce"]
    assert [(each["kind"], each["ranks"], each["link"]) for each in summed] == [("dp", 4, "rail")]
    assert run(["plan", *told, "--set", "dp_shard=8"]) == 0
    assert "ZeRO 3 over 8 of 32 ranks" in capsys.readouterr().out


@pytest.mark.parametrize("cluster", ["b200", "gb200", "b300", "gb300"])
def test_blackwell_multiplies_in_4_bits_faster_than_in_8_and_16(
    capsys: pytest.CaptureFixture[str], cluster: str
) -> None:
    job = ("--model", "llama3.1-405b", "--cluster", cluster, "--world-size", "128", "--tp", "4")
    told = (*job, "--pp", "8", "--account-for", "embedding,loss", "--sequence", "8192")
    steps = [
        planned(capsys, *told, "--global-batch", "256", "--compute", each)["time"]["step_s"]
        for each in ("nvfp4", "mxfp8", "bf16")
    ]
    assert steps == sorted(steps)


@pytest.mark.parametrize("cluster", ["mi300x", "mi325x", "mi355x"])
def test_clusters_of_amd_are_planned_and_have_no_nvfp4_of_their_own(
    capsys: pytest.CaptureFixture[str], cluster: str
) -> None:
    job = ("--model", "llama3-70b", "--cluster", cluster, "--world-size", "64", "--tp", "8")
    batch = ("--sequence", "8192", "--global-batch", "64")
    found = planned(capsys, *job, *batch)
    assert 0.1 < found["mfu"] < 0.6
    if cluster != "mi355x":
        assert run(["plan", *job, *batch, "--compute", "nvfp4"]) == 2
        assert "has no fp4 figure" in capsys.readouterr().err


def test_qwen3_235b_over_32_ranks_of_experts_is_planned(
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = ("--model", "qwen3-235b-a22b", "--cluster", "h100", "--world-size", "256", "--tp", "4")
    told = ("--pp", "8", "--account-for", "embedding,loss", "--ep", "32", "--etp", "1")
    found = planned(capsys, *job, *told, "--sequence", "4096", "--global-batch", "256")
    assert found["fits"]
    bad = ("--pp", "2", "--ep", "24", "--sequence", "4096", "--global-batch", "256")
    assert run(["plan", *job, *bad]) == 2
    assert "ep=24" in capsys.readouterr().err
