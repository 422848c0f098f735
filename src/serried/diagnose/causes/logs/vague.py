"""What is left to say where no rule explains a failure: tracebacks cut off, echoes, marked lines.

These answers name nobody and come after all others: they say which line to read first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from serried.diagnose.causes.logs.meaning import Standing
from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.whom import named, speaker_named
from serried.finding import Sentence, said

LONGEST_TEXT = 200
_READ_ON = said("give the lines after it too: the last line of a traceback names the error")
_READ_NEXT = said(
    "give the lines after it too: the launcher names the process that failed, or the signal"
)
_READ_LINE = said("read that line and those before it in the log of the process that wrote it")
_ITS_LOG = said(
    "read that rank's own log: torchrun writes one for each with --log-dir logs --redirects 3, "
    "Paddle with --log_dir; @record on main() brings its traceback into torchrun's summary"
)
_PARTS = (
    (CauseClass.EXTERNAL_STOP, re.compile(r"_terminate_process_handler")),
    (CauseClass.STARTUP, re.compile(r"init_process_group|rendezvous|TCPStore|_c10d_store")),
    (CauseClass.DATA, re.compile(r"torch/utils/data/")),
    (CauseClass.STORAGE, re.compile(r"lization\.py|checkpoint\w*\.py|safetensors")),
)
"""Parts of a program by the frames of a traceback, for one whose error was cut off."""
_LAUNCHERS = ("torch/multiprocessing/spawn.py", "elastic/multiprocessing/api.py")
"""Files of torch whose code raises again what a process that it started ended by."""


def vague_candidates(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields what is left to say, where it is anything."""
    cuts = told.of("cut_traceback")
    own = next((sign for sign in cuts if not _is_of_launcher(sign)), None)
    if cuts:
        yield _cut(told, own or cuts[0])
    if (echoes := told.of("exception")) and own is None:  # which tells less
        yield _cause(
            told,
            echoes[-1],
            CauseClass.EXCEPTION,
            "exit_code",
            said(
                "a process failed, by {text}; what it raised itself is not in these lines",
                text=echoes[-1].text[:LONGEST_TEXT],
            ),
            _ITS_LOG,
        )
    yield from _of_launcher_alone(told)
    if marked := told.of("marked"):
        first = next((sign for sign in marked if "topic" in sign.facts), marked[0])
        topic = first.facts.get("topic")
        yield _cause(
            told,
            first,
            CauseClass(topic) if isinstance(topic, str) else CauseClass.EXCEPTION,
            "marked_line",
            said(
                "no rule explains what failed; the first telling line that is marked as an error "
                "is: {text}",
                text=first.text[:LONGEST_TEXT],
            ),
            _READ_LINE,
        )


def _of_launcher_alone(told: LoggedSigns) -> Iterator[RankedCause]:
    """Yields that processes ended, where a launcher's lines are cut off before what began it."""
    if told.first("first_failure", "restarted") is not None:
        return
    if others := told.of("other_failure"):
        ranks = {rank for sign in others if (rank := told.rank(sign.speaker)) is not None}
        verdict = said(
            "a process failed, and {who} beside it; which was the first is not in these lines",
            who=named(ranks),
        )
        yield _cause(told, others[0], CauseClass.EXCEPTION, "exit_code", verdict, _ITS_LOG)
    elif closing := told.of("closing"):
        verdict = said(
            "the launcher ended its processes: one of them had failed, or the launcher was "
            "stopped itself; these lines do not tell which"
        )
        yield _cause(told, closing[0], CauseClass.EXCEPTION, "exit_code", verdict, _READ_NEXT)


def _cut(told: LoggedSigns, sign: Sign) -> RankedCause:
    frames = sign.facts.get("frames")
    last = frames[-1] if isinstance(frames, tuple) and frames else None
    verdict = said(
        "{who} raised an exception whose name was cut off", who=speaker_named(sign.speaker)
    )
    if last:
        verdict = said(
            "{who} raised an exception in {function} ({file}:{line}); its name was cut off",
            who=speaker_named(sign.speaker),
            function=last[2],
            file=last[0],
            line=last[1],
        )
    return _cause(told, sign, _part(frames), "cut_traceback", verdict, _READ_ON)


def _is_of_launcher(sign: Sign) -> bool:
    """Tells whether a traceback ends where a process waits for those that it started."""
    frames = sign.facts.get("frames")
    last = frames[-1] if isinstance(frames, tuple) and frames else None
    return last is not None and last[0].endswith(_LAUNCHERS)


def _part(frames: object) -> CauseClass:
    inner = frames[-6:] if isinstance(frames, tuple) else ()
    words = " ".join(f"{file} {function}" for file, _, function in inner)
    return next((part for part, found in _PARTS if found.search(words)), CauseClass.EXCEPTION)


def _cause(
    told: LoggedSigns,
    sign: Sign,
    cause_class: CauseClass,
    kind: str,
    verdict: Sentence,
    cure: Sentence,
) -> RankedCause:
    cause = Cause(
        cause_class, kind, None, verdict, confidence=0.3, quotes=quotes([sign]), cures=(cure,)
    )
    return RankedCause(cause, Standing.MARKED, told.place(sign))
