"""Follows a shell script without running it: lists, conditions, loops and functions.

A condition that the file settles is decided; one that it does not settle leaves both
outcomes open (``shell_values``). Arguments of the script, and variables of the environment,
count as not given where the script asks. Nothing is started, and no file is touched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from serried.errors import InputError
from serried.finding import said
from serried.launch.facts.words import Field, Line, Value
from serried.launch.shell import slurm
from serried.launch.shell.assign import calculate
from serried.launch.shell.conditions import OPEN, RAN, Verdict, both, decide, either
from serried.launch.shell.expansion import Expansion
from serried.launch.shell.merge import merge
from serried.launch.shell.parser import parse
from serried.launch.shell.scope import Scope
from serried.launch.shell.story import TOLD, Run, Story
from serried.launch.shell.syntax import (
    AndOr,
    ArithmeticCommand,
    Case,
    Command,
    Condition,
    Function,
    Group,
    If,
    Loop,
    Pipeline,
    Script,
    Simple,
    Text,
)
from serried.limits import SCRIPT_CALLS

STEP = 30
"""Work that a command takes at least: 20,000 commands are as many as are followed."""

Perform = Callable[["Walk", Simple], "tuple[Flow, Verdict]"]
Flow = str
"""Why following stopped: "" (it did not), "exit", "return", "break" or "continue"."""


class Walk(ABC):
    """Walks through commands with one scope, and tells its story.

    ``perform`` follows a plain command; ``beside`` holds other files by name.
    """

    def __init__(self, beside: Mapping[str, str], perform: Perform) -> None:
        self.beside = beside
        self.perform = perform
        self.story = Story()
        self.scope = Scope()
        self.job: slurm.Job | None = None
        self.submitted: slurm.Job | None = None
        """What the options of ``sbatch`` ask for, until the script they go before is read."""
        self.calling: tuple[str, ...] = ()
        """Functions being called, outermost first."""
        self.wrappers: tuple[tuple[Field, ...], ...] = ()
        self.stopped: Line | None = None
        """Where following stopped last."""
        self.inputs: list[Value] = []
        """What heredocs hand to the command being followed."""
        self._depth = 0

    @property
    def expansion(self) -> Expansion:
        """What expands words in the scope as it is now."""
        return Expansion(self.scope)

    # ------------------------------------------------------------------- texts

    def file(self, text: str, name: str) -> Flow:
        """Follows the text of a file, its #SBATCH lines first."""
        self.scope.work.spend(STEP + len(text) // 4)
        self._submit(slurm.job_of(text, name))
        if self.story.job is None:
            self.story.job = self.job
        return self._ended(self.run(parse(Text.of(text, name))))

    def made(self, value: Value, line: Line, wrapper: Sequence[Field] = ()) -> Flow:
        """Follows text that the script made, such as the argument of ``bash -c``."""
        outer_wrappers, outer_job = self.wrappers, self.job
        with self.deeper(line):
            text = Text.made(value, line)
            self.scope.work.spend(STEP + len(text.text) // 4 + len(value))
            if wrapper:
                self.wrappers = (*self.wrappers, tuple(wrapper))
            self._submit(slurm.job_of(text.text, line.file, text.line))
            flow = self._ended(self.run(parse(text)))
        self.wrappers, self.job = outer_wrappers, outer_job
        return flow

    def _ended(self, flow: Flow) -> Flow:
        """Notes where ``exit`` ended a text."""
        if flow == "exit":
            self.story.end = self.stopped
        return flow

    def _submit(self, job: slurm.Job) -> None:
        self.story.notes += job.notes
        if self.submitted is not None:
            job, self.submitted = self.submitted.over(job), None
        if job.is_given:
            self.job = job
            self.scope.is_slurm = True
            self.scope.variables |= slurm.variables(job)

    @contextmanager
    def deeper(self, line: Line) -> Iterator[None]:
        """Counts a call within a call; raises InputError when there is no end to them."""
        self._depth += 1
        if self._depth > SCRIPT_CALLS.most:
            raise InputError(
                "{file} line {line}: the script calls itself without end", file=line.file, line=line
            )
        yield
        self._depth -= 1

    def started(self, fields: Sequence[Field], line: Line, **prefix: Value) -> None:
        """Tells that the script would start a command here."""
        own = self.scope.variables
        variables = {name: own[name] for name in TOLD if name in own} | prefix
        self.story.runs.append(Run(tuple(fields), line, variables, self.wrappers, self.job))

    # ------------------------------------------------------------------- lists

    def run(self, script: Script) -> Flow:
        """Follows commands one after the other; returns why it stopped early."""
        for item in script:
            flow, _ = self._and_or(item)
            if flow:
                return flow
        return ""

    def verdict(self, script: Script) -> Verdict:
        """Follows the commands after ``if`` or ``while`` and returns how the last one ends."""
        verdict = Verdict(True)
        for item in script:
            flow, verdict = self._and_or(item)
            if flow:
                return OPEN
        return verdict.asked

    def _and_or(self, item: AndOr) -> tuple[Flow, Verdict]:
        verdict = Verdict(True)
        for operator, pipeline in item.parts:
            wanted = verdict.negated() if operator == "||" else verdict
            if operator and wanted.outcome is False:
                continue
            if operator and wanted.outcome is None:
                verdict = self._perhaps(pipeline)
                continue
            flow, got = self._pipeline(pipeline)
            if flow and operator and wanted.is_assumed:
                continue
            if flow:
                return flow, got
            verdict = (either if operator == "||" else both)(verdict, got) if operator else got
        return "", verdict

    def _perhaps(self, pipeline: Pipeline) -> Verdict:
        """Follows a pipeline that runs or does not, by a condition that is open."""
        line = pipeline.commands[0].line
        verdict = OPEN

        def follow_it() -> Flow:
            nonlocal verdict
            flow, verdict = self._pipeline(pipeline)
            return flow

        flow, after = self.attempt(follow_it)
        self.join([self.scope] if flow else [after, self.scope], line)
        return verdict if verdict.outcome is None else OPEN

    def _pipeline(self, pipeline: Pipeline) -> tuple[Flow, Verdict]:
        flow, verdict = "", Verdict(True)
        for command in pipeline.commands:
            flow, verdict = self.command(command)
        if len(pipeline.commands) > 1:
            flow, verdict = "", RAN
        return flow, verdict.negated() if pipeline.is_negated else verdict

    def command(self, command: Command) -> tuple[Flow, Verdict]:
        """Follows one command; raises InputError when there is no end to them."""
        self.scope.work.line = command.line
        self.scope.work.spend(STEP)
        if isinstance(command, Simple):
            return self.perform(self, command)
        if isinstance(command, Condition):
            return "", decide(self.expansion.fields(command.words), is_double=True)
        if isinstance(command, ArithmeticCommand):
            text = self.expansion.text(command.expression)
            return "", OPEN if text is None else calculate(self.scope, text, command.line)
        if isinstance(command, Function):
            self.scope.functions[command.name] = command.body
            return "", Verdict(True)
        return self.block(command), RAN

    @abstractmethod
    def block(self, command: If | Loop | Case | Group) -> Flow:
        """Follows a command that holds others."""

    # ------------------------------------------------------------------- open outcomes

    def attempt(self, follow_it: Callable[[], Flow]) -> tuple[Flow, Scope]:
        """Follows commands that run only if an open condition holds; the scope stays as it was."""
        before = self.scope
        self.scope = before.copy()
        flow = follow_it()
        after, self.scope = self.scope, before
        return flow, after

    def join(self, scopes: Sequence[Scope], line: Line) -> None:
        """Sets what is set after open outcomes that cannot be told apart."""
        because = said("the condition on line {line} is open", line=line)
        merged = scopes[0].copy()
        names = {name for scope in scopes for name in scope.variables}
        merged.work.spend(len(names) // 2)
        for name in names:
            outcome = merge([scope.variables.get(name) for scope in scopes], because, line)
            if outcome is None:
                merged.variables.pop(name, None)
            else:
                merged.variables[name] = outcome
        for scope in scopes:
            merged.functions = {**scope.functions, **merged.functions}
        self.scope = merged
