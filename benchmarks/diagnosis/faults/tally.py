"""What was said of many faults, counted by fault, written down after each run.

>>> print(Tally([]).text())
no run came to its end
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.diagnosis.faults.fault import HEALTHY
from benchmarks.diagnosis.faults.injected import Outcome


@dataclass(frozen=True)
class Tally:
    """Holds what was said of each run."""

    outcomes: Sequence[Outcome]
    crashed: Sequence[tuple[str, int, str]] = ()
    """Runs that could not be made: fault, seed, why."""

    def text(self) -> str:
        """Returns a line for each fault, what went wrong, and the sums."""
        if not self.outcomes and not self.crashed:
            return "no run came to its end"
        kinds = list(dict.fromkeys(each.fault.kind for each in self.outcomes))
        lines = [line for kind in kinds for line in self._kind(kind)]
        for name, seed, why in self.crashed:
            lines.append(f"not run: {name} {seed}: {why.strip().splitlines()[-1]}")
        return "\n".join([*lines, *self._sums()])

    def _kind(self, kind: str) -> Iterator[str]:
        told = sorted(self._of(kind), key=lambda each: each.fault.seed)
        right = sum(each.is_right for each in told)
        accused = sum(each.accuses for each in told)
        causes = sum(each.is_cause_right for each in told)
        also = f"cause right {causes:>3}  " if kind not in HEALTHY else ""
        yield f"{kind:<24}{right:>3} of {len(told):<4}{also}innocents named {accused}"
        for each in told:
            if not (each.is_right and each.is_cause_right) or each.accuses:
                f = each.fault
                yield f"    {f.seed}: tp {f.tp} pp {f.pp} dp {f.dp} rank {f.roots}: {each.said}"

    def _sums(self) -> Iterator[str]:
        faults = [each for each in self.outcomes if each.fault.kind not in HEALTHY]
        quiet = [each for each in self.outcomes if each.fault.kind in HEALTHY]
        if faults:
            right = sum(each.is_right for each in faults)
            causes = sum(each.is_cause_right for each in faults)
            share = right / len(faults)
            yield f"root named: {right} of {len(faults)} ({share:.1%}), with its cause {causes}"
        if quiet:
            named = sum(each.accuses for each in quiet)
            told = sum(not each.is_right for each in quiet)
            yield f"without a fault: {len(quiet)}, a rank named in {named}, a fault told in {told}"

    def _of(self, kind: str) -> list[Outcome]:
        return [each for each in self.outcomes if each.fault.kind == kind]


def write_tally(tally: Tally, file: Path) -> None:
    """Writes a tally as text and beside it as JSON, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    runs = [judged(each) for each in tally.outcomes]
    for place, text in (
        (file, tally.text() + "\n"),
        (file.with_suffix(".json"), json.dumps(runs, ensure_ascii=False, indent=1)),
    ):
        half = place.with_name(place.name + ".part")
        half.write_text(text, "utf-8")
        half.replace(place)


def judged(outcome: Outcome) -> dict[str, object]:
    """Returns a run as JSON values: its fault, whether its root was named, and what was said."""
    top = {name: outcome.answer[name] for name in ("verdict", "kind", "ranks", "cost")}
    return {
        "fault": asdict(outcome.fault),
        "roots": outcome.fault.roots,
        "is_right": outcome.is_right,
        "is_cause_right": outcome.is_cause_right,
        "accuses": outcome.accuses,
        **top,
        "confidence": outcome.answer["confidence"],
    }
