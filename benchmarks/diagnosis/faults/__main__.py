"""How often the root of an injected fault is named; run by ``make soak`` and by hand.

    python -m benchmarks.diagnosis.faults                      3 seeds of each, 5 healthy runs
    python -m benchmarks.diagnosis.faults --seeds 20 --healthy 100 --parallel 16 --cores 0-15
    python -m benchmarks.diagnosis.faults --only "wrong size" --first 7 --seeds 1 --keep runs
    python -m benchmarks.diagnosis.faults --again wrong        diagnoses kept runs by today's rules

Each run is a job of real ranks under gloo, with one fault at a rank, step and layout that its seed
draws, guarded or recorded by serried. What the ranks left is then diagnosed, and nothing else.
Ctrl-C and SIGTERM end it with the score so far.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from benchmarks.diagnosis.faults.campaign import Campaign, Ran, stopped_softly
from benchmarks.diagnosis.faults.fault import HEALTHY, SLOWING, STOPPING, Fault, drawn
from benchmarks.diagnosis.faults.injected import Outcome, answer_of
from benchmarks.diagnosis.faults.tally import Tally, judged, write_tally

EVIDENCE, JUDGED = "evidence", "judged.json"


def main() -> None:
    """Prints a line for each run as it ends, then one for each fault, and what went wrong."""
    asked = _asked()
    if asked.again:
        print(Tally([_again(folder) for folder in _kept(asked.again)]).text())
        return
    tally = Tally([], [])
    with tempfile.TemporaryDirectory(prefix="serried-faults-") as folder:
        campaign = Campaign(
            _faults(asked), asked.keep or Path(folder), asked.parallel, asked.cores, asked.for_s
        )
        with closing(campaign.outcomes()) as runs, suppress(KeyboardInterrupt), stopped_softly():
            for ran in runs:
                tally = _with(tally, ran)
                _settle(ran, tally, asked)
                if asked.score:
                    write_tally(tally, asked.score)
    print(tally.text())


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis.faults")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each fault")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--healthy", type=int, default=5, help="runs without a fault, half recorded"
    )
    parser.add_argument("--only", action="append", choices=(*STOPPING, *SLOWING, *HEALTHY))
    parser.add_argument("--parallel", type=int, default=1, help="runs at once")
    parser.add_argument("--cores", type=_cores, default=(), help="such as 0-7 or 0,2,4")
    parser.add_argument("--for-s", type=float, default=float("inf"), help="begin none after this")
    parser.add_argument("--score", type=Path, help="a file for the score, after each run")
    parser.add_argument("--keep", type=Path, help="a folder for what all jobs leave")
    parser.add_argument("--keep-wrong", type=Path, help="a folder for what was judged wrong")
    parser.add_argument("--again", type=Path, help="a folder of --keep-wrong to diagnose anew")
    return parser.parse_args()


def _cores(text: str) -> tuple[int, ...]:
    cores: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        cores += range(int(first), int(last or first) + 1)
    return tuple(cores)


def _faults(asked: argparse.Namespace) -> list[Fault]:
    """Returns the runs, one of each kind after the other, so that a stop leaves all alike."""
    kinds = dict.fromkeys(asked.only or (*STOPPING, *SLOWING), asked.seeds)
    if asked.healthy and not asked.only:
        kinds |= {kind: -(-asked.healthy // len(HEALTHY)) for kind in HEALTHY}
    places = [
        ((index + 0.5) / count, kind, asked.first + index)
        for kind, count in kinds.items()
        for index in range(count)
    ]
    return [drawn(kind, seed) for _, kind, seed in sorted(places, key=lambda each: each[0])]


def _with(tally: Tally, ran: Ran) -> Tally:
    fault, _, answer = ran
    if isinstance(answer, str):
        return Tally(tally.outcomes, [*tally.crashed, (fault.kind, fault.seed, answer)])
    return Tally([*tally.outcomes, Outcome(fault, answer)], tally.crashed)


def _settle(ran: Ran, tally: Tally, asked: argparse.Namespace) -> None:
    """Prints what was said of a run, and keeps what it left or lets it go."""
    fault, folder, answer = ran
    name = f"{fault.kind} {fault.seed}"
    if isinstance(answer, str):
        print(f"not run  {name}: {answer}", flush=True)
    else:
        outcome = tally.outcomes[-1]
        is_good = outcome.is_right and not outcome.accuses
        print(f"{'right' if is_good else 'WRONG':<8} {name}: {outcome.said}", flush=True)
        if asked.keep_wrong and not is_good:
            kept = asked.keep_wrong / folder.name
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            shutil.copytree(folder, kept / EVIDENCE)
            (kept / JUDGED).write_text(json.dumps(judged(outcome), indent=1), "utf-8")
    if not asked.keep:
        shutil.rmtree(folder, ignore_errors=True)


def _kept(place: Path) -> Iterator[Path]:
    return (file.parent for file in sorted(place.rglob(JUDGED)))


def _again(folder: Path) -> Outcome:
    fault = Fault(**json.loads((folder / JUDGED).read_text("utf-8"))["fault"])
    return Outcome(fault, answer_of(folder / EVIDENCE))


if __name__ == "__main__":
    main()
