"""InternLM classic: order tensor, pipeline, data, and its seven kinds of groups.

Read from InternLM v0.1.0 and v0.2.1dev20240102, internlm/core/context/parallel_context.py and
process_group_initializer.py; the PyPI wheels InternEvo 0.1.0 to 0.2.2 give the same groups as
the latter. ``args_sanity_check`` are the further rules of internlm/initialize/launch.py.

    16 ranks, tp 2, pp 4      tensor [0 1] [2 3] …      pipe [0 2 4 6] [1 3 5 7] …
                              model  [0 … 7] [8 … 15]   data [0 8] [1 9] …
"""

from __future__ import annotations

from serried.errors import InputError, listed
from serried.frameworks.framework import (
    Framework,
    divisors,
    number,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
    switch,
)
from serried.mesh import Chunks, Conventions, GroupKind, Layout, Level, Mesh, RankWindows
from serried.mesh.sizes import Sizes

ORDER = "tensor-pipeline-data"
NETTEST_SIZE = 32
"""InternLM fixes it; serried lets it be set."""

OPTIONS = {
    "num_experts": "experts of a MoE model; expert groups when above 1 (default 1)",
    "zero1.fsdp": "true makes zero3_dp groups (default false)",
    "dummy": "true lists the DUMMY mode too: each rank alone, no group is made (default false)",
    "args_sanity_check": "false leaves out the launcher's own rules (default true)",
}


def layout(sizes: Sizes, version: str, *, name: str = "internlm") -> Layout:
    """Returns InternLM's layout; raises InputError where InternLM would refuse, and for cp."""
    refuse_unknown_options(sizes, name, OPTIONS)
    refuse_foreign_sizes(sizes, name, ("tp", "pp", "dp", "ep", "zero1", "nettest"))
    refuse_other_orders(sizes.order, ORDER, name)
    dp = split_world(sizes.world_size, {"tp": sizes.tp, "pp": sizes.pp}, sizes.dp)
    zero1 = _zero1(sizes.zero1, dp)
    nettest = nettest_size(sizes.nettest)
    experts = expert_size(num_experts(sizes), dp)
    check_ep(sizes, experts)
    if switch(sizes, "args_sanity_check", default=True):
        check_launch(sizes, zero1_fits=sizes.zero1 in (None, -1))
    return Layout(
        framework=name,
        version=version,
        world_size=sizes.world_size,
        sizes={"tp": sizes.tp, "pp": sizes.pp, "dp": dp, "ep": experts}
        | {"zero1": zero1, "nettest": nettest},
        order=ORDER,
        meshes={"dense": Mesh({"dp": dp, "pp": sizes.pp, "tp": sizes.tp})},
        kinds=_kinds(
            sizes,
            dp=dp,
            zero1=zero1,
            experts=experts,
            nettest=0 if (name, version) == ("internlm", "0.1.0") else nettest,
        ),
        dims={"dp": "data", "tp": "tensor"}
        | ({"pp": "pipe"} if sizes.pp > 1 else {})
        | ({"ep": "expert"} if experts > 1 else {}),
    )


def _kinds(
    sizes: Sizes, *, dp: int, zero1: int, experts: int, nettest: int
) -> tuple[GroupKind, ...]:
    """Returns the kinds in the order InternLM creates them; v0.1.0 has no network test."""
    everyone = ("dp", "pp", "tp")
    kinds = [
        GroupKind("global", everyone, about="every rank"),
        GroupKind("data", ("dp",), about="same weights, other batches"),
        GroupKind("model", ("pp", "tp"), about="one whole copy of the model"),
        GroupKind("tensor", ("tp",), about="parts of every layer"),
        GroupKind("zero1", ("dp",), rule=Chunks(zero1), about="shards of the optimizer state"),
    ]
    if switch(sizes, "dummy"):
        kinds.insert(1, GroupKind("dummy", (), about="random seeds while the model is built"))
    if switch(sizes, "zero1.fsdp"):
        # These shards stride over the whole world whatever the pipelines are; FSDP itself needs
        # pp=1.
        rule = Level(dp // zero1, sizes.world_size // (dp // zero1))
        kinds.append(GroupKind("zero3_dp", everyone, rule=rule, about="shards of the parameters"))
    if nettest:
        about = "network test before training"
        kinds.append(GroupKind("nettest", everyone, rule=RankWindows(nettest), about=about))
    if sizes.pp > 1:
        kinds.append(GroupKind("pipe", ("pp",), about="consecutive stages"))
    if num_experts(sizes) > 1:
        kinds += expert_kinds(("dp",), dp, experts)
    return tuple(kinds)


# ----------------------------------------------------- shared with InternEvo (``internevo``)


def expert_kinds(axes: tuple[str, ...], size: int, experts: int) -> list[GroupKind]:
    """Returns expert groups as chunks of the groups along ``axes``, and the ranks across them."""
    across = Level(size // experts, experts)
    return [
        GroupKind("expert", axes, rule=Chunks(experts), about="experts, one share each"),
        GroupKind("expert_data", axes, rule=across, about="same experts"),
    ]


def refuse_other_orders(order: str | None, fixed: str, name: str) -> None:
    """Raises InputError for an order, where the framework has but one."""
    if order not in (None, fixed):
        raise InputError(
            "order '{order}' cannot be set: {framework} always uses {fixed}",
            order=order,
            fixed=fixed,
            framework=name,
        )


def _zero1(asked: int | None, dp: int) -> int:
    """Returns the ZeRO-1 size: dp when not given or not positive, as InternLM reads it."""
    if asked is None or asked <= 0:
        return dp
    check_zero1(asked, dp, "dp")
    return asked


def check_zero1(size: int, whole: int, name: str) -> None:
    """Raises InputError unless ``size`` divides ``whole``, the size called ``name``."""
    if whole % size:
        raise InputError(
            "zero1 size {size} does not divide {name}={whole}; sizes that do: {fits}",
            size=size,
            name=name,
            whole=whole,
            fits=listed(divisors(whole), limit=24),
        )


def num_experts(sizes: Sizes) -> int:
    """Returns how many experts the model has: as many as ``--ep`` where they are not given."""
    return number(sizes, "num_experts", sizes.ep)


def check_ep(sizes: Sizes, made: int) -> None:
    """Raises InputError where ``--ep`` was given and the experts make another size."""
    if sizes.ep not in (1, made):
        raise InputError(
            "ep={ep} does not fit: num_experts={experts} makes ep={made} here",
            ep=sizes.ep,
            experts=num_experts(sizes),
            made=made,
        )


def expert_size(num_experts: int, dp: int) -> int:
    """Returns the expert-parallel size, min(dp, num_experts); one must divide the other."""
    if dp % num_experts and num_experts % dp:
        raise InputError(
            "num_experts={experts} cannot be placed evenly on dp={dp}; "
            "numbers that can: {fits}, and multiples of {dp}",
            experts=num_experts,
            dp=dp,
            fits=listed(divisors(dp), limit=24),
        )
    return min(dp, num_experts)


def nettest_size(asked: int | None) -> int:
    """Returns the ranks of a network-test window, 32 when not given."""
    if asked is not None and asked < 1:
        raise InputError("{axis}={size}; a size is at least 1", axis="nettest", size=asked)
    return asked or NETTEST_SIZE


def check_launch(sizes: Sizes, *, zero1_fits: bool) -> None:
    """Raises InputError where the launcher refuses what the groups alone would allow."""
    fsdp = switch(sizes, "zero1.fsdp")
    experts = num_experts(sizes)
    if fsdp and sizes.pp > 1:
        raise InputError("zero1.fsdp=true needs pp=1; here pp={pp}", pp=sizes.pp)
    if fsdp and experts > 1:
        raise InputError(
            "zero1.fsdp=true does not go with num_experts={experts}; set one of them aside",
            experts=experts,
        )
    if experts > 1 and not zero1_fits:
        raise InputError(
            "num_experts={experts} needs zero1 over all data ranks; "
            "leave --zero1-size out, it is now {size}",
            experts=experts,
            size=sizes.zero1,
        )


INTERNLM = Framework(
    name="internlm",
    title="InternLM (classic)",
    version="0.2.1dev20240102",
    source="InternLM internlm/core/context/process_group_initializer.py",
    dims=("dp", "tp", "pp", "ep"),
    options=OPTIONS,
    default_order=ORDER,
    orders=(ORDER,),
    make=layout,
    versions=("0.1.0", "0.2.1dev20240102"),
    conventions=Conventions(left_over="last"),
)
