"""Megatron-core's own schedules run on two ranks and are recorded by their actions.

Megatron asks for CUDA by name in a few places; without a GPU those words mean the CPU. Nothing
else of it is changed: functions, messages and order are the package's own.
"""

from __future__ import annotations

import inspect
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.overrides import TorchFunctionMode

import serried
from serried.runtime.hooks.megatron import megatron_patches
from serried.runtime.recorder.sink import SpanSink
from serried.runtime.recording import api as recorder_doors
from serried.trace.merge.in_memory import merge
from serried.trace.model.pairs import pair_messages
from serried.trace.model.trace import Trace
from tests.runtime.rank_group import DEVICES, run_ranks

pytest.importorskip("megatron.core", reason="megatron-core is missing: make bench installs it")

STEPS, MICROBATCHES, HIDDEN, LENGTH = 2, 4, 8, 3


class CudaMeansCpu(TorchFunctionMode):
    """Makes tensors on the CPU that are asked for on CUDA, where ranks are on the CPU."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), options: Any = None
    ) -> Any:
        options = dict(options or {})
        if options.get("device") == "cuda":
            options["device"] = torch.get_default_device().type
        return function(*args, **options)


class Chunk(nn.Module):
    """Is what Megatron asks of a model: a layer, its input, its configuration."""

    def __init__(self, config: Any) -> None:
        from megatron.core.enums import ModelType

        super().__init__()
        self.config = config
        self.model_type = ModelType.encoder_or_decoder
        self.layer = nn.Linear(HIDDEN, HIDDEN)
        self.given: torch.Tensor | None = None

    def set_input_tensor(self, given: list[torch.Tensor]) -> None:
        self.given = given[0]

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.layer(batch if self.given is None else self.given)
        return output


def forward_of_user(batches: Any, model: Any) -> Any:
    output = model(next(batches))

    def loss(output: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        mean = output.pow(2).mean()
        return mean, {"loss": mean.detach()}

    return output, loss


def batches() -> Any:
    while True:
        yield torch.randn(LENGTH, 1, HIDDEN)


def megatron(folder: Path) -> dict[str, Any]:
    """Runs three schedules of Megatron-core, two recorded steps each."""
    from megatron.core import parallel_state
    from megatron.core.model_parallel_config import ModelParallelConfig
    from megatron.core.pipeline_parallel import schedules

    if torch.get_default_device().type == "cpu":
        torch.cuda.current_device = lambda: "cpu"  # type: ignore[assignment, return-value]
    world = dist.get_world_size()
    runs = {
        "none": (schedules.forward_backward_no_pipelining, 1, 1),
        "1f1b": (schedules.forward_backward_pipelining_without_interleaving, world, 1),
        "interleaved": (schedules.forward_backward_pipelining_with_interleaving, world, 2),
        "overlapped": (schedules.forward_backward_pipelining_with_interleaving, world, 2),
    }
    for name, (run, pp, chunks) in runs.items():
        virtual = chunks if chunks > 1 else None
        parallel_state.initialize_model_parallel(
            1, pp, virtual_pipeline_model_parallel_size=virtual
        )
        config = ModelParallelConfig(
            pipeline_dtype=torch.float32,
            pipeline_model_parallel_size=pp,
            virtual_pipeline_model_parallel_size=virtual,
            batch_p2p_comm=name != "overlapped",
            overlap_p2p_comm=name == "overlapped",
            batch_p2p_sync=False,
        )
        for key, value in WANTED.items():
            setattr(config, key, value)
        model = [Chunk(config) for _ in range(chunks)]
        optimizer = torch.optim.SGD([p for each in model for p in each.parameters()], lr=0.1)
        for step in range(STEPS + 1):
            with CudaMeansCpu(), serried.record_steps(step, 1, STEPS + 1, folder=folder / name):
                run(
                    forward_step_func=forward_of_user,
                    data_iterator=[batches() for _ in model],
                    model=model,
                    num_microbatches=MICROBATCHES,
                    seq_length=LENGTH,
                    micro_batch_size=1,
                    forward_only=False,
                )
                optimizer.step()
        recorder_doors.finish()
        parallel_state.destroy_model_parallel()
    return {"is reduced": reduced(folder / "reduced")}


def reduced(folder: Path) -> bool:
    """Reduces gradients by Megatron's own DDP and tells whether the ranks' agree."""
    from megatron.core import parallel_state
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
    from megatron.core.transformer.transformer_config import TransformerConfig

    parallel_state.initialize_model_parallel(1, 1)
    config = TransformerConfig(num_layers=1, hidden_size=HIDDEN, num_attention_heads=1)
    torch.manual_seed(dist.get_rank())
    with CudaMeansCpu():
        ddp = DistributedDataParallel(config, DistributedDataParallelConfig(), Chunk(config))
        for step in range(STEPS):
            with serried.record_steps(step, 0, STEPS, folder=folder):
                ddp.zero_grad_buffer()
                ddp(next(batches())).sum().backward()
                ddp.finish_grad_sync()
    recorder_doors.finish()
    parallel_state.destroy_model_parallel()
    own = ddp.module.layer.weight.main_grad.flatten()
    both = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(both, own)
    return torch.equal(*both)


WANTED = {"hidden_size": HIDDEN, "fine_grained_activation_offloading": False}
"""What schedules read of a transformer's configuration beyond the one given."""


@pytest.fixture(scope="module", params=DEVICES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("megatron")
    answers = run_ranks(megatron, 2, made, made, device=request.param)
    assert answers == [{"is reduced": True}] * 2
    return made


def actions(trace: Trace) -> dict[int, Counter[str]]:
    """Returns how often each action was recorded on each rank."""
    found: dict[int, Counter[str]] = {}
    for span in trace.spans:
        found.setdefault(span.rank, Counter())[str(span.action)] += 1
    return found


def of_a_step(kinds: dict[str, tuple[int, ...]]) -> dict[str, int]:
    """Returns what ``STEPS`` steps hold: each kind for each microbatch of some stages."""
    once = {
        f"{stage}{kind}{microbatch}": STEPS
        for kind, stages in kinds.items()
        for stage in stages
        for microbatch in range(MICROBATCHES)
    }
    return {**once, "OPTIMIZER": STEPS}


def test_a_rank_without_a_pipeline_does_forwards_and_backwards(folder: Path) -> None:
    trace = merge([folder / "none"])
    assert actions(trace) == dict.fromkeys(range(2), of_a_step({"F": (0,), "B": (0,)}))


def test_1f1b_is_recorded_with_its_messages(folder: Path) -> None:
    trace = merge([folder / "1f1b"])
    assert actions(trace) == {
        0: of_a_step({"F": (0,), "B": (0,), "SEND_F": (0,), "RECV_B": (0,)}),
        1: of_a_step({"F": (1,), "B": (1,), "SEND_B": (1,), "RECV_F": (1,)}),
    }
    assert {(s.rank, s.peer) for s in trace.spans if s.peer >= 0} == {(0, 1), (1, 0)}


@pytest.mark.parametrize("name", ["interleaved", "overlapped"])
def test_virtual_stages_are_told_apart(name: str, folder: Path) -> None:
    assert actions(merge([folder / name])) == {
        0: of_a_step(
            {"F": (0, 2), "B": (0, 2), "SEND_F": (0, 2), "RECV_F": (2,), "SEND_B": (2,)}
            | {"RECV_B": (0, 2)}
        ),
        1: of_a_step(
            {"F": (1, 3), "B": (1, 3), "RECV_F": (1, 3), "SEND_F": (1,), "SEND_B": (1, 3)}
            | {"RECV_B": (1,)}
        ),
    }


@pytest.mark.parametrize(("name", "boundaries"), [("1f1b", 1), ("interleaved", 3)])
def test_every_message_of_megatron_finds_its_partner(
    name: str, boundaries: int, folder: Path
) -> None:
    pairs = pair_messages(merge([folder / name]).spans)
    assert len(pairs.sends) == 2 * boundaries * MICROBATCHES * STEPS


def test_what_is_left_of_the_gradients_reduction_is_recorded(folder: Path) -> None:
    trace = merge([folder / "reduced"])
    for rank in range(2):
        of_rank = [str(span.action) for span in trace.spans if span.rank == rank]
        assert of_rank == ["0F0", "0B0", "0REDUCE_GRAD"] * STEPS


def test_the_layout_is_that_of_megatron_s_own_groups(folder: Path) -> None:
    trace = merge([folder / "1f1b"])
    assert (trace.job.framework, trace.job.sizes["pp"], trace.warnings) == ("megatron", 2, ())


def test_hooks_stand_on_the_package_s_functions_and_leave_them(tmp_path: Path) -> None:
    from megatron.core.pipeline_parallel import p2p_communication, schedules

    communicator = p2p_communication.P2PCommunicator
    before = schedules.forward_step, schedules.backward_step, communicator._communicate
    patches = megatron_patches(SpanSink(lambda: pytest.fail("no span is to come")))
    for patch in patches:
        patch.put_in()
    during = schedules.forward_step, schedules.backward_step, communicator._communicate
    for patch in reversed(patches):
        patch.take_out()
    assert all(ours is not theirs for ours, theirs in zip(during, before, strict=True))
    assert before == (
        schedules.forward_step,
        schedules.backward_step,
        communicator._communicate,
    )


def combined(  # its parameters are those of Megatron's own, which needs CUDA streams
    forward_step_func: Any,
    data_iterator: Any,
    f_model: Any,
    num_microbatches: int,
    input_tensor: Any,
    forward_data_store: Any,
    b_model: Any,
    b_input_tensor: Any,
    b_output_tensor: Any,
    b_output_tensor_grad: Any,
    config: Any,
    f_model_chunk_id: int | None = None,
    current_microbatch: int | None = None,
) -> tuple[Any, Any, Any]:
    """Stands for a step of ``overlap_moe_expert_parallel_comm``: a forward, a backward, or both."""
    output = torch.ones(1) if f_model else None
    return output, None, [torch.ones(1)] if b_model else None


def test_the_combined_step_has_the_parameters_that_its_hook_reads() -> None:
    from megatron.core.pipeline_parallel import combined_1f1b

    theirs = inspect.signature(combined_1f1b.combined_forward_backward_step).parameters
    ours = inspect.signature(combined).parameters
    assert list(theirs)[:12] == list(ours)[:12]
    assert "current_microbatch" in theirs


def test_a_forward_and_a_backward_in_one_are_one_span_under_the_forward_s_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from megatron.core.pipeline_parallel import combined_1f1b, p2p_communication, schedules

    assert p2p_communication and schedules  # the hooks stand where these are loaded
    monkeypatch.setattr(combined_1f1b, "combined_forward_backward_step", combined)
    with serried.record_steps(0, 0, 1, folder=tmp_path):
        made: Any = None
        for number in range(3):
            ahead = "model" if number < 2 else None
            back = "model" if number else None
            made, *_ = combined_1f1b.combined_forward_backward_step(
                *(None, None, ahead, 2, None, [], back, None, made, None, None),
                f_model_chunk_id=1,
                current_microbatch=number,
            )
    recorder_doors.finish()
    assert [str(span.action) for span in merge([tmp_path]).spans] == [
        "1F0",
        "1OVERLAP_F_B1",
        "1B1",
    ]
