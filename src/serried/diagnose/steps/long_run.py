"""The steps of a long recording as a stream: read block by block, kept as bounded rows.

    spans on disk   |block|block|block| … |block|        some hundred thousand steps
                       │     │     │         │            one block in memory at a time
    rows            ▪▪▪▪  ▪▪▪▪  ▪▪▪▪   …  ▪▪▪▪            at most 2,048, each the mean of its steps

So the memory depends on the ranks, and hardly on how long the job ran: a step more takes the 24
bytes of its counts. What lasts a step or two is lost in a mean and is looked for in the last block
alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from serried.action import COMPUTE, Spans
from serried.diagnose.job_state.recorded import Ended
from serried.diagnose.steps.folding import MOST_ROWS
from serried.diagnose.steps.of_trace import all_steps_of_trace, first_usual
from serried.diagnose.steps.table import Alike, JobSteps, folded_rows, joined_rows
from serried.trace.merge.files import rank_files
from serried.trace.merge.in_memory import side_by_side
from serried.trace.merge.part import no_spans
from serried.trace.merge.run import SurveyedRun, gathered
from serried.trace.model.trace import Trace

LONG_BYTES = 128 << 20
"""Size of a run's records from which on they are not read whole; three million spans."""
BLOCK_SPANS = 1_000_000
"""Spans that are read at a time."""
LEAST_STEPS = 8


@dataclass(frozen=True, eq=False)
class LongRun:
    """Holds a recording of serried that was surveyed, and is read by blocks of steps."""

    run: SurveyedRun

    @classmethod
    def of(cls, folders: Sequence[Path]) -> LongRun:
        """Surveys the recording in ``folders``; raises InputError as ``merge.run.gathered``."""
        return cls(gathered(list(folders), side_by_side))

    @property
    def steps(self) -> NDArray[np.int64]:
        """The steps that any rank recorded, ascending."""
        steps = self.run.counts.step
        return steps[steps >= 0]

    @property
    def steps_of_block(self) -> int:
        """How many steps a block holds."""
        per_step = max(1.0, self.run.num_spans / max(1, len(self.steps)))
        return max(LEAST_STEPS, int(BLOCK_SPANS / per_step))

    def trace(self, first: int, last: int) -> Trace:
        """Returns the spans of the steps from ``first`` to ``last``, both included."""
        spans = [block for part in self.run.parts for block in part.blocks((first, last))]
        return replace(self.run.trace, spans=Spans.joined([no_spans(), *spans]))

    def latest(self) -> Trace:
        """Returns the last block."""
        return self.trace(self._latest_begins, int(self.steps[-1]))

    def ending(self) -> tuple[Trace, Ended]:
        """Returns the last block with what moved, and what each rank ended from the first on.

        Who moved what is told by place in a file, so that all of it is gone through once.
        """
        kept, ended = [no_spans()], dict[int, NDArray[np.int64]]()
        num_groups = len(self.run.trace.groups)
        for part in self.run.parts:
            for block in part.blocks():
                counts = np.bincount(block.group[block.group >= 0], minlength=num_groups)
                ended[part.rank] = ended.get(part.rank, 0) + counts
                kept.append(block.where(block.step >= self._latest_begins))
        return replace(self.run.trace, spans=Spans.joined(kept)), ended

    @property
    def _latest_begins(self) -> int:
        steps = self.steps
        return int(steps[-min(len(steps), self.steps_of_block)])

    def table(self) -> JobSteps | None:
        """Returns all steps as rows of equal width; None where they are too few to compare."""
        width = 1
        while len(self.steps) > MOST_ROWS * width:
            width *= 2
        blocks = [folded_rows(each, width) for each in self._blocks(width)]
        if not blocks:
            return None
        # Ranks that come or go, as at an elastic restart, make a table of its own; the longest
        # tells most.
        lengths: Counter[tuple[int, ...]] = Counter()
        for each in blocks:
            lengths[tuple(each.ranks.tolist())] += len(each)
        ranks = lengths.most_common(1)[0][0]
        alike = [each for each in blocks if tuple(each.ranks.tolist()) == ranks]
        whole = replace(joined_rows(alike), alike=_usual([each.alike for each in alike]))
        return whole.rows(first_usual(whole.spent), len(whole))

    def _blocks(self, width: int) -> Iterator[JobSteps]:
        """Yields the complete steps of each block, which holds whole rows of ``width`` steps."""
        steps = self.steps
        size = -(-self.steps_of_block // width) * width
        for at in range(0, len(steps), size):
            # A step begins where a rank was done with the one before it.
            first = int(steps[max(at - 1, 0)])
            trace = self.trace(first, int(steps[min(at + size, len(steps)) - 1]))
            complete = _complete(trace)
            found = all_steps_of_trace(trace, complete) if len(complete) > 1 else None
            if found is not None:
                yield found.rows(1, len(found)) if at and complete[0] == first else found


def is_long(folders: Sequence[Path]) -> bool:
    """Tells whether the records in some folders are too long to be read whole."""
    return sum(file.num_bytes for folder in folders for file in rank_files(folder)) >= LONG_BYTES


def _complete(trace: Trace) -> NDArray[np.int32]:
    """Returns the steps in which every rank of the block computed."""
    spans = trace.spans.where(np.isin(trace.spans.kind, sorted(COMPUTE)))
    ranks = np.unique(spans.rank)
    pairs = np.unique(spans.step.astype(np.int64) * 2**32 + spans.rank)
    steps, counts = np.unique(pairs >> 32, return_counts=True)
    return np.asarray(steps[(counts == len(ranks)) & (steps >= 0)], dtype=np.int32)


def _usual(found: Sequence[tuple[Alike, ...]]) -> tuple[Alike, ...]:
    """Returns which ranks do equal work as most blocks have it."""
    return Counter(found).most_common(1)[0][0]
