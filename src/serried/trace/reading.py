"""Reading: what lies in the folders decides how they become one Trace.

rank-*.spans                      recorded by serried        merge
workerlog.N, machine*/workerlog.N Paddle's static executor   paddle
*.parquet with its columns        StragglerAnalysis          straggler
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from serried.errors import InputError, listed
from serried.trace.merge import Trace, merge
from serried.trace.paddle import paddle_trace
from serried.trace.paddle_log import holds_paddle_logs, read_paddle_logs
from serried.trace.straggler import straggler_trace


def read_trace(folders: Sequence[Path], sizes: Mapping[str, int] | None = None) -> Trace:
    """Returns the Trace that ``folders`` hold, whichever tool wrote them.

    ``sizes`` lay out the ranks of files that do not say how they stand. Raises InputError as
    the reader of those files does, and when folders of two tools are given.
    """
    if len(folders) == 1 and folders[0].suffix == ".parquet" and folders[0].is_file():
        return straggler_trace(folders[0])
    foreign = [folder for folder in folders if folder.is_dir() and holds_paddle_logs(folder)]
    if not foreign:
        return merge(folders)
    if len(folders) > 1:
        raise InputError(
            "{folders} are several folders, one of them of Paddle's logs; put each machine's "
            "logs into machine0, machine1 … of one folder and give that one",
            folders=listed(folders),
        )
    return paddle_trace(read_paddle_logs(folders[0]), sizes)
