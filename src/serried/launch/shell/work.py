"""How much work following a script takes: counted in its own steps, and stopped at a limit.

Doubling variables, loops in loops and files that read one another grow without end in a few
lines. What is counted is what takes time: pieces of values, words, letters read once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.errors import InputError
from serried.launch.facts.words import Line
from serried.limits import SCRIPT_STEPS


@dataclass
class Work:
    """Counts what was done, and knows the line that is being followed."""

    line: Line
    done: int = 0

    def spend(self, amount: int) -> None:
        """Counts ``amount`` more; raises InputError beyond what a launch script takes."""
        self.done += amount
        if self.done > SCRIPT_STEPS.most:
            raise InputError(
                "{file} line {line}: the script takes more steps than a launch script does",
                file=self.line.file,
                line=self.line,
            )
