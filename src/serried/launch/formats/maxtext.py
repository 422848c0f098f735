"""Reads MaxText's YAML, and the same keys on its command line: a mesh of JAX in two levels.

Names and defaults: MaxText src/maxtext/configs/base.yml. What divides the ranks:
src/maxtext/utils/maxtext_utils.py, create_device_mesh; jax mesh_utils.create_hybrid_device_mesh.

    dcn_fsdp 2, ici_tensor 4, 8 ranks     slice 0: 0 1 2 3     tensor [0 1 2 3] [4 5 6 7]
                                          slice 1: 4 5 6 7     fsdp   [0 4] [1 5] [2 6] [3 7]

A size of -1 is what the others leave: of the slices for ``dcn_``, of a slice's ranks for ``ici_``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import prod

from serried.errors import InputError, listed
from serried.finding import said
from serried.launch.facts.config import Reading
from serried.launch.facts.device_mesh import filled
from serried.launch.facts.emit import ADD_THE_REST, LaunchJob, yaml_lines
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import Keys, take
from serried.mesh.sizes import Sizes

AXES = (
    *("diloco", "data", "stage", "fsdp", "fsdp_transpose", "sequence", "context"),
    *("context_usp_ulysses", "context_autoregressive", "tensor", "tensor_transpose"),
    *("tensor_sequence", "expert", "autoregressive"),
)
"""Axes of the mesh, slowest first, where the file lists none of its own (``mesh_axes``)."""

SIZE_OF = {"stage": "pipeline", "model": "tensor"}
"""Axes whose size has another name than they have."""

NAMES = tuple(
    f"{level}_{name}_parallelism"
    for level in ("dcn", "ici")
    for name in (*AXES, "pipeline")
    if name != "stage"
)
DEFAULTS = {"dcn_data_parallelism": "-1", "ici_fsdp_parallelism": "-1"}
"""Sizes that are not one where nothing is said."""

MEANINGS = {
    **{name: Meaning(name) for name in NAMES},
    "num_slices": Meaning("num_slices"),
    "mesh_axes": Meaning("_mesh_axes", "list"),
}
MARKS = frozenset(("base_output_directory", "max_target_length", "remat_policy", "base_config"))
"""Keys that MaxText's YAML has beside ``per_device_batch_size``."""


def is_one(keys: Keys) -> bool:
    """Tells whether keys are MaxText's."""
    if any(name in keys for name in NAMES):
        return True
    if str(keys.value("base_config") or "").endswith("base.yml"):
        return True
    return "per_device_batch_size" in keys and any(name in keys for name in MARKS)


def read(keys: Keys, section: str = "") -> Reading:
    """Returns what the keys say, all of them or those below ``section``."""
    facts = Facts(keys.file)
    take(facts, keys, MEANINGS, section=section, name_of=str)
    axes = facts.drop("_mesh_axes")
    named = re.findall(r"\w+", str(axes.value)) if axes else []
    order = tuple(name for name in named if _size_name("ici", name) in NAMES) or AXES
    for name in (*NAMES, "num_slices"):
        number = facts.number(name)
        if (number is not None and str(number) == (DEFAULTS.get(name) or "1")) or (
            name == "num_slices" and number is not None and number < 1
        ):
            facts.drop(name)
    if not facts.says("num_slices"):
        facts.note(
            said(
                "{file} does not say how many slices (on GPUs: nodes) there are; where sizes of -1 "
                "leave it open one is taken, so give it, such as --set num_slices=4",
                file=facts.file,
            )
        )
    # Where no size is -1, their product is the world.
    product = {name: None if name in DEFAULTS else 1 for name in NAMES}
    derive = partial(_mesh, order=order)
    return Reading("MaxText YAML", facts, "devicemesh", product=product, derive=derive)


def _size_name(level: str, axis: str) -> str:
    return f"{level}_{SIZE_OF.get(axis, axis)}_parallelism"


def _mesh(sizes: Sizes, order: tuple[str, ...]) -> Sizes:
    """Returns the sizes with MaxText's mesh, whose slices lie outside all that is in a slice."""
    options = dict(sizes.options)
    told = {name: int(options.pop(name, DEFAULTS.get(name, "1"))) for name in NAMES}
    slices = _slices(told, sizes.world_size, options.pop("num_slices", None))
    outer = filled({axis: told[_size_name("dcn", axis)] for axis in order}, slices)
    inner = filled(
        {axis: told[_size_name("ici", axis)] for axis in order}, sizes.world_size // slices
    )
    both = [axis for axis in order if outer[axis] > 1 and inner[axis] > 1]
    axes = {f"dcn_{axis}" if axis in both else axis: n for axis, n in outer.items() if n > 1}
    axes |= {f"ici_{axis}" if axis in both else axis: n for axis, n in inner.items() if n > 1}
    axes = axes or {"data": 1}
    made = {
        "mesh_shape": ",".join(map(str, axes.values())),
        "mesh_dim_names": ",".join(axes),
        "flatten": ";".join(f"{axis}=dcn_{axis}+ici_{axis}" for axis in both),
    }
    return replace(
        sizes, options={**options, **{name: text for name, text in made.items() if text}}
    )


def _slices(told: Mapping[str, int], world_size: int, given: str | None) -> int:
    """Returns the number of slices: as given, else what the sizes leave, else one."""
    outer = [size for name, size in told.items() if name.startswith("dcn")]
    inner = [size for name, size in told.items() if name.startswith("ici")]
    if given is not None:
        slices = int(given)
    elif -1 not in outer:
        slices = prod(outer)
    else:
        # With every size of a slice known, the slices are what is left of the world.
        slices = 1 if -1 in inner else max(1, world_size // prod(inner))
    if slices < 1 or world_size % slices:
        raise InputError(
            "{world} ranks do not make {slices} slices of one size; give num_slices that divides "
            "them",
            world=world_size,
            slices=slices,
        )
    return slices


# ----------------------------------------------------------------------- writing


def write(job: LaunchJob) -> str:
    """Returns YAML of a job on MaxText's mesh; raises InputError for axes in another order."""
    axes = job.layout.mesh.sizes
    names = [*axes]
    at = next((i for i in range(len(names) + 1) if _is_divided(names, i)), None)
    if at is None:
        raise InputError(
            "maxtext has the axes {order} in that order, of slices and again of a slice's ranks; "
            "this layout has {names}",
            order=listed(AXES, limit=len(AXES)),
            names=listed(names, limit=len(AXES)),
        )
    told = dict.fromkeys(DEFAULTS, 1)
    for i, name in enumerate(names):
        level = "dcn" if i < at else "ici"
        told[_size_name(level, name.removeprefix(f"{level}_"))] = axes[name]
    slices = prod(axes[name] for name in names[:at])
    tree: dict[str, object] = {"base_config": "base.yml", "num_slices": slices, **told}
    return "\n".join([job.mark, ADD_THE_REST, *yaml_lines(tree), ""])


def _is_divided(names: list[str], at: int) -> bool:
    """Tells whether axes up to ``at`` may be those of slices, and the others a slice's."""
    for level, part in (("dcn", names[:at]), ("ici", names[at:])):
        plain = [name.removeprefix(f"{level}_") for name in part]
        if any(name not in AXES for name in plain):
            return False
        places = [AXES.index(name) for name in plain]
        if places != sorted(set(places)):
            return False
    return True
