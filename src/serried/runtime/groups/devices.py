"""Which device a rank computes on."""

from __future__ import annotations

import torch

from serried.errors import EnvironmentProblem
from serried.runtime.job.report import Place


def device_of(asked: str, place: Place) -> torch.device:
    """Returns a GPU of its own for each local rank where there are as many, else the CPU.

    ``asked`` is ``auto``, ``cpu`` or ``cuda``; raises EnvironmentProblem where ``cuda`` is
    asked for and a local rank would go without.
    """
    gpus = torch.cuda.device_count() if asked != "cpu" else 0
    if gpus < place.local_world_size:
        if asked == "cuda":
            raise EnvironmentProblem(
                "device cuda needs a GPU for each of the {ranks} local ranks; {gpus} were found; "
                "take fewer ranks or device cpu",
                ranks=place.local_world_size,
                gpus=gpus,
            )
        return torch.device("cpu")
    device = torch.device("cuda", place.local_rank)
    torch.cuda.set_device(device)
    return device
