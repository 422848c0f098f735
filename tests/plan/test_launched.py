from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from serried.errors import InputError
from serried.launch.read import read, read_path
from serried.launch.request import LayoutRequest
from serried.plan.asked import plan_request
from serried.plan.launched import model_of
from serried.plan.memory.job_memory import job_memory
from serried.plan.model.parameters import model_parameters
from serried.plan.request import PlanRequest

FILES = Path(__file__).parents[1] / "launch" / "files"
TORCHRUN = "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2 "
SIZES = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 8192 "


def asked(text: str, **words: str) -> PlanRequest:
    config = read(text, name="train.sh")
    return plan_request(LayoutRequest.of(config=config), {"cluster": "h100"} | words)


def test_a_script_of_megatron_is_all_that_a_plan_needs() -> None:
    config = read_path(FILES / "megatron_gpt_175b.sh")
    made = plan_request(LayoutRequest.of(config=config), {"cluster": "h100"})
    assert (made.degrees.tp, made.degrees.pp, made.global_batch) == (8, 16, 1536)
    assert (made.zero, made.compute, made.states) == (0, "fp16", "fp16-adam")
    # 175 B: GELU, biases, tied tables and learned positions are Megatron's defaults.
    assert model_parameters(made.model).total / 1e9 == pytest.approx(174.6, abs=0.05)


def test_mpt_is_planned_as_llm_foundry_computes_it() -> None:
    text = (FILES / "llm_foundry.yaml").read_text()
    config = read(text.replace("n_layers: 24", "n_layers: 24\n  n_heads: 16"), name="mpt.yaml")
    words = {"cluster": "a100", "micro_batch": "8"}
    made = plan_request(LayoutRequest.of({"world_size": 16}, config=config), words)
    assert made.options["implementation"] == "llm-foundry"
    plain = replace(made, options={})
    # Flash-attn keeps the scores in 16 bits alone.
    assert job_memory(made).fullest.total < 0.85 * job_memory(plain).fullest.total


@pytest.mark.parametrize(
    ("options", "states", "offload"),
    [
        ("--optimizer muon --bf16 ", "muon", "none"),
        ("--optimizer sgd ", "sgd-momentum", "none"),
        ("--use-precision-aware-optimizer --exp-avg-dtype bf16 ", "bf16-moments", "none"),
        ("--optimizer-cpu-offload --optimizer adam ", "fp32-grads", "optimizer"),
        ("--cpu-offloading --cpu-offloading-num-layers 4 ", "fp32-grads", "activations"),
    ],
)
def test_a_script_says_its_optimizer_and_what_it_offloads(
    options: str, states: str, offload: str
) -> None:
    made = asked(TORCHRUN + SIZES + "--vocab-size 32000 --global-batch-size 64 " + options)
    assert (made.states, made.offload) == (states, offload)


def test_a_script_says_how_many_layers_go_to_the_host_and_what_swiglu_keeps() -> None:
    told = TORCHRUN + SIZES + "--vocab-size 32000 --global-batch-size 64 --fp8-format hybrid "
    whole = asked(told)
    some = asked(told + "--cpu-offloading --cpu-offloading-num-layers 4 ")
    every = replace(some, options={})
    narrow = asked(told + "--activation-func-fp8-input-store ")
    kept = [job_memory(each).fullest.bytes_of("activations") for each in (whole, some, every)]
    assert kept[0] > kept[1] > kept[2]
    assert job_memory(narrow).fullest.bytes_of("activations") < kept[0]


def test_weights_that_a_script_gathers_in_8_bits_are_held_so() -> None:
    made = asked(
        TORCHRUN + SIZES + "--vocab-size 32000 --global-batch-size 64 --bf16 --fp8-format hybrid "
        "--fp8-param-gather"
    )
    assert made.options["fp8_param_gather"] == "true"


def test_options_of_a_llama_make_a_llama() -> None:
    made = asked(
        TORCHRUN + SIZES + "--ffn-hidden-size 14336 --group-query-attention --num-query-groups 8 "
        "--swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope "
        "--untie-embeddings-and-output-weights --vocab-size 128256 --global-batch-size 64 --bf16 "
        "--use-distributed-optimizer --recompute-granularity selective --recompute-modules "
        "core_attn mlp --fp8-format hybrid --fp8-recipe tensorwise"
    )
    assert model_parameters(made.model).total == 8_030_261_248
    assert (made.zero, made.compute, made.states) == (1, "fp8-cs", "fp32-grads")
    assert made.recompute.modules == ("core_attn", "mlp")


def test_how_megatron_computes_is_read_where_memory_follows_from_it() -> None:
    made = asked(
        TORCHRUN + SIZES + "--global-batch-size 64 --bf16 --no-gradient-accumulation-fusion "
        "--tp-comm-overlap --transformer-impl transformer_engine --hidden-dropout 0.1 "
        "--attention-dropout 0 --moe-token-dispatcher-type alltoall --cross-entropy-loss-fusion "
        "--cross-entropy-fusion-impl te"
    )
    assert made.options == {
        "gradient_accumulation_fusion": "false",
        "tp_comm_overlap": "true",
        "transformer_impl": "transformer_engine",
        "hidden_dropout": "0.1",
        "attention_dropout": "0",
        "moe_token_dispatcher_type": "alltoall",
        "cross_entropy_loss_fusion": "true",
        "cross_entropy_fusion_impl": "te",
    }
    plain = asked(TORCHRUN + SIZES + "--global-batch-size 64 --bf16 --hidden-dropout many")
    assert plain.options == {}
    assert job_memory(made).fullest.bytes_of("blank gradients") == 0
    assert job_memory(plain).fullest.bytes_of("blank gradients") > 0


def test_experts_and_latent_attention_are_read() -> None:
    made = asked(
        TORCHRUN + "--num-layers 27 --hidden-size 2048 --num-attention-heads 16 --seq-length 4096 "
        "--ffn-hidden-size 10944 --swiglu --normalization RMSNorm --disable-bias-linear "
        "--position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 102400 "
        "--num-experts 64 --moe-router-topk 6 --moe-ffn-hidden-size 1408 "
        "--moe-shared-expert-intermediate-size 2816 --moe-layer-freq '([0]*1+[1]*26)' "
        "--multi-latent-attention --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 "
        "--v-head-dim 128 --global-batch-size 64 --expert-model-parallel-size 4"
    )
    assert model_parameters(made.model).total / 1e9 == pytest.approx(15.706, abs=0.001)


def test_what_is_asked_for_goes_before_the_file() -> None:
    made = asked(TORCHRUN + SIZES + "--global-batch-size 64", sequence="4096", model="llama2-7b")
    assert (made.sequence, made.model.name, made.global_batch) == (4096, "llama2-7b", 64)


def test_the_global_batch_follows_from_accumulation() -> None:
    made = asked(TORCHRUN + SIZES + "--micro-batch-size 2 --gradient-accumulation-steps 4")
    assert (made.global_batch, made.num_microbatches) == (2 * 4 * 8, 4)


def test_torchtitan_names_a_flavor_and_cuts_its_batch_into_microbatches() -> None:
    config = read_path(FILES / "titan_deepseek.toml")
    sizes = LayoutRequest.of({"world_size": 32}, config=config)
    made = plan_request(sizes, {"cluster": "h100", "layers": "7,7,7,6"})
    assert (made.model.name, made.schedule) == ("deepseek-v2-lite", "interleaved-1f1b")
    assert (made.micro_batch, made.global_batch) == (1, 4 * 8)


def test_a_named_folder_with_a_config_is_the_model(tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4}
    config |= {"num_attention_heads": 8, "intermediate_size": 1024, "vocab_size": 32000}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    script = f"accelerate launch --num_processes 8 t.py --model_name_or_path {tmp_path} "
    found = model_of(read(script + "--per_device_train_batch_size 1", name="run.sh"))
    assert found is not None and found.layers == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (TORCHRUN + SIZES, "the global batch is missing; give it, such as --global-batch"),
        (TORCHRUN, "does not say the model's layers, hidden and heads; give the model, such as"),
        (
            TORCHRUN + "--model-name-or-path /models/mine --global-batch-size 64",
            "trains /models/mine, which is not among the models that are known",
        ),
        (
            TORCHRUN + SIZES + "--global-batch-size 63",
            "dp=8 x microbatch=1 does not divide the global batch of 63",
        ),
    ],
)
def test_what_a_file_leaves_open_is_asked_for(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        asked(text)
