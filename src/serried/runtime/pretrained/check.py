"""Whether a model of transformers can be trained as asked: found out before any rank starts."""

from __future__ import annotations

from serried.errors import InputError
from serried.runtime.job.config_model import ConfigModel
from serried.runtime.pretrained.build import meta_model
from serried.runtime.pretrained.plan import ModelPlan
from serried.runtime.pretrained.weights import require_weights


def require_trainable(sizes: ConfigModel, *, tp: int) -> None:
    """Raises InputError where the model cannot be built, cut or loaded as asked.

    Nothing of it takes memory: only its shapes, and the heads of its files, are looked at.
    """
    model = meta_model(sizes)
    plan = ModelPlan.of(model, sizes)
    if tp > 1 and not plan.tensor:
        raise InputError(
            "{architecture} comes without a plan of how tp ranks share its layers "
            "(base_model_tp_plan); take tp=1, and pp or dp of {tp}",
            architecture=sizes.architecture,
            tp=tp,
        )
    require_weights(sizes, model)
