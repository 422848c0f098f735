"""Reading: what lies in the folders decides how they become one Trace.

rank-*.spans                                recorded by serried          merge
workerlog.N, machine*/workerlog.N           Paddle's static executor     paddle.log
profile_record_tmp_file_for_rank_N          Paddle's dynamic graph       paddle.dynamic
*.json, *.json.gz  with PP: ranges          torch.profiler (Kineto)      kineto
                   with model_chunk         MegatronApp                  megatronapp
                   with forward-compute     veScale ndtimeline           ndtimeline
                   with pipeline timeline   Paddle's dynamic graph       paddle.dynamic
                   with kernels, no marks   torch.profiler               gpu.torch_profiler
*.pftrace          merged by serried        own_perfetto
*.sqlite           with kernels             Nsight Systems               gpu.nsight
*.parquet          with its columns         StragglerAnalysis            straggler
_serried.json, node=*/spans.parquet          merged by serried            store
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from serried.errors import InputError, listed
from serried.finding import said
from serried.trace.clocks.align import aligned
from serried.trace.clocks.setbacks import clocks_gone_back
from serried.trace.formats.events import read_events
from serried.trace.formats.gpu.nsight import REPORTS, is_nsight, nsight_trace
from serried.trace.formats.megatron.timers import require_time_stamps
from serried.trace.formats.paddle.dynamic import (
    RECORDS,
    paddle_dynamic_trace,
    read_records,
)
from serried.trace.formats.paddle.folder import holds_paddle_logs, is_worker_log
from serried.trace.formats.paddle.log import read_paddle_logs
from serried.trace.formats.paddle.trace import paddle_trace
from serried.trace.formats.straggler.table import is_straggler_table
from serried.trace.formats.straggler.trace import straggler_trace
from serried.trace.gpu.activity import GpuTrace
from serried.trace.merge.clocks import pings_in
from serried.trace.merge.files import PATTERN, Folder, Url, require_readable
from serried.trace.merge.in_memory import merge
from serried.trace.model.progress import LARGE_BYTES, Listener, size_bytes, unheard
from serried.trace.model.trace import Trace
from serried.trace.store.folder import is_store, read_store
from serried.units import bytes_text

_EVENT_FILES = ("*.json", "*.json.gz", "trace_step*")
_PERFETTO = (".pftrace", ".perfetto-trace")
_OWN_OUTPUT = frozenset({"trace.json", "pipeline_profile.json", "pipeline_profile_perfetto.json"})


def read_trace(
    places: Sequence[Folder],
    sizes: Mapping[str, int] | None = None,
    *,
    listener: Listener = unheard,
) -> Trace:
    """Returns the Trace that ``places``, folders, files or URLs, hold, whichever tool wrote them.

    Raises InputError for a profile of GPUs without marks of a pipeline, and as ``read_recording``.
    """
    found = read_recording(places, sizes, listener=listener)
    if isinstance(found, GpuTrace):
        raise InputError(
            "{paths} hold kernels of GPUs and no mark of a pipeline; serried trace stats and "
            "compare measure them, merge and serve draw them",
            paths=listed((rank.path for rank in found.ranks), limit=3),
        )
    return found


def read_recording(
    places: Sequence[Folder],
    sizes: Mapping[str, int] | None = None,
    *,
    listener: Listener = unheard,
) -> Trace | GpuTrace:
    """Returns what ``places``, folders, files or URLs, hold, whichever tool wrote them.

    It is a GpuTrace where GPUs were profiled and nothing marks a pipeline. ``sizes`` lay out the
    ranks of files that do not say how they stand. The clocks of several
    hosts are aligned. Raises InputError as the reader of those files does, and when files of
    two tools are given. Behind a URL only recordings of serried are read. ``listener`` hears
    what is done with files that are large.
    """
    for place in places:
        require_readable(place)
    paths = [place for place in places if isinstance(place, Path)]
    if (size := sum(map(size_bytes, paths))) >= LARGE_BYTES:
        told = listed(paths, limit=3)
        listener(said("reading {paths}, {size}", paths=told, size=bytes_text(size)))
    trace = _read(paths, sizes, listener) if len(paths) == len(places) else merge(places)
    # A store was aligned when it was written, and a plan has one clock.
    if isinstance(trace, GpuTrace) or trace.clocks or trace.is_planned:
        return trace
    trace = aligned(trace, pings_in(places, trace))
    return trace.with_warnings(*clocks_gone_back(trace.spans))


def are_recordings(places: Sequence[Folder]) -> bool:
    """Tells whether ``places`` hold what serried itself recorded, which can be merged piecewise.

    Raises InputError for a folder that may not be read.
    """
    for place in places:
        require_readable(place)
    return any(
        isinstance(place, Url) or (place.is_dir() and any(place.glob(PATTERN))) for place in places
    )


def _read(
    paths: Sequence[Path], sizes: Mapping[str, int] | None, listener: Listener
) -> Trace | GpuTrace:
    # From the surest sign to the vaguest: what a file or folder is called comes before what has
    # to be opened to be told, and recordings of our own are what is left.
    if len(paths) == 1 and is_store(paths[0]):
        return read_store(paths[0])
    if len(paths) == 1 and paths[0].suffix == ".parquet" and paths[0].is_file():
        return straggler_trace(paths[0])
    if any(is_worker_log(path) or (path.is_dir() and holds_paddle_logs(path)) for path in paths):
        return _paddle(paths, sizes)
    if records := _records(paths):
        return paddle_dynamic_trace([read_records(path) for path in records], sizes)
    if tables := _tables(paths):
        return straggler_trace(tables[0])
    if files := [path for path in paths if path.suffix in _PERFETTO and path.is_file()]:
        return _own_perfetto(paths, files, sizes)
    if reports := _reports(paths):
        return nsight_trace(reports)
    if files := _event_files(paths):
        return read_events(files, sizes, listener)
    require_time_stamps(paths)
    if (table := _stray_table(paths)) is not None:
        return straggler_trace(table)  # raises what it lacks, or what this machine does
    return merge(paths)


def _records(paths: Sequence[Path]) -> list[Path]:
    """Returns the files of Paddle's dynamic graph given, and those in folders."""
    found = [path for path in paths if path.is_file() and path.match(RECORDS)]
    inside = (file for path in paths if path.is_dir() for file in sorted(path.glob(RECORDS)))
    # A pipe of that name would wait for its writer, so only files are read.
    return found + [file for file in inside if file.is_file()]


def _tables(paths: Sequence[Path]) -> list[Path]:
    """Returns the StragglerAnalysis tables given, or those in folders, of which one can be read."""
    found = [path for path in paths if path.is_file() and path.suffix == ".parquet"]
    for path in paths:
        if path.is_dir():
            # A file that was named is taken for a table, and refused where it is none; in a folder
            # other Parquet files may lie beside one.
            found += [each for each in sorted(path.glob("*.parquet")) if is_straggler_table(each)]
    if len(found) > 1:
        raise InputError(
            "{paths} are tables of jobs of their own; give one of them",
            paths=listed(found, limit=3, last="and"),
        )
    return found


def _own_perfetto(
    paths: Sequence[Path], files: Sequence[Path], sizes: Mapping[str, int] | None
) -> Trace:
    if len(paths) > 1:
        raise InputError(
            "{path} holds a whole run; give it alone, or the recordings of all ranks",
            path=files[0],
        )
    from serried.trace.formats.own_perfetto import own_perfetto_trace  # few traces are of it

    return own_perfetto_trace(files[0], sizes)


def _reports(paths: Sequence[Path]) -> list[Path]:
    """Returns the exports of Nsight Systems given, and those in folders."""
    named = [path for path in paths if path.is_file() and path.suffix in REPORTS]
    if named and named[0].suffix == REPORTS[0]:
        raise InputError(
            "{path} is Nsight Systems' own report; nsys export --type sqlite makes a file that "
            "serried reads",
            path=named[0],
        )
    inside = (each for path in paths if path.is_dir() for each in sorted(path.iterdir()))
    return [*named, *(each for each in inside if is_nsight(each))]


def _stray_table(paths: Sequence[Path]) -> Path | None:
    """Returns a Parquet file where it is all that there is to read, though it seems no table."""
    # Recordings of our own are the trace; a Parquet file beside them is somebody else's.
    if any(path.is_dir() and any(path.rglob(PATTERN)) for path in paths):
        return None
    found = (each for path in paths if path.is_dir() for each in sorted(path.glob("*.parquet")))
    return next((each for each in found if each.is_file()), None)


def _paddle(paths: Sequence[Path], sizes: Mapping[str, int] | None) -> Trace:
    if len(paths) > 1:
        raise InputError(
            "{folders} are several folders, one of them of Paddle's logs; put each machine's "
            "logs into machine0, machine1 … of one folder and give that one",
            folders=listed(paths),
        )
    return paddle_trace(read_paddle_logs(paths[0]), sizes)


def _event_files(paths: Sequence[Path]) -> list[Path]:
    """Returns the event files given, or those in folders that hold no recording of our own."""
    found: list[Path] = []
    for path in paths:
        if path.is_file():
            found += [path] if any(path.match(pattern) for pattern in _EVENT_FILES) else []
        elif path.is_dir() and not any(path.rglob(PATTERN)):
            names = {each for pattern in _EVENT_FILES for each in path.glob(pattern)}
            found += sorted(each for each in names if each.is_file())
    # What serried wrote into the folder is not read again, unless there is nothing else.
    if len(found) > 1:
        found = [path for path in found if path.name not in _OWN_OUTPUT] or found
    return found
