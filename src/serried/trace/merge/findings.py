"""What merging says of files that were torn, missing, foreign, copied or begun anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from serried.errors import listed
from serried.finding import Finding, said
from serried.trace.merge.files import RankFile


def torn(rank: int, file: RankFile, count: int) -> Finding:
    """Says that a rank's file has no proper end."""
    evidence = said(
        "{path} has no proper end: rank {rank} was killed or still runs; "
        "its {count} complete spans are kept",
        path=file,
        rank=rank,
        count=count,
    )
    return Finding("torn", (evidence,), (rank,), cure=said("if it runs, merge again later"))


def lost(rank: int, count: int, kept: int) -> Finding:
    """Says that a rank's disk was full."""
    evidence = said(
        "the disk of rank {rank} was full: {count} of its spans are lost, {kept} are kept",
        rank=rank,
        count=count,
        kept=kept,
    )
    cure = said("record fewer steps, or into a folder with more space")
    return Finding("lost", (evidence,), (rank,), cure=cure)


def cut_in_header(file: RankFile) -> Finding:
    """Says that a file holds no span at all."""
    evidence = said(
        "{path} ends within its header: its rank stopped before it recorded a span", path=file
    )
    return Finding("torn", (evidence,))


def foreign(file: RankFile) -> Finding:
    """Says that a file is of another program."""
    return Finding("foreign", (said("{path} is not a recording of serried; left out", path=file),))


def missing(ranks: tuple[int, ...], world_size: int) -> Finding:
    """Says which ranks of the job have no file."""
    evidence = said(
        "{count} of {world} ranks have no file here: {ranks}",
        count=len(ranks),
        world=world_size,
        ranks=listed(ranks),
    )
    cure = said("give the folders of all nodes at once")
    return Finding("missing", (evidence,), ranks, cure=cure)


def copied(rank: int, kept: RankFile, other: RankFile) -> Finding:
    """Says that one recording lies in two places."""
    evidence = said(
        "{other} is a copy of {path}, rank {rank}'s recording; counted once",
        other=other,
        path=kept,
        rank=rank,
    )
    return Finding("copied", (evidence,), (rank,))


def restarted(rank: int, earlier: RankFile, file: RankFile, step: int | None) -> Finding:
    """Says that a rank was restarted, and what of its earlier recording is kept."""
    evidence = said(
        "rank {rank} was restarted: {path} follows {earlier}, of which all spans are kept"
        if step is None
        else "rank {rank} was restarted: {path} follows {earlier}, of which the steps before "
        "{step} are kept",
        rank=rank,
        path=file,
        earlier=earlier,
        step=step,
    )
    return Finding("restarted", (evidence,), (rank,))


def moved(rank: int, earlier: RankFile, file: RankFile, host: str) -> Finding:
    """Says that a rank was restarted on another machine, whose recording alone is kept."""
    evidence = said(
        "rank {rank} was restarted on another machine, {host}: {path} is kept, {earlier} left out",
        rank=rank,
        host=host,
        path=file,
        earlier=earlier,
    )
    cure = said("merge the folders of the earlier attempt by themselves to see it")
    return Finding("restarted", (evidence,), (rank,), cure=cure)


def further_attempts(folder: Path, further: Sequence[Path]) -> Finding:
    """Says that folders of later attempts were not given."""
    evidence = said(
        "the job of {folder} was restarted: {further} hold what came after, and are left out",
        folder=folder,
        further=listed(further),
    )
    return Finding("restarted", (evidence,), cure=said("merge them by themselves"))
