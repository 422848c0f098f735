"""Gradient buffers: a stage's gradients of one type in one block of memory, summed in one go.

    buffer 0   bfloat16 -> float32, over dp_cp     | output | w2 | w1 | … | embed |
    buffer 1   float32  -> float32, over dp_cp     | norm | ffn_norm | attention_norm | … |
    buffer 2   bfloat16 -> float32, over edp       | experts' |

Each parameter's ``grad`` is a view of its place, so backward accumulates straight into the
buffer and one all-reduce sums it all. Parameters stand in the reverse of their order, as
backward reaches the last first; a buffer is kept per type of parameter, type of gradient and
group. This is what Megatron-core's own data parallelism does
(core/distributed/param_and_grad_buffer.py), without its padding for sharded optimizers.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from serried.runtime.job.report import BufferPart, BufferReport
from serried.runtime.job.settings import TrainSettings
from serried.runtime.model.experts import Experts
from serried.runtime.training.mesh import TrainMesh

Named = dict[str, nn.Parameter]


class GradientBuffer:
    """Holds the gradients of some parameters end to end, and sums them over a group."""

    def __init__(
        self, parameters: Named, dtype: torch.dtype, *, axis: str, group: dist.ProcessGroup
    ) -> None:
        self.axis, self.group = axis, group
        self.parameters = parameters
        self.dtype = dtype
        sizes = [local_of(parameter).numel() for parameter in parameters.values()]
        device = local_of(next(iter(parameters.values()))).device
        self.flat = torch.zeros(sum(sizes), dtype=dtype, device=device)
        self._views = torch.split(self.flat, sizes)
        for parameter, view in zip(parameters.values(), self._views, strict=True):
            parameter.grad_dtype = dtype
            parameter.grad = sharded_as(parameter, view.view(local_of(parameter).shape))

    def reduce(self) -> None:
        """Sums the buffer over its group, in one all-reduce."""
        self._require_views()
        if self.group.size() > 1:
            dist.all_reduce(self.flat, group=self.group)

    def zero(self) -> None:
        """Begins the next step's accumulation."""
        self.flat.zero_()

    def report(self) -> BufferReport:
        """Says what stands where."""
        places = [int(view.storage_offset()) for view in self._views]
        named = next(iter(self.parameters.values()))
        return BufferReport(
            parameter_dtype=_name(named.dtype),
            gradient_dtype=_name(self.dtype),
            axis=self.axis,
            num_bytes=self.flat.numel() * self.flat.element_size(),
            parts=tuple(
                BufferPart(name, offset, view.numel())
                for name, offset, view in zip(self.parameters, places, self._views, strict=True)
            ),
        )

    def _require_views(self) -> None:
        """Asserts that nothing has put a gradient elsewhere, which would not be summed."""
        for (name, parameter), view in zip(self.parameters.items(), self._views, strict=True):
            assert parameter.grad is not None, f"{name} lost its gradient"
            place = local_of(parameter.grad).data_ptr()
            assert place == view.data_ptr(), f"{name}: gradient is not in its buffer"


def make_buffers(
    stage: nn.Module, settings: TrainSettings, mesh: TrainMesh
) -> list[GradientBuffer]:
    """Returns a stage's buffers, the experts' last; gradients now stand in them."""
    of_experts = {id(p) for p in expert_parameters(stage)}
    sorted_out: dict[tuple[bool, torch.dtype], Named] = {}
    for name, parameter in reversed(list(stage.named_parameters())):
        key = (id(parameter) in of_experts, parameter.dtype)
        sorted_out.setdefault(key, {})[name] = parameter
    return [
        GradientBuffer(
            parameters,
            _gradient_dtype(dtype),
            axis="edp" if is_expert else "dp_cp",
            group=mesh.group("edp" if is_expert else "dp_cp"),
        )
        for (is_expert, dtype), parameters in sorted(
            sorted_out.items(), key=lambda item: item[0][0]
        )
    ]


def expert_parameters(stage: nn.Module) -> Iterable[nn.Parameter]:
    """Returns the parameters that only the ranks of edp share."""
    return (
        parameter
        for module in stage.modules()
        if isinstance(module, Experts)
        for parameter in module.expert_parameters()
    )


def local_of(tensor: Tensor) -> Tensor:
    """Returns the part of a tensor that this rank holds."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _gradient_dtype(dtype: torch.dtype) -> torch.dtype:
    """Returns the type in which gradients of ``dtype`` are kept: Megatron's choice for 16 bits."""
    return torch.float32 if dtype == torch.bfloat16 else dtype


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def copy_part(source: Tensor, target: Tensor) -> None:
    """Copies this rank's part of one tensor to another's, unless it is the very same memory."""
    if local_of(source).data_ptr() != local_of(target).data_ptr():
        local_of(target).copy_(local_of(source))


def sharded_as(parameter: Tensor, part: Tensor) -> Tensor:
    """Returns this rank's ``part`` of a tensor that is cut over ranks as ``parameter`` is."""
    if not isinstance(parameter, DTensor):
        return part
    return DTensor.from_local(
        part,
        parameter.device_mesh,
        parameter.placements,
        run_check=False,
        shape=parameter.shape,
        stride=parameter.stride(),
    )
