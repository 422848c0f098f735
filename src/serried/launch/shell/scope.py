"""What a shell script has set so far: variables, arguments and functions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from serried.launch.facts.words import Array, Line, Value
from serried.launch.shell.syntax import Command
from serried.launch.shell.work import Work


@dataclass
class Scope:
    """Holds what the script has set: variables, arguments and functions."""

    variables: dict[str, Value | Array] = field(default_factory=dict)
    arguments: list[Value] | None = None
    """Arguments of the function that runs; None at the top, where they are not known."""
    functions: dict[str, Command] = field(default_factory=dict)
    is_slurm: bool = False
    """Tells whether Slurm runs the script, so that its variables are set."""
    work: Work = field(default_factory=lambda: Work(Line("", 0)))
    """What following the script took so far; all copies share it."""

    def copy(self) -> Scope:
        """Returns a scope that changes on its own."""
        self.work.spend(1 + (len(self.variables) + len(self.functions)) // 8)
        return replace(
            self,
            variables=dict(self.variables),
            arguments=None if self.arguments is None else list(self.arguments),
            functions=dict(self.functions),
        )
