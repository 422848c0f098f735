"""A recorded step under ZeRO beside the planned one: the verdict, a row per collective, JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from serried.errors import InputError, listed
from serried.finding import Sentence, said
from serried.plan.recorded_step import NAMES, PlannedBeside, RankStep
from serried.plan.sharded_step import Moved
from serried.plan.step_plan import StepPlan
from serried.trace.model.traffic import CollectiveMove
from serried.views.sentences import say, tell
from serried.views.table import Table


@dataclass(frozen=True)
class RecordedStep:
    """Holds what is said of a run's steps beside their plan, and the one that is shown."""

    plan: StepPlan
    steps: tuple[RankStep, ...]
    shown: RankStep

    @classmethod
    def of(cls, plan: StepPlan, steps: Sequence[RankStep], step: int | None = None) -> RecordedStep:
        """Returns an answer that shows ``step``, else the first that differs, else the first.

        Raises InputError where there is no such step.
        """
        wanted = [each for each in steps if step is None or each.step == step]
        if not steps:
            raise InputError("no rank finished a step in what was recorded")
        if not wanted:
            raise InputError(
                "step {step} was not recorded to its end; these were: {steps}",
                step=step,
                steps=listed(_numbers(steps), limit=16),
            )
        first = next((each for each in wanted if each.difference), wanted[0])
        return cls(plan, tuple(wanted), first)

    def verdict(self) -> Sentence:
        """Returns whether all steps are as planned, or where one differs first."""
        shown, zero = self.shown, self.plan.zero
        if shown.difference:
            return said(
                "step {step} of rank {rank} is not what was planned under ZeRO {zero}: {how}",
                step=shown.step,
                rank=shown.rank,
                zero=zero,
                how=shown.difference,
            )
        ranks = {each.rank for each in self.steps}
        steps = listed(_numbers(self.steps), limit=16)
        if len(ranks) == 1:
            return said(
                "rank {rank} gathered and reduced what was planned under ZeRO {zero}, in order "
                "and bytes; steps: {steps}",
                rank=shown.rank,
                zero=zero,
                steps=steps,
            )
        return said(
            "{ranks:,} ranks gathered and reduced what was planned under ZeRO {zero}, in order and "
            "bytes; steps: {steps}",
            ranks=len(ranks),
            zero=zero,
            steps=steps,
        )

    def parts(self, lang: str) -> list[str | Table]:
        """Returns the verdict, how many steps differ, and the collectives of the shown step."""
        rows = self.shown.rows
        wrong = sum(each.difference is not None for each in self.steps)
        counts = [say(self.verdict(), lang)]
        if wrong:
            counts.append(
                tell(
                    "steps that differ: {wrong:,} of {all:,}, each rank's counted",
                    lang,
                    wrong=wrong,
                    all=len(self.steps),
                )
            )
        counts.append(
            tell(
                "step {step} of rank {rank}: collectives planned {planned:,}, recorded "
                "{recorded:,}",
                lang,
                step=self.shown.step,
                rank=self.shown.rank,
                planned=sum(row.planned is not None for row in rows),
                recorded=sum(row.recorded is not None for row in rows),
            )
        )
        return [*counts, "", self._table(lang)]

    def _table(self, lang: str) -> Table:
        table = Table()
        table.add_column("#", justify="right")
        table.add_column(tell("planned", lang), no_wrap=True)
        table.add_column(tell("over", lang))
        table.add_column(tell("bytes", lang), justify="right")
        table.add_column(tell("recorded", lang), no_wrap=True)
        table.add_column(tell("among ranks", lang))
        table.add_column(tell("bytes", lang), justify="right")
        table.add_column("")
        for place, row in enumerate(self.shown.rows):
            planned, recorded = row.planned, row.recorded
            table.add_row(
                str(place),
                *([planned.collective, planned.over[0]] if planned else ["-", ""]),
                f"{planned.size_bytes:,} B" if planned else "",
                *([name_of(recorded), listed(recorded.ranks, limit=8)] if recorded else ["-", ""]),
                f"{recorded.size_bytes:,} B" if recorded else "",
                tell("differs", lang) if row.difference else "",
            )
        return table

    def document(self, lang: str) -> dict[str, Any]:
        """Returns the ``serried.recorded-step/1`` document."""
        shown = self.shown
        members = self.plan.members_of(shown.rank)
        return {
            "schema": "serried.recorded-step/1",
            "verdict": say(self.verdict(), lang),
            "agrees": shown.difference is None,
            "zero": self.plan.zero,
            "steps": [
                {
                    "rank": each.rank,
                    "step": each.step,
                    "agrees": each.difference is None,
                    "difference": _told(each.difference, lang),
                }
                for each in self.steps
            ],
            "shown": {
                "rank": shown.rank,
                "step": shown.step,
                "collectives": [
                    {
                        "planned": _planned(row, members),
                        "recorded": _recorded(row.recorded),
                        "difference": _told(row.difference, lang),
                    }
                    for row in shown.rows
                ],
            },
        }


def name_of(move: CollectiveMove) -> str:
    """Returns what the recorded collective is called, as the plan calls it."""
    return NAMES.get(move.kind, move.kind.name.lower())


def _numbers(steps: Sequence[RankStep]) -> list[int]:
    return sorted({each.step for each in steps})


def _told(sentence: Sentence | None, lang: str) -> str | None:
    return say(sentence, lang) if sentence else None


def _planned(row: PlannedBeside, members: dict[str, tuple[int, ...]]) -> dict[str, Any] | None:
    moved: Moved | None = row.planned
    if moved is None:
        return None
    return {
        "collective": moved.collective,
        "over": moved.over[0],
        "ranks": list(members[moved.over[0]]),
        "size": moved.size_bytes,
    }


def _recorded(move: CollectiveMove | None) -> dict[str, Any] | None:
    if move is None:
        return None
    return {"collective": name_of(move), "ranks": list(move.ranks), "size": move.size_bytes}
