"""What a plan says of itself where it lies beyond what was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from serried.plan.catalog import cluster_named, model_named
from serried.plan.degrees import Degrees
from serried.plan.job_plan import JobPlan, job_plan
from serried.plan.model.hugging_face import shape_of
from serried.plan.request import PlanRequest
from serried.views.plan.document import plan_document
from serried.views.plan.doubts import doubts
from serried.views.plan.text import plan_parts
from serried.views.sentences import say


def plan(cluster: str = "dgx-h100", **told: Any) -> JobPlan:
    degrees = Degrees(**told.pop("degrees", {"tp": 2, "dp": 8}))
    asked = PlanRequest(
        model_named("llama3-8b"),
        cluster_named(cluster),
        degrees,
        global_batch=degrees.dp,
        **told,
    )
    return job_plan(asked)


def test_a_plan_of_what_was_measured_has_no_doubts() -> None:
    assert list(doubts(plan())) == []


def test_a_job_larger_than_any_says_so_in_one_sentence_everywhere() -> None:
    found = plan(degrees={"dp": 50_000}, zero=3, framework="fsdp")
    (sentence,) = doubts(found)
    text = say(sentence, "en")
    assert "50,000 GPUs (at most" in text
    assert "ranks that share weights" in text
    assert f"{found.widened:.1f} times as wide" in text
    assert "beyond what was measured" in " ".join(
        each for each in plan_parts(found, columns=100) if isinstance(each, str)
    )
    assert text in plan_document(found)["time"]["verdict"]
    assert plan_document(found)["time"]["beyond"][0]["size"] == "gpus"


def test_a_job_on_more_gpus_than_its_cluster_has_says_so() -> None:
    (sentence,) = doubts(plan("jean-zay", degrees={"tp": 8, "dp": 64}))
    assert say(sentence, "en") == "jean-zay has 416 GPUs, and the job takes 512"


def test_gpus_and_software_that_nobody_measured_are_named() -> None:
    (of_gpu,) = doubts(plan("h800"))
    assert say(of_gpu, "en").startswith("no step of h800 was measured")
    (of_generation,) = doubts(plan("mi300x"))
    assert "mi300x under megatron" in say(of_generation, "en")


def test_a_model_that_also_sees_says_that_its_text_alone_is_planned() -> None:
    sizes = {"num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8}
    text = {"model_type": "mistral", "intermediate_size": 2048, "vocab_size": 32000, **sizes}
    seeing = shape_of({"model_type": "llava", "vision_config": {}, "text_config": text}, "llava")
    found = plan()
    (sentence,) = doubts(job_plan(replace(found.asked, model=seeing)))
    assert "its config has vision_config too" in say(sentence, "en")
    assert "vision_config" in say(sentence, "zh")
