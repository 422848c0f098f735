"""``serried trace paddle``: Paddle's timeline script, with its options and its two files."""

from __future__ import annotations

from pathlib import Path

import click

from serried.errors import InputError, listed
from serried.trace.formats.paddle.log import read_paddle_logs
from serried.trace.formats.paddle.timeline import num_left_out, write_paddle_timelines
from serried.views.cli.language import lang_option
from serried.views.layout.advice import warned
from serried.views.sentences import tell


@click.command("paddle", short_help="Write the timeline files of Paddle's worker logs.")
@click.option(
    "--devices",
    default=None,
    metavar="0,1,…",
    help="Devices whose logs are read, on every machine; by default all.",
)
@click.option(
    "--log_dir",
    "--log-dir",
    "folder",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of the workerlog.N files, or of the machine* folders that hold them.",
)
@click.option(
    "--multi_machine",
    "--multi-machine",
    is_flag=True,
    help="The logs lie in machine* folders.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write into; by default the log folder.",
)
@lang_option
def paddle(
    folder: Path, devices: str | None, multi_machine: bool, output: Path | None, lang: str
) -> None:
    """Writes pipeline_profile.json and pipeline_profile_perfetto.json from worker logs.

    \b
    serried trace paddle --devices 0,1 --log_dir log
    serried trace paddle --devices 0,1 --log_dir logs --multi_machine -o timelines
    """
    logs = read_paddle_logs(folder, _numbers(devices), multi_machine=multi_machine or None)
    for finding in logs.findings:
        click.echo(warned(finding, lang=lang), err=True)
    target = output or folder
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "{path} cannot be written: {reason}", path=target, reason=error.strerror
        ) from error
    if count := num_left_out(logs):
        left_out = tell(
            "{count} recv_forward and send_backward jobs are left out, as by Paddle's script; "
            "serried trace merge shows them",
            lang,
            count=count,
        )
        click.echo(left_out, err=True)
    for path in write_paddle_timelines(logs, target):
        click.echo(tell("wrote {path}", lang, path=path), err=True)


def _numbers(devices: str | None) -> tuple[int, ...] | None:
    if devices is None:
        return None
    words = [word.strip() for word in devices.split(",") if word.strip()]
    if not words or not all(word.isdecimal() for word in words):
        raise InputError(
            "--devices {devices} is not a list of device numbers; give such as 0,1", devices=devices
        )
    # Numbers are compared, not words: 0 and 00 are one device.
    numbers = tuple(map(int, words))
    if len(set(numbers)) < len(numbers):
        raise InputError(
            "--devices {devices} names a device twice; name each once, such as {example}",
            devices=devices,
            example=listed(dict.fromkeys(numbers), limit=64).replace(" ", ""),
        )
    return numbers
