"""``serried collect``: what a job left on all its hosts, in one folder."""

from __future__ import annotations

import os
from pathlib import Path

import click

from serried.diagnose.collect import collecting
from serried.diagnose.collect.collecting import Collected
from serried.diagnose.collect.transport import (
    Asked,
    Source,
    by_srun,
    by_ssh,
    here,
    hosts_in,
    nodes_of,
)
from serried.errors import InputError
from serried.finding import said
from serried.units import bytes_text
from serried.views.cli.language import lang_option
from serried.views.cli.output import PATH
from serried.views.sentences import say


@click.command("collect")
@click.argument("folders", nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=PATH, help="The folder that takes it all.")
@click.option("--hosts", help="Hosts that ssh reaches, such as node0,node1.")
@click.option("--hostfile", type=PATH, help="A file that names one such host a line.")
@click.option("--slurm", metavar="JOB", help="A running Slurm job, whose nodes srun reaches.")
@click.option(
    "--most-file", default=16.0, show_default=True, help="MB of one file; of more, its end."
)
@click.option("--most-host", default=512.0, show_default=True, help="MB of one host.")
@click.option("--dry-run", is_flag=True, help="Print the commands, and run none.")
@lang_option
def collect(
    folders: tuple[str, ...],
    output: Path,
    hosts: str | None,
    hostfile: Path | None,
    slurm: str | None,
    most_file: float,
    most_host: float,
    dry_run: bool,
    lang: str,
) -> int:
    """Brings what a job left on its hosts into one folder, for serried diagnose.

    Without hosts it takes folders of this machine, such as a shared one; within a Slurm job, those
    of all its nodes. Exits with 1 where a host sent nothing.

    \b
    serried collect /local/run /var/log/job -o evidence --hostfile hosts.txt
    serried collect /shared/run -o evidence
    """
    if not (most_file > 0 and most_host > 0):
        raise InputError("a bound of 0 MB keeps nothing; give more")
    # On every host the same place: a bare name would lie in the home folder there.
    places = tuple(f if f.startswith("~") else str(Path(f).absolute()) for f in folders)
    asked = Asked(places, most_file, most_host)
    sources = _sources(asked, hosts, hostfile, slurm)
    if dry_run:
        click.echo("\n".join(source.shown() for source in sources))
        return 0
    found = collecting.collect(
        sources, output, lambda each: click.echo(_told(each, lang), err=True)
    )
    told = said(
        "{size} from {sent} of {asked} hosts is in {folder}; next: serried diagnose {folder}",
        sent=len(found.hosts) - len(found.failed),
        asked=len(found.hosts),
        size=bytes_text(sum(each.size_bytes for each in found.hosts)),
        folder=output,
    )
    click.echo(say(told, lang))
    # Where a host has none of the folders, what came of it is of no job.
    is_short = any(len(each.missing) == len(folders) for each in found.hosts)
    return 1 if found.failed or is_short else 0


def _sources(
    asked: Asked, hosts: str | None, hostfile: Path | None, slurm: str | None
) -> tuple[Source, ...]:
    """Returns the hosts that were named, or those of the Slurm job that this runs in, or this."""
    if sum(each is not None for each in (hosts, hostfile, slurm)) > 1:
        raise InputError("give one of --hosts, --hostfile and --slurm")
    if hosts is not None:
        return by_ssh([each for each in hosts.split(",") if each], asked)
    if hostfile is not None:
        return by_ssh(hosts_in(hostfile), asked)
    job = slurm or os.environ.get("SLURM_JOB_ID")
    return by_srun(nodes_of(job), job, asked) if job else (here(asked),)


def _told(each: Collected, lang: str) -> str:
    if each.problem:
        return f"{each.host}: {say(each.problem, lang)}"
    size, files = bytes_text(each.size_bytes), len(each.files)
    sent = (
        said("{host} sent one file, {size}", host=each.host, size=size)
        if files == 1
        else said("{host} sent {files} files, {size}", host=each.host, files=files, size=size)
    )
    lines = [sent]
    if each.cut:
        lines.append(
            said(
                "of {count} files of {host} only the end was taken: they are larger than "
                "--most-file",
                count=len(each.cut),
                host=each.host,
            )
        )
    if each.left_out:
        lines.append(
            said(
                "{count} files of {host} were left out: all together are larger than --most-host",
                count=each.left_out,
                host=each.host,
            )
        )
    lines += [said("{host} has no {folder}", host=each.host, folder=f) for f in each.missing]
    return "\n".join(say(line, lang) for line in lines)
