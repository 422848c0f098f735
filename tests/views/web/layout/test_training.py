"""The page plans and simulates what ``serried plan FILE`` would, and says what no file told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from serried.launch.read import read
from serried.launch.request import LayoutRequest
from serried.plan.asked import plan_request
from serried.plan.request import PlanRequest
from serried.views.report.questions import full_state, plan_state, state_of, words_of_state
from serried.views.web.layout.launch import launch_answer, launch_words
from serried.views.web.plan.query import read_plan_request
from serried.views.web.schedule.query import read_schedule_query
from serried.views.web.wire.dropped import Dropped
from serried.views.web.wire.plan_words import PLANNED
from serried.views.web.wire.query import read_query
from tests.launch.test_files import TEXTS

SCRIPT = "torchrun --nnodes 2 --nproc_per_node 8 x.py --tensor-model-parallel-size 4 "


def dropped(text: str, name: str = "run.sh") -> list[Dropped]:
    return [Dropped(name, len(text.encode()), text.encode())]


def told(text: str) -> dict[str, str]:
    return dict(launch_answer(dropped(text), {})["training"])


def world_of(name: str) -> dict[str, int]:
    """Returns the ranks that are asked for where a file does not tell them."""
    return {} if read(TEXTS[name], name=name).world_size else {"world_size": 64}


def planned_by_page(name: str) -> PlanRequest:
    given = {each: [str(number)] for each, number in world_of(name).items()}
    words = launch_words(dropped(TEXTS[name], name), given)
    asked = words_of_state(plan_state(full_state(state_of(words))))
    return read_plan_request(read_query(asked), asked)


def planned_by_command(name: str) -> PlanRequest:
    config = read(TEXTS[name], name=name)
    given = {each: [str(number)] for each, number in world_of(name).items()}
    known = launch_answer(dropped(TEXTS[name], name), given)["training"]
    assumed = {word: PLANNED[word] for word in known["plan_assumed"].split(",")}
    return plan_request(LayoutRequest.of(world_of(name), config=config), assumed)


@pytest.mark.parametrize(
    "name",
    [
        *("megatron_gpt_175b.sh", "megatron_mixtral.sbatch", "megatron_llama3_fp8.sh"),
        *("internlm_7B_sft.py", "internevo_20B_isp.py", "llm_foundry.yaml", "bloom.slurm"),
        *("titan_deepseek.toml", "swift_sft.sh", "swift_node1.sh", "nanotron_llama.yaml"),
        *("paddle_pretrain.json", "ds_train.sh", "fsdp_trainer.sh", "axolotl_fsdp.yml"),
    ],
)
def test_the_page_plans_what_the_command_plans(name: str) -> None:
    page, command = planned_by_page(name), planned_by_command(name)
    # What the address has to say in words, the file says by leaving it out; it names no file.
    page, command = (
        replace(
            each,
            options={**each.options, "zero": ""},
            model=replace(each.model, name="", source="", left_out=()),
        )
        for each in (page, command)
    )
    assert page == command


def test_the_schedule_is_the_plan_s_with_its_microbatches_and_chunks() -> None:
    state = state_of(launch_words(dropped(TEXTS["megatron_mixtral.sbatch"], "a.sbatch"), {}))
    asked = read_schedule_query(
        {"stages": [state["pp"]], **words_of_state(state)} | {"name": [state["name"].split(",")[0]]}
    )
    plan = planned_by_page("megatron_mixtral.sbatch")
    assert (asked.name, asked.microbatches, asked.chunks, asked.stages) == (
        plan.schedule,
        plan.num_microbatches,
        plan.degrees.chunks,
        plan.degrees.pp,
    )


def test_what_the_file_does_not_say_is_said_to_be_assumed() -> None:
    answer = launch_answer(dropped(f"{SCRIPT} --seq-length 2048"), {})
    assert answer["training"] == {
        "sequence": "2048",
        "microbatches": "16",  # of the batch that is assumed, as the plan has them
        "plan_assumed": "cluster,model,global_batch",
    }
    assert answer["assumed"] == (
        "run.sh does not say the cluster, model and global batch; "
        "the Plan tab shows what is assumed"
    )
    assert told(SCRIPT) == {}, "a file of sizes alone leaves the plan as it was"


def test_a_batch_that_replicas_do_not_divide_is_left_to_the_plan_to_refuse() -> None:
    assert "microbatches" not in told(f"{SCRIPT} --global-batch-size 7")
    assert told(f"{SCRIPT} --global-batch-size 8")["microbatches"] == "2"


def test_a_folder_tells_its_model_where_a_file_of_this_machine_names_it(tmp_path: Path) -> None:
    sizes = '"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 9'
    (tmp_path / "config.json").write_text(
        f'{{"model_type": "llama", "intermediate_size": 128, {sizes}}}'
    )
    files = dropped(f"{SCRIPT} --model-name-or-path {tmp_path} --seq-length 64")
    assert "model" not in launch_words(files, {})
    (model,) = launch_words(files, {}, reads_folders=True)["model"]
    assert model == "4x64:layers=4,hidden=64,heads=4,ffn=128,vocab=9"


def test_a_model_that_cannot_be_is_a_remark_and_the_layout_is_shown() -> None:
    sizes = "--num-layers 4 --hidden-size 64 --num-attention-heads 6 --num-query-groups 4"
    answer = launch_answer(dropped(f"{SCRIPT} {sizes}"), {})
    assert answer["job"] and "model" not in answer["training"]
    assert any("6 query heads" in note for note in answer["notes"])


def test_each_word_has_its_place() -> None:
    batch = "--model-name-or-path meta-llama/Llama-3-8B --per-device-train-batch-size 2"
    text = f"{SCRIPT} \\\n {batch} \\\n --gradient-accumulation-steps 4 --fp16 true"
    sources = launch_answer(dropped(text), {})["sources"]
    places = {each["name"]: (each["value"], each["from"]) for each in sources}
    assert places["model"] == ("llama3-8b", "run.sh line 2, --model-name-or-path")
    assert places["global_batch"] == (
        "32",
        "2 (run.sh line 2, --per-device-train-batch-size) x 4 (run.sh line 3, "
        "--gradient-accumulation-steps), times the replicas",
    )
    sizes = "--num-layers 4 --hidden-size 64 --num-attention-heads 8"
    sources = launch_answer(dropped(f"{SCRIPT} {sizes}"), {})["sources"]
    (model,) = (each for each in sources if each["name"] == "model")
    assert model["value"] == "layers=4, hidden=64, heads=8"
