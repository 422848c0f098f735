"""How many ranks a launcher starts, on how many nodes: each launcher's own rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from serried.finding import said
from serried.launch.facts.flags import Meaning, flags_of, loose, place, take
from serried.launch.facts.found import Facts, Found, not_a_number
from serried.launch.facts.whole_number import NUMBER, whole
from serried.launch.facts.words import Field
from serried.launch.shell import slurm
from serried.launch.starters import hosts
from serried.launch.starters.launchers import Launch
from serried.launch.starters.numbers import number, take_options, visible

TORCHRUN = {
    "nnodes": Meaning("_nodes", "text"),
    "nnode": Meaning("_nodes", "text"),
    "nproc-per-node": Meaning("_ranks", "text"),
}
"""torchrun takes its options shortened, and ``--nnode`` is one that people write."""
PADDLE = {
    "nnodes": Meaning("_nodes", "text"),
    "nproc-per-node": Meaning("_ranks", "text"),
    "devices": Meaning("_devices", "text"),
    "gpus": Meaning("_devices", "text"),
    "selected-gpus": Meaning("_devices", "text"),
    "xpus": Meaning("_devices", "text"),
    "ips": Meaning("_ips", "text"),
}
MSRUN = {
    "worker-num": Meaning("world_size"),
    "local-worker-num": Meaning("gpus_per_node"),
}
ACTOR = {
    "actor-num-nodes": Meaning("nodes"),
    "actor-num-gpus-per-node": Meaning("gpus_per_node"),
    "actor.num-nodes": Meaning("nodes"),
    "actor.num-gpus-per-node": Meaning("gpus_per_node"),
}
"""Options by which a program that Ray starts is told where its trainer runs."""

MPI = {
    "np": Meaning("world_size"),
    "n": Meaning("world_size"),
    "N": Meaning("gpus_per_node"),
    "npernode": Meaning("gpus_per_node"),
    "ppn": Meaning("gpus_per_node"),
    "H": Meaning("_hosts", "text"),
    "host": Meaning("_hosts", "text"),
}

EZPZ = {
    **{each: Meaning("world_size") for each in ("n", "np", "nproc", "nprocs", "world-size")},
    **{each: Meaning("gpus_per_node") for each in ("ppn", "nproc-per-node")},
    **{each: Meaning("nodes") for each in ("nh", "nhost", "nhosts", "nnode", "nnodes")},
}
"""Options of ``ezpz launch``; ezpz src/ezpz/cli/flags.py, build_launch_parser."""


def count(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Adds to ``facts`` how many ranks ``launch`` starts, and on how many nodes."""
    rule = RULES.get(launch.launcher)
    if rule:
        rule(launch, facts, beside)


# ----------------------------------------------------------------------- torchrun, srun


def _torchrun(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    take_options(launch, facts, TORCHRUN)
    has_nodes = number(facts, "_nodes", "nodes")
    has_ranks = number(facts, "_ranks", "gpus_per_node")
    # 'torchrun $DIST_ARGS x.py' with DIST_ARGS not known may hold either option, so neither default
    # is taken.
    for each in loose(launch.options):
        for name, is_there in (("nodes", has_nodes), ("gpus_per_node", has_ranks)):
            if not is_there and not facts.says(name):
                facts.lack(name, each.because)
    if not facts.says("nodes"):
        facts.claim("nodes", Found(1, default_of="torchrun"))
        if (launch.step.number("nodes") or 1) > 1 and not _is_alone(launch):
            facts.note(
                said(
                    "{file} line {line}: torchrun is given no --nnodes, so each of the {nodes} "
                    "nodes starts a job of its own",
                    file=facts.file,
                    line=launch.run.line,
                    nodes=launch.step.number("nodes"),
                )
            )
    if not facts.says("gpus_per_node"):
        facts.claim("gpus_per_node", Found(1, default_of="torchrun"))


def _is_alone(launch: Launch) -> bool:
    return any(each.start == "--standalone" for each in launch.options)


def _srun(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Counts tasks: srun starts one rank per task."""
    step = launch.step
    for name, meant in (("ntasks", "world_size"), ("nodes", "nodes")):
        if name in step.asked:
            _slurm_number(step, facts, name, meant)
    if "ntasks_per_node" in step.asked:
        _slurm_number(step, facts, "ntasks_per_node", "gpus_per_node")
    else:
        # Slurm spreads 16 tasks over 2 nodes as 8 each; where they do not divide, nodes differ and
        # no one number holds for all.
        nodes, tasks = step.number("nodes"), step.number("ntasks")
        if nodes and tasks and tasks % nodes == 0:
            (over, _), (option, word) = step.asked["nodes"], step.asked["ntasks"]
            facts.add("gpus_per_node", tasks // nodes, word.line.number, f"{option} / {over}")
    # With tasks per node the world is their product with the nodes (LaunchConfig.world_size).
    # Without, Slurm starts one task on each node.
    if not facts.says("world_size"):
        tasks = slurm.num_tasks(step)
        if tasks is not None and "ntasks_per_node" not in step.asked:
            option, word = step.asked["nodes"]
            facts.add("world_size", tasks, word.line.number, option)
        elif not facts.says("nodes"):
            facts.lack("nodes", said("no #SBATCH line or srun option says how many nodes"))


def _slurm_number(step: slurm.SlurmRequest, facts: Facts, name: str, meant: str) -> None:
    # '--nodes=4' settles it; '--nodes=$N' is not known, and '--nodes=2-4' is no one number.
    option, word = step.asked[name]
    number = step.number(name)
    if number is not None:
        line = word.line
        facts.claim(meant, Found(number, line.file, line.number, option, word.via))
    elif word.text is None:
        facts.lack(meant, said("{option}: {why}", option=option, why=word.because))
    else:
        facts.lack(meant, not_a_number(place(option, word), word.text))


# ----------------------------------------------------------------------- others


def _mpirun(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    take_options(launch, facts, MPI)
    named = facts.drop("_hosts")
    if named and not facts.says("world_size"):
        # '-H node1:4,node2:4' starts 8 ranks; a host without a number leaves the world open.
        counts = [part.partition(":")[2] for part in str(named.value).split(",")]
        sizes = [size for part in counts if (size := whole(part)) is not None]
        if len(sizes) == len(counts):
            world = sum(sizes)
            facts.claim("world_size", Found(world, named.file, named.line, named.key))
    if not facts.says("world_size"):
        facts.lack(
            "world_size", said("mpirun on line {line} is given no -np", line=launch.run.line)
        )


def _ezpz(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Counts as ezpz does: one rank for each GPU of the job around it, unless told."""
    take_options(launch, facts, EZPZ)
    if not facts.says("world_size") and not (facts.says("nodes") and facts.says("gpus_per_node")):
        facts.lack(
            "world_size",
            said(
                "{launcher} on line {line} takes every GPU it finds",
                launcher="ezpz",
                line=launch.run.line,
            ),
        )


def _msrun(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Counts as MindSpore's launcher does: eight workers, all on one node, unless told."""
    take_options(launch, facts, MSRUN)
    if not facts.says("world_size"):
        facts.claim("world_size", Found(8, default_of="msrun"))


def _paddle(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    take_options(launch, facts, PADDLE)
    devices, ips = facts.drop("_devices"), facts.drop("_ips")
    number(facts, "_nodes", "nodes")
    number(facts, "_ranks", "gpus_per_node")
    # Lists count where no number is given: '--devices 0,1,2,3' is four ranks, '--ips a,b' two
    # nodes.
    if devices and not facts.says("gpus_per_node"):
        width = len(str(devices.value).split(","))
        facts.claim("gpus_per_node", Found(width, devices.file, devices.line, devices.key))
    if ips and not facts.says("nodes"):
        facts.claim("nodes", Found(len(str(ips.value).split(",")), ips.file, ips.line, ips.key))
    if not facts.says("nodes"):
        facts.claim("nodes", Found(1, default_of="paddle.distributed.launch"))
    if not facts.says("gpus_per_node"):
        found = visible(launch)
        if found:
            facts.claim("gpus_per_node", found)
        else:
            why = said(
                "paddle's launcher on line {line} takes every GPU of a node", line=launch.run.line
            )
            facts.lack("gpus_per_node", why)


def _take_variable(launch: Launch, facts: Facts, name: str, meant: str) -> None:
    """Adds what a variable of the script says."""
    value = launch.run.variables.get(name)
    each = Field(value) if isinstance(value, tuple) else None
    if each is None:
        return
    if each.text is None:
        facts.lack(meant, said("{name}: {why}", name=name, why=each.because))
    else:
        facts.claim(meant, Found(each.text, each.line.file, each.line.number, name))


def _swift(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Counts as ms-swift does, which takes torchrun's numbers from the environment."""
    # 'NPROC_PER_NODE=gpu' is allowed as well, so the text goes the way of torchrun's option.
    _take_variable(launch, facts, "NPROC_PER_NODE", "_ranks")
    _take_variable(launch, facts, "NNODES", "_nodes")
    number(facts, "_nodes", "nodes")
    number(facts, "_ranks", "gpus_per_node")
    for name in ("nodes", "gpus_per_node"):
        if not facts.says(name):
            facts.claim(name, Found(1, default_of="torchrun"))


def _llamafactory(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Counts as LLaMA-Factory does, which has torchrun take all GPUs that it sees.

    Source: LLaMA-Factory src/llamafactory/launcher.py.
    """
    _take_variable(launch, facts, "NPROC_PER_NODE", "_ranks")
    _take_variable(launch, facts, "NNODES", "_nodes")
    number(facts, "_nodes", "nodes")
    number(facts, "_ranks", "gpus_per_node")
    if not facts.says("nodes"):
        facts.claim("nodes", Found(1, default_of="LLaMA-Factory"))
    if not facts.says("gpus_per_node"):
        _every_gpu(launch, facts, beside)


def _every_gpu(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Counts the GPUs that the script makes visible, which a launcher takes all of."""
    found = visible(launch)
    if found:
        facts.claim("gpus_per_node", found)
        if not facts.says("nodes"):
            facts.claim("nodes", Found(1, default_of=launch.launcher))
        return
    facts.lack(
        "gpus_per_node",
        said(
            "{launcher} on line {line} takes every GPU it finds",
            launcher=launch.launcher,
            line=launch.run.line,
        ),
    )


COMPOSER = {
    "n": Meaning("gpus_per_node"),
    "nproc": Meaning("gpus_per_node"),
    "world-size": Meaning("world_size"),
}


def _composer(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Counts as Composer does: all GPUs of this node unless told, and no other node.

    Source: composer 0.32 composer/cli/launcher.py.
    """
    take_options(launch, facts, COMPOSER)
    if not facts.says("gpus_per_node"):
        _every_gpu(launch, facts, beside)
    if not facts.says("world_size") and not facts.says("nodes"):
        facts.claim("nodes", Found(1, default_of="composer"))


def _python(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Takes the world of a program that starts alone from the environment."""
    for name in ("WORLD_SIZE",):
        value = launch.run.variables.get(name)
        each = Field(value) if isinstance(value, tuple) else None
        if each is not None and each.text and NUMBER.fullmatch(each.text):
            line = each.line
            facts.claim("world_size", Found(int(each.text), line.file, line.number, name))
            return
    # No world in the environment: Ray may start the ranks, as '--actor-num-nodes 2' tells.
    take(facts, flags_of(launch.arguments), ACTOR)
    if facts.says("nodes") and facts.says("gpus_per_node"):
        return
    facts.lack(
        "world_size",
        said("the program on line {line} is told by its environment", line=launch.run.line),
    )


Rule = Callable[[Launch, Facts, Mapping[str, str]], None]
RULES: dict[str, Rule] = {
    "torchrun": _torchrun,
    "srun": _srun,
    "deepspeed": hosts.deepspeed,
    "colossalai": hosts.colossalai,
    "mpirun": _mpirun,
    "msrun": _msrun,
    "ezpz": _ezpz,
    "paddle": _paddle,
    "swift": _swift,
    "megatron-swift": _swift,
    "llamafactory": _llamafactory,
    "axolotl": _every_gpu,
    "composer": _composer,
    "python": _python,
}
