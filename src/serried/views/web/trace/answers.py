"""What is worked out of one trace and kept, so that each question about it costs only itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from serried.errors import InputError
from serried.pipeline import Costs
from serried.pipeline.spans import fit
from serried.trace.measure.analysis import Analysis, analyse_findings
from serried.trace.measure.find import Wish, find
from serried.trace.measure.overlay import Overlay, overlay_of
from serried.trace.measure.ranks.rank_figures import Values, rank_figures
from serried.trace.measure.statistics import Statistics, measure
from serried.trace.measure.stretch import StepWindows
from serried.trace.model.pairs import Rows, whole_computations
from serried.trace.model.trace import Trace
from serried.views.web.trace.sample import last_steps, some_steps


@dataclass(frozen=True, eq=False)
class TraceAnswers:
    """Holds a trace and, once asked for, what takes long to work out of it."""

    trace: Trace

    @cached_property
    def statistics(self) -> Statistics:
        """All that is measured of it; of a large trace, of some steps spread over it."""
        return measure(some_steps(self.trace))

    @cached_property
    def judged(self) -> tuple[Trace, Analysis]:
        """What it is judged by, of a large trace its last steps, and what is measured of those."""
        trace = last_steps(self.trace)
        return trace, analyse_findings(trace)

    @cached_property
    def costs(self) -> Costs:
        """The stages' median times, of a large trace those of some steps.

        Making it raises InputError where a stage lacks a forward or a backward.
        """
        return fit(whole_computations(some_steps(self.trace).spans))

    @cached_property
    def windows(self) -> StepWindows:
        """When the computations of each step began and ended."""
        return StepWindows.of(self.trace.spans)

    @cached_property
    def replica(self) -> NDArray[np.int64] | None:
        """Which copy of the model each rank is a part of: its place in its data group.

        None where the layout is not known.
        """
        layout = self.trace.layout
        if layout is None or "dp" not in layout.dims:
            return None
        place = np.zeros(layout.world_size, dtype=np.int64)
        for group in layout.groups(layout.dims["dp"]).lists():
            place[group] = np.arange(len(group))
        return place

    @property
    def overlay(self) -> Overlay:
        """The trace's plan; raises InputError where it has none."""
        if isinstance(self._planned, InputError):
            raise self._planned
        return self._planned

    @cached_property
    def figures(self) -> dict[str, Values]:
        """The figures of its ranks, by name; those of a plan only where there is one."""
        plan = None if isinstance(self._planned, InputError) else self._planned
        return rank_figures(self.trace, self.statistics, plan)

    @cached_property
    def _planned(self) -> Overlay | InputError:
        try:
            return overlay_of(self.trace)
        except InputError as refusal:
            return refusal

    @cached_property
    def _found(self) -> dict[Wish, Rows]:
        return {}

    def find(self, wish: Wish) -> Rows:
        """Returns the rows that meet ``wish``, by start; the last wish's are kept."""
        if wish not in self._found:
            rows = find(self.trace, wish)
            self._found.clear()
            self._found[wish] = rows
            return rows
        return self._found[wish]
