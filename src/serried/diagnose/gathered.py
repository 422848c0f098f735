"""All evidence of one job: signs of its logs, the state of its ranks, and what was not there."""

from __future__ import annotations

from dataclasses import dataclass

from serried.diagnose.evidence.sign import Sign
from serried.diagnose.job_state.state import JobState
from serried.diagnose.steps.going_on import GoingOn
from serried.diagnose.steps.of_lines import StepLines
from serried.diagnose.steps.recording import Recording
from serried.finding import Sentence
from serried.mesh import Layout


@dataclass(frozen=True)
class Evidence:
    """Holds what was read of a job, in whatever mixture it was at hand."""

    signs: tuple[Sign, ...] = ()
    """In the order of their files and lines."""
    state: JobState | None = None
    """From dumps, stacks and records; None where there are none."""
    earlier: tuple[Evidence, ...] = ()
    """What each earlier start left of a job that was started anew, in their order."""
    layout: Layout | None = None
    recordings: tuple[Recording, ...] = ()
    """Runs that were recorded, by serried or by another tool."""
    step_lines: StepLines | None = None
    """What lines of logs say of steps."""
    going_on: GoingOn | None = None
    """How far each log goes on with steps."""
    sources: tuple[str, ...] = ()
    """The files that were read."""
    num_lines: int = 0
    """Lines of logs that were read."""
    notes: tuple[Sentence, ...] = ()
    missing: tuple[Sentence, ...] = ()

    @property
    def ranks_heard(self) -> tuple[int, ...]:
        """The ranks that anything tells of: a line of theirs, a dump, a stack, a record."""
        heard = {rank for sign in self.signs if (rank := sign.speaker.global_rank) is not None}
        if self.state is not None:
            heard |= {each.rank for each in self.state.ranks if each.is_heard_of}
        return tuple(sorted(heard))
