"""Ranks that launchers with a list of hosts start: DeepSpeed's and ColossalAI's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath

from serried.errors import InputError
from serried.finding import Sentence, said
from serried.frameworks.deepspeed import hosts as deepspeed_hosts
from serried.launch.facts.flags import Meaning
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.named_files import meant
from serried.launch.formats import hostfile
from serried.launch.starters.launchers import Launch
from serried.launch.starters.numbers import number, take_options, visible

DEEPSPEED = {
    "num-gpus": Meaning("_ranks", "text"),
    "num-nodes": Meaning("_nodes", "text"),
    "hostfile": Meaning("_hostfile", "text"),
    "H": Meaning("_hostfile", "text"),
    "include": Meaning("_include", "text"),
    "i": Meaning("_include", "text"),
    "exclude": Meaning("_exclude", "text"),
    "e": Meaning("_exclude", "text"),
}
COLOSSALAI = {
    "nproc-per-node": Meaning("_ranks", "text"),
    "num-nodes": Meaning("_nodes", "text"),
    "hostfile": Meaning("_hostfile", "text"),
    "host": Meaning("_hosts", "text"),
    "include": Meaning("_include", "text"),
    "exclude": Meaning("_exclude", "text"),
}
DEFAULT_HOSTFILE = "/job/hostfile"
"""Where DeepSpeed's launcher looks when it is given none."""


def deepspeed(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Counts slots of the hostfile, or of this machine, that the filters leave."""
    take_options(launch, facts, DEEPSPEED)
    path = facts.text("_hostfile")
    include, exclude = facts.text("_include") or "", facts.text("_exclude") or ""
    unknown = _unknown(facts)
    number(facts, "_nodes", "nodes")
    number(facts, "_ranks", "gpus_per_node")
    if unknown is not None:
        facts.lack("world_size", unknown)
        return
    hosts = _hosts(path, beside)
    # From what tells most to what tells least: the hostfile, slots that the filter spells out,
    # --num_gpus, visible devices. A hostfile that is named but not given may hold several nodes, so
    # the figures of this node alone do not count then.
    if hosts is not None:
        line = launch.run.line.number
        hostfile.count(facts, hosts, include=include, exclude=exclude, line=line)
    elif include and (slots := _explicit(include)):
        hostfile.take(facts, slots, launch.run.line.number, "--include")
    elif facts.says("gpus_per_node") and (not path or facts.says("nodes")):
        if not facts.says("nodes"):
            facts.claim("nodes", Found(1, default_of="deepspeed"))
    elif (found := visible(launch)) and not path:
        facts.claim("world_size", found)
    else:
        facts.lacks.pop("world_size", None)
        facts.lack("world_size", _no_hosts(launch, path))


PRIVATE = ("_hostfile", "_hosts", "_include", "_exclude")


def _unknown(facts: Facts) -> Sentence | None:
    """Takes out what names hosts; returns why one of it is not known, where that is so."""
    reasons = [each for name in PRIVATE for each in facts.lacks.get(name, [])]
    for name in PRIVATE:
        facts.drop(name)
    return reasons[0] if reasons else None


def _no_hosts(launch: Launch, path: str | None) -> Sentence:
    if path:
        return said(
            "the hostfile {path} (line {line}) is not given beside it",
            path=path,
            line=launch.run.line,
        )
    return said("deepspeed on line {line} takes every GPU it finds", line=launch.run.line)


def _hosts(path: str | None, beside: Mapping[str, str]) -> hostfile.Hosts | None:
    """Returns the hosts of the hostfile meant: ``/job/hostfile`` when none is named."""
    wanted = path or DEFAULT_HOSTFILE
    name = meant(wanted, beside)
    return None if name is None else hostfile.read(beside[name], PurePosixPath(wanted).name)


def _explicit(include: str) -> list[int] | None:
    """Returns how many slots a filter names on each host, where it names them for every host.

    Hosts are counted as the filter lists them; the hostfile that would order them is not there.
    """
    slots: dict[str, set[str]] = {}
    for part in include.split("@"):
        # 'node1:0,1@node2:0' spells its slots out; how many slots 'node1@node2' has, only the
        # hostfile would tell.
        host, _, named = part.partition(":")
        if not named:
            return None
        slots.setdefault(host, set()).update(named.split(","))
    return list(map(len, slots.values()))


def colossalai(launch: Launch, facts: Facts, beside: Mapping[str, str]) -> None:
    """Counts hosts, named or in a file of one name a line, times ranks on each.

    Filters and ``--num_nodes`` choose among the hosts of a file alone; without a file or names
    all ranks are on this node. Source: ColossalAI colossalai/cli/launcher/run.py.
    """
    take_options(launch, facts, COLOSSALAI)
    told = facts.settled()
    path, named = facts.text("_hostfile"), told.get("_hosts")
    unknown = _unknown(facts)
    number(facts, "_ranks", "gpus_per_node")
    number(facts, "_nodes", "nodes")
    # --num_nodes only cuts a list of hosts short, so it is set aside until there is one. Where it
    # is not known ('$N') it stays, and leaves the number of nodes open.
    wanted = facts.drop("nodes") if not facts.lacks.get("nodes") else None
    if unknown is not None:
        facts.lack("nodes", unknown)
    elif path:
        _of_hostfile(launch, facts, beside, path, wanted, told)
    elif named:
        facts.claim("nodes", replace(named, value=len(str(named.value).split(","))))
    elif not facts.says("nodes"):
        facts.claim("nodes", Found(1, default_of="colossalai run"))
    if not facts.says("gpus_per_node"):
        why = said("colossalai run on line {line} takes every GPU of a node", line=launch.run.line)
        facts.lack("gpus_per_node", why)


def _of_hostfile(
    launch: Launch,
    facts: Facts,
    beside: Mapping[str, str],
    path: str,
    wanted: Found | None,
    told: Mapping[str, Found],
) -> None:
    """Counts the hosts of a file that the filters leave, and of those the first ``wanted``."""
    name = meant(path, beside)
    text = None if name is None else beside[name]
    include, exclude = told.get("_include"), told.get("_exclude")
    if include and exclude:
        raise InputError("include and exclude do not go together; give one of them")
    chosen = include or exclude
    listed = str(chosen.value).split(",") if chosen else []
    names = hostfile.names(text) if text is not None else None
    # The first --num_nodes hosts of the file are taken, so that number may stand in for a file that
    # is not given. Hosts to include are a list by themselves.
    if names is None and not include:
        why = said(
            "the hostfile {path} (line {line}) is not given beside it",
            path=path,
            line=launch.run.line,
        )
        facts.lack("nodes", why) if wanted is None else facts.claim("nodes", wanted)
        return
    for host in listed:
        if names is not None and host not in names:
            raise deepspeed_hosts.unknown_host(host, names)
    left = listed if include else [host for host in names or () if host not in listed]
    # --num_nodes takes hosts off the end and adds none: as many as there are, or more, change
    # nothing, nor does a number below one.
    if wanted and isinstance(wanted.value, int) and 0 < wanted.value < len(left):
        facts.claim("nodes", wanted)
    elif chosen:
        facts.claim("nodes", replace(chosen, value=len(left)))
    else:
        facts.claim("nodes", replace(told["_hostfile"], value=len(left)))
