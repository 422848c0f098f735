"""InternEvo: order tensor, data, pipeline, and a second grid for weights, data and pipelines.

Read from the PyPI wheels InternEvo 0.3.10 to 0.5.2 and from the develop branch of 2024-12
(cd53c32^) and 2025-01, internlm/core/context/process_group_initializer.py. Wheels before 0.3
are InternLM classic (``internlm``); 2-D sequence groups are in ``internevo_sequence``.

    dense  grid   tensor · data · pipeline              data        = world / (tensor pipeline)
    weight grid   weight · weight_data · pipeline       weight_data = world / (weight pipeline)

    16 ranks, isp, tensor 4, weight 2, pipeline 2     data   [0 4] [1 5] …   pipe [0 8] …
                                                      weight [0 1] [2 3] …   weight_data [0 2 4 6] …
"""

from __future__ import annotations

from serried.frameworks import internlm
from serried.frameworks.framework import (
    Framework,
    at_least,
    refuse_foreign_sizes,
    refuse_unknown_options,
    switch,
)
from serried.frameworks.internevo.job import (
    DEVELOP_2024,
    DEVELOP_2025,
    InternEvoJob,
    check_fsdp,
    check_starts,
    job_of,
    refuse_develop_options,
)
from serried.frameworks.internevo.kinds import kinds_of, late_kinds_of, overlaps
from serried.frameworks.internevo.sequence import SEQUENCE_OPTIONS, Sequence2D
from serried.frameworks.internlm import refuse_other_orders
from serried.mesh import Layout, Mesh
from serried.mesh.sizes import Sizes

ORDER = "tensor-data-pipeline"
OPTIONS = (
    internlm.OPTIONS
    | {
        "tensor.mode": "mtp, msp, fsp or isp (default mtp)",
        "weight.size": "ranks that share one weight in isp mode (default 1)",
        "gqa": "true makes groups of key and value heads (default false)",
        "num_chunks": "model chunks per rank (default 1)",
        "pipeline.interleaved_overlap": "true overlaps chunks; needed with them (default false)",
        "expert.size": "expert parallel size, develop only (default -1: as many as fit)",
        "expert.no_tp": "true keeps experts whole on each rank, develop only (default false)",
        "expert_weight.size": "ranks that share an expert's weight in isp mode, develop only",
        "expert_zero1.size": "read and ignored, as the develop branch does",
        "num_kv_attention_heads": "key and value heads, develop-2025-01 only",
    }
    | SEQUENCE_OPTIONS
)


def layout(sizes: Sizes, version: str) -> Layout:
    """Returns InternEvo's layout; raises InputError wherever InternEvo would refuse."""
    # The 0.2 wheels make the groups that InternLM makes, with pipelines inside data parallelism.
    if not at_least(version, "0.3"):
        return internlm.layout(sizes, version, name="internevo")
    refuse_unknown_options(sizes, "internevo", OPTIONS)
    refuse_foreign_sizes(sizes, "internevo", ("tp", "pp", "dp", "ep", "zero1", "nettest"))
    refuse_other_orders(sizes.order, ORDER, "internevo")
    refuse_develop_options(sizes, version)
    job = job_of(sizes, version)
    if switch(sizes, "args_sanity_check", default=True):
        check_starts(sizes, job)
    check_fsdp(sizes, job, version)
    plane = Sequence2D.of(sizes, job.tp)
    late = version == DEVELOP_2025
    meshes = _meshes(job, plane)
    kinds = late_kinds_of(sizes, job, plane) if late else kinds_of(sizes, job, version, plane)
    names = {kind.name for kind in kinds}
    dims = {"dp": "data", "tp": "tensor", "pp": "pipe", "ep": "expert"}
    return Layout(
        framework="internevo",
        version=version,
        world_size=sizes.world_size,
        sizes={"tp": job.tp, "pp": job.pp, "dp": job.dp, "ep": job.ep}
        | {"weight": job.wp, "weight_data": job.wdp, "zero1": job.zero1, "nettest": job.nettest},
        order=ORDER,
        meshes=meshes,
        kinds=kinds,
        dims={dim: kind for dim, kind in dims.items() if kind in names},
        findings=(*overlaps(kinds, job), *plane.findings(job.pp, late=late)),
    )


def _meshes(job: InternEvoJob, plane: Sequence2D) -> dict[str, Mesh]:
    meshes = {
        "dense": Mesh({"pp": job.pp, "dp": job.dp, "tp": job.tp}),
        "weight": Mesh({"pp": job.pp, "wdp": job.wdp, "wp": job.wp}),
    }
    shared = job.ewp if job.is_isp else job.etp
    expert = Mesh({"pp": job.pp, "edp": job.edp, "ep": job.ep, "etp": shared})
    if expert.num_ranks == job.world:
        meshes["expert"] = expert
    if plane.is_used:
        meshes["plane"] = plane.mesh(job.pp * job.dp)
    return meshes


INTERNEVO = Framework(
    name="internevo",
    title="InternEvo",
    version="0.5.2",
    source="InternEvo internlm/core/context/process_group_initializer.py",
    dims=("dp", "tp", "pp", "ep"),
    options=OPTIONS,
    default_order=ORDER,
    orders=(ORDER,),
    make=layout,
    versions=("0.1.0", "0.2.2", "0.3.10", "0.5.2", DEVELOP_2024, DEVELOP_2025),
    conventions=internlm.INTERNLM.conventions,
)
