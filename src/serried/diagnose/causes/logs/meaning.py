"""What a sign means by itself: its class, how near to the root it is, its sentence and its cures.

    SignMeaning(("gpu_oom",), GPU_OOM, "gpu_oom", Standing.ROOT, (said("{who} ..."), ...), cures)
                                                                 └── the first whose facts are known

>>> from serried.diagnose.diagnosis import CauseClass
>>> Standing.ROOT < Standing.WAITS < Standing.FOLLOWS
True
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from serried.diagnose.causes.logs.signs import LoggedSigns, RankedCause, quotes
from serried.diagnose.diagnosis import Cause, CauseClass
from serried.diagnose.evidence.quote import Speaker
from serried.diagnose.evidence.sign import Sign
from serried.diagnose.whom import named, speaker_named
from serried.finding import Sentence, said


class Standing(IntEnum):
    """Says how near to the root of a failure a kind of cause is, where several are told."""

    HARDWARE = 0
    """A part that broke: whatever else is printed follows."""
    EXHAUSTED = 1
    """Memory or a disk ran out, or a node was lost."""
    ROOT = 2
    """What a process says of its own failure, or who stopped the job."""
    MISMATCH = 3
    """Ranks that met with different calls."""
    CONNECTION = 4
    """A network, store or peer that could not be reached."""
    ENDED = 5
    """A process that ended without a word of its own."""
    WAITS = 6
    """Ranks that waited until a limit."""
    NOTICED = 7
    """Something odd, which may have nothing to do with the end."""
    FOLLOWS = 8
    """What another failure leaves behind: a closed connection, a summary of the launcher's."""
    MARKED = 9
    """A line that is marked as an error, where no rule says what it means."""


@dataclass(frozen=True)
class SignMeaning:
    """Says what signs of some kinds mean where nothing else is asked."""

    kinds: tuple[str, ...]
    cause_class: CauseClass
    kind: str
    standing: Standing
    templates: tuple[Sentence, ...]
    """The sentence with ``{who}`` and facts; of several the first whose facts are all known."""
    cures: tuple[Sentence, ...] = ()
    confidence: float = 0.8
    ranks: str = "speakers"
    """Names whose fault it is: that of its ``speakers``, ``unknown``, or ``nobody``."""
    is_bare: bool = False
    """Whether such a line leaves out what failed, so that it adds nothing to one that tells."""


def candidates(told: LoggedSigns, meanings: Sequence[SignMeaning]) -> Iterator[RankedCause]:
    """Yields a candidate for each meaning of which there are signs."""
    for meaning in meanings:
        if signs := told.of(*meaning.kinds):
            yield candidate(told, meaning, signs)


def candidate(told: LoggedSigns, meaning: SignMeaning, signs: Sequence[Sign]) -> RankedCause:
    """Returns what some signs of a meaning say together; the first of them gives the facts."""
    ranks = told.ranks(signs)
    who = named(ranks) if len(ranks) > 1 else speaker_named(_who(told, signs))
    culprits = {"speakers": ranks or None, "unknown": None, "nobody": ()}[meaning.ranks]
    facts = {name: value for sign in reversed(signs) for name, value in sign.facts.items()}
    values = {**facts, **signs[0].facts, "who": who, "code": signs[0].code}
    cause = Cause(
        meaning.cause_class,
        meaning.kind,
        culprits,
        _sentence(meaning.templates, values),
        meaning.confidence,
        quotes=quotes(signs),
        cures=meaning.cures,
        collective=signs[0].collective,
    )
    return RankedCause(cause, meaning.standing, told.place(signs[0]), meaning.is_bare)


def _who(told: LoggedSigns, signs: Sequence[Sign]) -> Speaker:
    """Returns whom the verdict names: of the signs' speakers the one that is told best."""
    speakers = [sign.speaker for sign in signs]
    whole = [each for each in speakers if each.global_rank is not None]
    numbered = whole or [each for each in speakers if told.rank(each) is not None]
    hosted = numbered or [each for each in speakers if each.host or each.pid is not None]
    return hosted[0] if hosted and told.rank(speakers[0]) is None else (whole or speakers)[0]


def _sentence(templates: Sequence[Sentence], values: dict[str, object]) -> Sentence:
    for template in (each.template for each in templates):
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
        if all(values.get(name) is not None for name in names):
            return said(template, **{name: values[name] for name in names})
    last = templates[-1].template
    names = [name for _, name, _, _ in string.Formatter().parse(last) if name]
    return said(
        last, **{name: values.get(name) if values.get(name) is not None else "?" for name in names}
    )
