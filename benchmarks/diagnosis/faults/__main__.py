"""How often the root of an injected fault is named; run by ``make soak`` and by hand.

    python -m benchmarks.diagnosis.faults                      3 seeds of each, 5 healthy runs
    python -m benchmarks.diagnosis.faults --seeds 20 --healthy 100
    python -m benchmarks.diagnosis.faults --only "wrong size" --first 7 --seeds 1 --keep runs

Each run is a job of real ranks under gloo, with one fault at a rank, step and layout that its seed
draws, guarded or recorded by serried. What the ranks left is then diagnosed, and nothing else.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.diagnosis.faults.fault import NONE, SLOWING, STOPPING, drawn
from benchmarks.diagnosis.faults.injected import Outcome, outcome_of


def main() -> None:
    """Prints a line for each fault, and what went wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis.faults")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each fault")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--healthy", type=int, default=5, help="runs without a fault")
    parser.add_argument("--only", action="append", choices=(*STOPPING, *SLOWING, NONE))
    parser.add_argument("--keep", type=Path, help="a folder for what the jobs leave")
    asked = parser.parse_args()
    kinds = asked.only or [*STOPPING, *SLOWING]
    with tempfile.TemporaryDirectory(prefix="serried-faults-") as folder:
        place = asked.keep or Path(folder)
        told = []
        for kind in kinds:
            told += list(_row(kind, asked.first, asked.seeds, place))
        if asked.healthy and not asked.only:
            told += list(_row(NONE, asked.first, asked.healthy, place))
    faults = [each for each in told if each.fault.kind != NONE]
    quiet = [each for each in told if each.fault.kind == NONE]
    right = sum(each.is_right for each in faults)
    if faults:
        print(f"root named: {right} of {len(faults)} ({right / len(faults):.1%})")
    if quiet:
        found = sum(not each.is_right for each in quiet)
        print(f"a rank named without a fault: {found} of {len(quiet)}")


def _row(kind: str, first: int, count: int, place: Path) -> Iterator[Outcome]:
    outcomes = []
    for seed in range(first, first + count):
        folder = place / f"{kind.replace(' ', '-')}-{seed}"
        outcomes.append(outcome_of(drawn(kind, seed), folder))
        yield outcomes[-1]
    right = sum(each.is_right for each in outcomes)
    accused = sum(each.accuses for each in outcomes)
    print(f"{kind:<24}{right:>3} of {count:<4}innocents named {accused}", flush=True)
    for each in outcomes:
        if not each.is_right or each.accuses:
            f, verdict = each.fault, each.answer["verdict"]
            print(
                f"    {f.seed}: tp {f.tp} pp {f.pp} dp {f.dp} rank {f.roots}: {verdict}", flush=True
            )


if __name__ == "__main__":
    main()
