"""InternLM classic: order tensor, pipeline, data, and its seven kinds of groups.

Read from InternLM v0.2.1dev20240102, internlm/core/context/process_group_initializer.py
and parallel_context.py; the PyPI wheel InternEvo 0.2.2 gives the same groups.

    16 ranks, tp 2, pp 4      tensor [0 1] [2 3] …      pipe [0 2 4 6] [1 3 5 7] …
                              model  [0 … 7] [8 … 15]   data [0 8] [1 9] …
"""

from __future__ import annotations

from serried.errors import InputError, listed
from serried.frameworks.framework import (
    Framework,
    Sizes,
    divisors,
    number,
    refuse_foreign_sizes,
    refuse_unknown_options,
    split_world,
    switch,
)
from serried.mesh import Chunks, GroupKind, Layout, Level, Mesh, Windows

ORDER = "tensor-pipeline-data"
NETTEST_SIZE = 32
"""InternLM fixes it; serried lets it be set."""

OPTIONS = {
    "num_experts": "experts of a MoE model; expert groups when above 1 (default 1)",
    "fsdp": "true makes zero3_dp groups (default false)",
}


def layout(sizes: Sizes) -> Layout:
    """Returns InternLM's layout; raises InputError where InternLM would refuse, and for cp."""
    refuse_unknown_options(sizes, "internlm", OPTIONS)
    refuse_foreign_sizes(sizes, "internlm", ("tp", "pp", "dp", "zero1", "nettest"))
    _refuse_other_orders(sizes.order)
    dp = split_world(sizes.world_size, {"tp": sizes.tp, "pp": sizes.pp}, sizes.dp)
    zero1 = _zero1(sizes.zero1, dp)
    nettest = _nettest(sizes.nettest)
    return Layout(
        framework="internlm",
        version=INTERNLM.version,
        world_size=sizes.world_size,
        sizes={"tp": sizes.tp, "pp": sizes.pp, "dp": dp, "zero1": zero1, "nettest": nettest},
        order=ORDER,
        meshes={"dense": Mesh({"dp": dp, "pp": sizes.pp, "tp": sizes.tp})},
        kinds=_kinds(sizes, dp=dp, zero1=zero1, nettest=nettest),
        dims={"dp": "data", "tp": "tensor"} | ({"pp": "pipe"} if sizes.pp > 1 else {}),
    )


def _kinds(sizes: Sizes, *, dp: int, zero1: int, nettest: int) -> tuple[GroupKind, ...]:
    """Returns the kinds in the order InternLM creates them."""
    everyone = ("dp", "pp", "tp")
    experts = _expert_size(number(sizes, "num_experts", 1), dp)
    kinds = [
        GroupKind("global", everyone, about="every rank"),
        GroupKind("data", ("dp",), about="same weights, other batches"),
        GroupKind("model", ("pp", "tp"), about="one whole copy of the model"),
        GroupKind("tensor", ("tp",), about="parts of every layer"),
        GroupKind("zero1", ("dp",), rule=Chunks(zero1), about="shards of the optimizer state"),
    ]
    if switch(sizes, "fsdp"):
        kinds.append(
            GroupKind(
                "zero3_dp",
                everyone,
                rule=Level(dp // zero1, sizes.world_size // (dp // zero1)),
                about="shards of the parameters",
            )
        )
    kinds.append(
        GroupKind("nettest", everyone, rule=Windows(nettest), about="network test before training")
    )
    if sizes.pp > 1:
        kinds.append(GroupKind("pipe", ("pp",), about="consecutive stages"))
    if experts > 1:
        kinds += [
            GroupKind("expert", ("dp",), rule=Chunks(experts), about="experts, one share each"),
            GroupKind(
                "expert_data", ("dp",), rule=Level(dp // experts, experts), about="same experts"
            ),
        ]
    return tuple(kinds)


def _refuse_other_orders(order: str | None) -> None:
    if order not in (None, ORDER):
        raise InputError(
            "order '{order}' cannot be set: internlm always uses {fixed}", order=order, fixed=ORDER
        )


def _zero1(asked: int | None, dp: int) -> int:
    """Returns the ZeRO-1 size: dp when not given or not positive, as InternLM reads it."""
    if asked is None or asked <= 0:
        return dp
    if dp % asked:
        raise InputError(
            "zero1 size {size} does not divide dp={dp}; sizes that do: {fits}",
            size=asked,
            dp=dp,
            fits=listed(divisors(dp), limit=24),
        )
    return asked


def _expert_size(num_experts: int, dp: int) -> int:
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


def _nettest(asked: int | None) -> int:
    if asked is not None and asked < 1:
        raise InputError("{axis}={size}; a size is at least 1", axis="nettest", size=asked)
    return asked or NETTEST_SIZE


INTERNLM = Framework(
    name="internlm",
    title="InternLM (classic)",
    version="0.2.1dev20240102",
    source="InternLM internlm/core/context/process_group_initializer.py",
    dims=("dp", "tp", "pp"),
    options=OPTIONS,
    default_order=ORDER,
    orders=(ORDER,),
    layout=layout,
)
