"""DeepSpeed's tensor, sequence and ZeRO sharding groups.

Read from deepspeed 0.19.8: utils/groups.py (_init_tp_mesh_device, _get_local_all_to_all_group,
_create_zero_param_parallel_group), runtime/sequence_parallel/parallel_state_sp.py, and from
0.18.9 runtime/zero/mics_utils.py (MiCS left in 0.19.7).

    AutoTP      mesh (data_parallel, tensor_parallel), tensor fastest
    Ulysses     sequence = neighbouring ranks; sequence_data = the whole world
    hpZ         neighbouring ranks                       zero_param_intra
    qgZ         local = the ranks of a node, global = one place of every node
    MiCS        shard = neighbouring ranks; replicate across; hierarchy by node inside a shard
"""

from __future__ import annotations

from serried.errors import InputError, listed
from serried.frameworks.deepspeed.feature import Feature, require_divides
from serried.frameworks.framework import at_least, choice, divisors, number, switch
from serried.mesh import Chunks, FixedKind, GroupKind, Level, Mesh
from serried.mesh.sizes import Sizes


def tensor(sizes: Sizes, version: str) -> Feature:
    """Returns AutoTP's mesh of data and tensor parallel ranks."""
    tp = number(sizes, "autotp_size", sizes.tp)
    if sizes.zero == 3 and not at_least(version, "0.19.4"):
        raise InputError(
            "autotp_size={tp} does not go with ZeRO stage 3 in deepspeed {version}; 0.19.4 and "
            "newer take it, and any takes stage 0, 1 or 2",
            tp=tp,
            version=version,
        )
    require_divides("autotp_size", tp, sizes.world_size)
    mesh = Mesh({"data_parallel": sizes.world_size // tp, "tensor_parallel": tp})
    kinds = (
        GroupKind("data_parallel", ("data_parallel",), "autotp", about="other batches"),
        GroupKind("tensor_parallel", ("tensor_parallel",), "autotp", about="parts of layers"),
    )
    dims = {"dp": "data_parallel", "tp": "tensor_parallel"}
    return Feature({"autotp": mesh}, kinds, dims, order=",".join(mesh.axes))


def sequence(sizes: Sizes, version: str) -> Feature:
    """Returns the sequence groups of Ulysses, as groups or, with a data size, as a mesh."""
    sp = number(sizes, "sequence_parallel_size", 1)
    if sp == 1 and "data_parallel_size" not in sizes.options:
        raise InputError("sequence_parallel_size={sp} makes no groups; it is above 1", sp=sp)
    require_divides("sequence_parallel_size", sp, sizes.world_size)
    dp = sizes.world_size // sp
    mesh = Mesh({"data_parallel": dp, "sequence_parallel": sp})
    # Given both sizes DeepSpeed makes a device mesh of them. Given one it makes groups of its own,
    # of which sequence_data is the whole world.
    if "data_parallel_size" not in sizes.options:
        kinds = (
            GroupKind("sequence", ("sequence_parallel",), "sequence", about="parts of sequences"),
            GroupKind("sequence_data", mesh.axes, "sequence", about="gradients and ZeRO shards"),
        )
        return Feature({"sequence": mesh}, kinds, {"dp": "sequence_data"}, order="")
    if number(sizes, "data_parallel_size", dp) != dp:
        raise InputError(
            "data_parallel_size={dp} x sequence_parallel_size={sp} is not {world} ranks; "
            "data_parallel_size={fit} fits",
            dp=sizes.options["data_parallel_size"],
            sp=sp,
            world=sizes.world_size,
            fit=dp,
        )
    kinds = (
        GroupKind("data_parallel", ("data_parallel",), "sequence", about="other batches"),
        GroupKind("sequence_parallel", ("sequence_parallel",), "sequence", about="sequences"),
    )
    return Feature({"sequence": mesh}, kinds, {"dp": "data_parallel"}, order=",".join(mesh.axes))


def secondary(sizes: Sizes, version: str) -> Feature:
    """Returns the secondary partitions of ZeRO++ (hpZ); one as large as the world at most."""
    size = min(number(sizes, "zero_hpz_partition_size", 1), sizes.world_size)
    require_divides("zero_hpz_partition_size", size, sizes.world_size)
    mesh = Mesh({"outer": sizes.world_size // size, "inner": size})
    about = "a second copy of the weights, near by"
    kinds = (GroupKind("zero_param_intra", ("inner",), "hpz", about=about),)
    return Feature({"hpz": mesh}, kinds)


def all_to_all(sizes: Sizes, version: str) -> Feature:
    """Returns the groups of ZeRO++ qgZ: the ranks of a node, and those of one place on each.

    With names=keys each group is a kind, called as in the package's table: local_0, global_0 …
    """
    world, node = sizes.world_size, number(sizes, "devices_per_node", 8)
    num_nodes = world // node
    if num_nodes == 1 and world != node:
        raise InputError(
            "{world} ranks on nodes of {node} fill one node and a part; qgZ needs whole nodes",
            world=world,
            node=node,
        )
    # Fewer ranks than a node holds are one node of that many. Of several nodes only whole ones
    # count, and the ranks behind them are in no group.
    if num_nodes <= 1:
        num_nodes, node = 1, world
    mesh = Mesh({"node": num_nodes, "place": node})
    kinds = [GroupKind("local", ("place",), "qgz", about="gradients, all-to-all in a node")]
    if num_nodes > 1:
        kinds.append(GroupKind("global", ("node",), "qgz", about="the same, across nodes"))
    if choice(sizes, "names", ("kinds", "keys")) == "keys":
        kinds = [each for kind in kinds for each in _by_key(kind, mesh)]
    return Feature({"qgz": mesh}, tuple(kinds))


def _by_key(kind: GroupKind, mesh: Mesh) -> list[GroupKind]:
    """Returns each group of ``kind`` as a kind of its own."""
    lists = mesh.groups(*kind.axes).tolist()
    return [
        FixedKind(f"{kind.name}_{i}", (), "qgz", about=kind.about, lists=(tuple(ranks),))
        for i, ranks in enumerate(lists)
    ]


def mics(sizes: Sizes, version: str) -> Feature:
    """Returns the shards and copies of MiCS, and their hierarchy by node if asked for."""
    if at_least(version, "0.19.7"):
        raise InputError(
            "deepspeed {version} has no MiCS; versions before 0.19.7 have it, such as 0.18.9",
            version=version,
        )
    shard = number(sizes, "mics_shard_size", 1)
    if sizes.world_size % shard:
        raise InputError(
            "mics_shard_size={size} does not divide {world} ranks; sizes that do: {fits}",
            size=shard,
            world=sizes.world_size,
            fits=listed(divisors(sizes.world_size), limit=24),
        )
    mesh = Mesh({"copy": sizes.world_size // shard, "shard": shard})
    kinds = [GroupKind("shard", ("shard",), "mics", about="shards of the weights")]
    if shard < sizes.world_size:
        kinds.append(GroupKind("replicate", ("copy",), "mics", about="copies of a shard"))
    if switch(sizes, "mics_hierarchical_params_gather"):
        kinds += _hierarchy(shard, number(sizes, "devices_per_node", 8))
    return Feature({"mics": mesh}, tuple(kinds), {"dp": "shard"})


def _hierarchy(shard: int, node: int) -> list[GroupKind]:
    num_nodes = shard // node
    if num_nodes < 2 or shard % num_nodes:
        raise InputError(
            "mics_hierarchical_params_gather needs shards over whole nodes; "
            "{shard} ranks on nodes of {node} are not",
            shard=shard,
            node=node,
        )
    per_node = shard // num_nodes
    inside, across = Chunks(per_node), Level(num_nodes, per_node)
    return [
        GroupKind("intra_node", ("shard",), "mics", inside, about="the part of a shard on a node"),
        GroupKind("inter_node", ("shard",), "mics", across, about="the same place of each node"),
    ]
