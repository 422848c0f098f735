"""Python exceptions: the first that is a process's own failure, not an echo of another's.

own       ValueError, KeyError, ModuleNotFoundError ... of user code
echo      ChildFailedError, a connection that was reset, a collective that timed out
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.evidence.text.progress import PROGRESS_KINDS
from serried.diagnose.whom import named, speaker_named
from serried.errors import Listed, listed
from serried.finding import Sentence, said

ECHOES = frozenset(
    (
        "ChildFailedError",
        "ProcessExitedException",
        "ProcessRaisedException",
        "SignalException",
        "CalledProcessError",
        "BrokenPipeError",
        "ConnectionResetError",
        "ConnectionRefusedError",
        "EOFError",
        "DistBackendError",
        "DistNetworkError",
        "DistStoreError",
        "DistError",
        "KeyboardInterrupt",
        "SystemExit",
        "ActorDiedError",
        "RayActorError",
        "WorkerCrashedError",
        "RayTaskError",
        "TrainingFailedError",
        "WorkerGroupError",
        "ControllerError",
        "CancelledError",
        "JobFailedError",
        "TimeoutError",
        "GeneratorExit",
        "ActorUnavailableError",
        "GetTimeoutError",
        "ConnectionError",
        "StopIteration",
        "BdbQuit",
    )
)
"""Exceptions that tell of another process's end, or of a limit that ran out."""
_ECHO_WORDS = (
    "NCCL",
    "gloo",
    "c10d",
    "Connection",
    "Broken pipe",
    "peer",
    "process group watchdog",
    "Timed out",
    "Socket Timeout",
    "timed out",
    "SIGTERM",
    "terminated with",
    "exited unexpectedly",
    "Error in child",
    "An issue was found when launching the training",
    "non-zero exit",
    "worker died",
    "Engine core",
    "EngineCore",
    "Caught collective",
    "monitoredBarrier",
    "Monitored Barrier",
    "Hccl",
    "Detected mism",
    "HCCL",
    "ACL stream",
)
_OWN_CALL = re.compile(
    r"enforce fail at \S*gloo/(?:all|barrier|broadcast|gather|reduce|scatter)\w*\.cc:\d+\]"
)
"""Where gloo checks what a rank itself brings to a collective, before anything is sent."""
_OWN_SIZES = said(
    "gloo checks there what this rank itself brings to the call: compare the sizes that it sends "
    "and receives (input_split_sizes, output_split_sizes) with what its peers are told"
)
_SPAWN = "multiprocessing/spawn.py"
"""Where torch's parent process raises, without words of its own, what ended a child."""
_MULTIPROCESSING = re.compile(r"\bmultiprocessing[/\\](?:spawn|forkserver)\.py$")
"""Where a child of Python's own multiprocessing begins."""
_UNKNOWN_TO_CHILD = ("AttributeError", "ImportError", "ModuleNotFoundError")
"""What a child raises that cannot import what it is to run, as of a function in a notebook."""
_BLAMES = re.compile(r"\b(?:an)?other (?:ranks?|workers?)\b", re.IGNORECASE)
"""Who raises such an exception says that the trouble is elsewhere."""
_LIBRARY = re.compile(r"(?:^|/)(?:site|dist)-packages/|/lib(?:64)?/python\d|^<|^torch/")
"""Files of Python and of packages that were installed."""
_READ = said("read the traceback of that rank from its last line up")
_SAME_EVERYWHERE = said(
    "every rank that speaks says the same, so look at code, data or paths that all share"
)
LONGEST_TEXT = 300
LONGEST_NAMES = 120
"""Letters of the parameters that a verdict names; a skipped branch has dozens."""
_USE_PARAMETERS = said(
    "use these parameters in the loss, or DistributedDataParallel(find_unused_parameters=True)"
)
_NAME_PARAMETERS = said(
    "run with TORCH_DISTRIBUTED_DEBUG=DETAIL to see the names of these parameters"
)
LONGEST_VERDICT, FEWEST_LETTERS = 250, 80
"""Letters of an exception and its place together, and those of the exception that are left."""


def exception_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields the first exception that no other reader explains and that is no echo."""
    explained = {
        (sign.quote.source, sign.quote.line) for sign in told.signs if sign.kind not in _SILENT
    }
    own = [
        sign
        for sign in told.of("exception")
        if (sign.quote.source, sign.quote.line) not in explained and not _is_echo(sign)
    ]
    if own:
        yield _candidate(told, own)
    yield from _unused(told)


_SILENT = PROGRESS_KINDS | {"exception", "marked"}


def _is_echo(sign: Sign) -> bool:
    name = str(sign.facts.get("name"))
    frames = sign.facts.get("frames")
    innermost = frames[-1] if isinstance(frames, tuple) and frames else ("", 0, "")
    if innermost[2] == "join" and str(innermost[0]).endswith(_SPAWN):
        return True
    if _OWN_CALL.search(sign.text):
        return False
    return (
        is_of_lost_parent(sign) or name in ECHOES or any(word in sign.text for word in _ECHO_WORDS)
    )


def is_of_lost_parent(exception: Sign) -> bool:
    """Tells whether a child could not read what it is to run: its parent ended as it wrote that.

    A child that was told in full and finds no such function or module fails at the same line.
    """
    frames = exception.facts.get("frames")
    if not isinstance(frames, tuple) or exception.facts.get("name") in _UNKNOWN_TO_CHILD:
        return False
    return any(
        function == "_main" and _MULTIPROCESSING.search(file) for file, _, function in frames[-2:]
    )


def _candidate(told: LoggedSigns, own: list[Sign]) -> RankedCause:
    first = own[0]
    same = [sign for sign in own if sign.text == first.text]
    ranks = told.ranks(same)
    frames = first.facts.get("frames")
    innermost = frames[-1] if isinstance(frames, tuple) and frames else None
    who = named(ranks) if len(ranks) > 1 else speaker_named(first.speaker)
    text = first.text[:LONGEST_TEXT]
    if innermost:
        room = max(LONGEST_VERDICT - len(innermost[0]) - len(innermost[2]), FEWEST_LETTERS)
        text = text if len(text) <= room else f"{text[:room]}…"
        verdict = said(
            "{who} raised {text} in {function} ({file}:{line})",
            who=who,
            text=text,
            function=innermost[2],
            file=innermost[0],
            line=innermost[1],
        )
    else:
        verdict = said("{who} raised {text}", who=who, text=text)
    cures = [_begin(frames) if isinstance(frames, tuple) and frames else _READ]
    if _OWN_CALL.search(first.text):
        cures.insert(0, _OWN_SIZES)
    if len(ranks) > 1:
        cures.append(_SAME_EVERYWHERE)
    cause = Cause(
        CauseClass.EXCEPTION,
        "exception",
        None if _BLAMES.search(first.text) else ranks or None,
        verdict,
        confidence=0.85,
        quotes=quotes(same),
        cures=tuple(cures),
    )
    return RankedCause(cause, Standing.ROOT, told.place(first))


def _begin(frames: Sequence[tuple[str, int, str]]) -> Sentence:
    """Returns where to begin to read: at what the job's own code called, if a library raised it."""
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])]
    file, line, _ = (own or frames)[-1]
    if own and own[-1] != frames[-1]:
        return said(
            "a library raised it; begin at the innermost line of the job's own code: {place}",
            place=f"{file}:{line}",
        )
    return said(
        "the innermost line of its traceback is where to begin: {place}", place=f"{file}:{line}"
    )


def _unused(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields parameters without a gradient: DDP waits for them, and says on which rank."""
    signs = told.of("unused")
    if not signs:
        return
    ranks = told.ranks(sign for sign in signs if "rank" in sign.facts) or told.ranks(signs)
    names = _first_fact(signs, "parameters")
    indices = _first_fact(signs, "indices")
    who = named(ranks) if ranks else speaker_named(signs[0].speaker)
    cures = [_USE_PARAMETERS]
    if names:
        verdict = said(
            "on {who} parameters got no gradient ({names}): a branch of the model was skipped; the "
            "rank that prints this is the one that noticed",
            who=who,
            names=_shown(names),
        )
    elif indices:
        verdict = said(
            "on {who} parameters numbered {indices} got no gradient: a branch of the model was "
            "skipped; the rank that prints this is the one that noticed",
            who=who,
            indices=listed(indices.split()),
        )
        cures.append(_NAME_PARAMETERS)
    else:
        verdict = said(
            "parameters got no gradient on {who}: a branch of the model was skipped", who=who
        )
    cause = Cause(
        CauseClass.EXCEPTION,
        "ddp_unused",
        ranks or None,
        verdict,
        confidence=0.9,
        quotes=quotes(signs),
        cures=tuple(cures),
    )
    yield RankedCause(cause, Standing.ROOT, told.place(signs[0]))


def _shown(names: str) -> Listed:
    """Returns the first of some parameters, whole, as far as a verdict has room for them."""
    each = [name.split()[0] for name in names.split(", ") if name.strip()]
    lengths = accumulate(len(name) for name in each)
    fitting = sum(length <= LONGEST_NAMES for length in lengths)
    return listed(each, limit=max(fitting, 1))


def _first_fact(signs: Sequence[Sign], name: str) -> str | None:
    return next((str(sign.facts[name]) for sign in signs if name in sign.facts), None)
