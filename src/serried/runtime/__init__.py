"""Real runs: the only room that imports torch, and the pieces that a training of one's own takes.

    start, join, TrainMesh    a program's ranks, and the groups that a training needs
    init, LiveLayout          every group of a Layout, of every kind
    cut, layers_of            pipeline stages of any model
    cut_over_tp               any model cut over tp ranks, by a plan of its modules
    SampleOrder, BatchShare   which samples come when, and who reads which
    ModelTraining             all of it: steps that resume, checkpoints, spans

Each is loaded when it is first asked for: ``serried train`` starts before torch does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from serried.runtime.groups.process_groups import LiveLayout, init
    from serried.runtime.job.checkpoints import CheckpointSettings
    from serried.runtime.run.model_training import ModelSplit, ModelTraining
    from serried.runtime.run.program import join, start
    from serried.runtime.stages.cut import ModelCut, cut, layers_of
    from serried.runtime.training.data import BatchShare, SampleOrder
    from serried.runtime.training.gradients import GradientNorm
    from serried.runtime.training.mesh import TrainMesh
    from serried.runtime.training.sharing import share_out
    from serried.runtime.training.tensor_plan import cut_over_tp

__all__ = [
    "BatchShare",
    "CheckpointSettings",
    "GradientNorm",
    "LiveLayout",
    "ModelCut",
    "ModelSplit",
    "ModelTraining",
    "SampleOrder",
    "TrainMesh",
    "cut",
    "cut_over_tp",
    "init",
    "join",
    "layers_of",
    "share_out",
    "start",
]

_MODULE_OF = {
    **dict.fromkeys(("LiveLayout", "init"), "serried.runtime.groups.process_groups"),
    **dict.fromkeys(("join", "start"), "serried.runtime.run.program"),
    **dict.fromkeys(("ModelSplit", "ModelTraining"), "serried.runtime.run.model_training"),
    "CheckpointSettings": "serried.runtime.job.checkpoints",
    "GradientNorm": "serried.runtime.training.gradients",
    "TrainMesh": "serried.runtime.training.mesh",
    "cut_over_tp": "serried.runtime.training.tensor_plan",
    "share_out": "serried.runtime.training.sharing",
    **dict.fromkeys(("ModelCut", "cut", "layers_of"), "serried.runtime.stages.cut"),
    **dict.fromkeys(("BatchShare", "SampleOrder"), "serried.runtime.training.data"),
}


def __getattr__(name: str) -> object:
    """Returns a piece, loading its module; AttributeError for any other name."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    """Returns the names of the pieces, loaded or not, beside those that are there."""
    return sorted({*globals(), *__all__})
