"""Follows a shell script without running it: lists, conditions, loops and functions.

A condition that the file settles is decided; one that it does not settle leaves both
outcomes open (``facts/words``). Arguments of the script, and variables of the environment,
count as not given where the script asks. Nothing is started, and no file is touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial

from serried.errors import InputError
from serried.finding import said
from serried.launch.facts.named_files import meant
from serried.launch.facts.words import Field, Line, Unknown, Value, named, text_of
from serried.launch.shell import slurm
from serried.launch.shell.assign import calculate
from serried.launch.shell.conditions import OPEN, RAN, Verdict, both, decide, either
from serried.launch.shell.expansion import Expansion
from serried.launch.shell.parser import parse
from serried.launch.shell.scope import Scope, merged
from serried.launch.shell.story import TOLD, StartedCommand, Story
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
    Word,
    assigned,
    inside,
)
from serried.limits import SCRIPT_CALLS, SCRIPT_TURNS

STEP = 30
"""Work that a command takes at least: 20,000 commands are as many as are followed."""

Perform = Callable[["ScriptWalk", Simple], "tuple[Flow, Verdict]"]
Flow = str
"""Why following stopped: "" (it did not), "exit", "return", "break" or "continue"."""


class ScriptWalk:
    """Walks through commands with one scope, and tells its story.

    ``perform`` follows a plain command; ``beside`` holds other files by name.
    """

    def __init__(self, beside: Mapping[str, str], perform: Perform) -> None:
        self.beside = beside
        self.perform = perform
        self.story = Story()
        self.scope = Scope()
        self.job: slurm.SlurmRequest | None = None
        self.submitted: slurm.SlurmRequest | None = None
        """What the options of ``sbatch`` ask for, until the script they go before is read."""
        self.calling: tuple[str, ...] = ()
        """Functions being called, outermost first."""
        self.wrappers: tuple[tuple[Field, ...], ...] = ()
        self.stopped: Line | None = None
        """Where following stopped last."""
        self.has_failed = False
        """Tells whether it stopped there with a status that says so, as ``exit 1`` does."""
        self.open_files: tuple[str, ...] = ()
        """Files beside the script that are being followed, outermost first."""
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
        self.scope.steps.spend(STEP + len(text) // 4)
        self._submit(slurm.job_of(text, name))
        if self.story.job is None:
            self.story.job = self.job
        return self._ended(self.run(parse(Text.of(text, name))))

    def made(self, value: Value, line: Line, wrapper: Sequence[Field] = ()) -> Flow:
        """Follows text that the script made, such as the argument of ``bash -c``."""
        outer_wrappers, outer_job = self.wrappers, self.job
        with self.deeper(line):
            text = Text.made(value, line)
            self.scope.steps.spend(STEP + len(text.text) // 4 + len(value))
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

    def _submit(self, job: slurm.SlurmRequest) -> None:
        self.story.notes.add(*job.notes)
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

    @contextmanager
    def following(self, path: str) -> Iterator[None]:
        """Holds open the file beside the script that a path means."""
        name = meant(path, self.beside)
        outer, self.open_files = self.open_files, (*self.open_files, *([name] if name else []))
        yield
        self.open_files = outer

    def started(self, fields: Sequence[Field], line: Line, **prefix: Value) -> None:
        """Tells that the script would start a command here."""
        # Each start is read with the words of the commands around it, once more for each.
        self.scope.steps.spend(2 * sum(map(len, self.wrappers)))
        own = self.scope.variables
        variables = {name: own[name] for name in TOLD if name in own} | prefix
        self.story.runs.append(
            StartedCommand(tuple(fields), line, variables, self.wrappers, self.job)
        )

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
            # What the verdict so far must be for this pipeline to run: yes after '&&', no after
            # '||'. The first pipeline of a list has no operator and runs in any case.
            wanted = verdict.negated() if operator == "||" else verdict
            if operator and wanted.outcome is False:
                continue
            if operator and wanted.outcome is None:
                verdict = self._perhaps(pipeline)
                continue
            flow, got = self._pipeline(pipeline)
            # In '[ -z "$DATA" ] && exit 1' the exit is reached only because DATA is taken as
            # not given, or stands empty until someone fills it in; whoever starts the script does
            # so, hence following goes on.
            if flow and operator and (wanted.is_assumed or self._is_guard(flow)):
                continue
            if flow:
                return flow, got
            verdict = (either if operator == "||" else both)(verdict, got) if operator else got
        return "", verdict

    def _is_guard(self, flow: Flow) -> bool:
        """Tells whether following stopped as a check of what the script was given stops it."""
        return flow == "exit" and self.has_failed

    def _perhaps(self, pipeline: Pipeline) -> Verdict:
        """Follows a pipeline that runs or does not, by a condition that is open."""
        line = pipeline.commands[0].line
        verdict = OPEN

        def follow_it() -> Flow:
            nonlocal verdict
            flow, verdict = self._pipeline(pipeline)
            return flow

        flow, after = self.attempt(follow_it)
        self.scope = merged([self.scope] if flow else [after, self.scope], line)
        return verdict if verdict.outcome is None else OPEN

    def _pipeline(self, pipeline: Pipeline) -> tuple[Flow, Verdict]:
        flow, verdict = "", Verdict(True)
        for command in pipeline.commands:
            flow, verdict = self.command(command)
        # Each command of a pipe runs in a shell of its own, and 'exit' there ends only that one.
        if len(pipeline.commands) > 1:
            flow, verdict = "", RAN
        return flow, verdict.negated() if pipeline.is_negated else verdict

    def command(self, command: Command) -> tuple[Flow, Verdict]:
        """Follows one command; raises InputError when there is no end to them."""
        self.scope.steps.line = command.line
        self.scope.steps.spend(STEP)
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
        return self._block(command), RAN

    # ------------------------------------------------------------------- open outcomes

    def attempt(self, follow_it: Callable[[], Flow]) -> tuple[Flow, Scope]:
        """Follows commands that run only if an open condition holds; the scope stays as it was."""
        before = self.scope
        self.scope = before.copy()
        flow = follow_it()
        after, self.scope = self.scope, before
        return flow, after

    # ------------------------------------------------------------------- blocks

    def _block(self, command: If | Loop | Case | Group) -> Flow:
        """Follows a command that holds others."""
        if isinstance(command, If):
            return self._if(command)
        if isinstance(command, Loop):
            return self._loop(command)
        if isinstance(command, Case):
            return self._case(command)
        if not command.is_subshell:
            return self.run(command.body)
        # What '( cd run; TP=4 )' sets stays inside, and so does an exit.
        before, self.scope = self.scope, self.scope.copy()
        self.run(command.body)
        self.scope = before
        return ""

    # ------------------------------------------------------------------- branches

    def _if(self, command: If) -> Flow:
        branches = [(partial(self.verdict, asks), body) for asks, body in command.branches]
        return self._branches(branches, command.otherwise, command.line)

    def _case(self, command: Case) -> Flow:
        word = self.expansion.value(command.word)
        branches = [
            (partial(self._matches, word, patterns), body) for patterns, body in command.arms
        ]
        return self._branches(branches, (), command.line)

    def _matches(self, word: Value, patterns: Sequence[Word]) -> Verdict:
        texts = [self.expansion.text(pattern) for pattern in patterns]
        # '*)' takes any word, one that is not known as well.
        if "*" in texts:
            return Verdict(True)
        text = text_of(word)
        if text is None or None in texts:
            return OPEN
        return Verdict(any(fnmatchcase(text, each) for each in texts if each is not None))

    def _branches(
        self,
        branches: Sequence[tuple[Callable[[], Verdict], Script]],
        otherwise: Script,
        line: Line,
    ) -> Flow:
        """Follows the branch that holds, or each one that may, and joins what they leave."""
        outcomes: list[tuple[Flow, Scope]] = []
        for asks, body in branches:
            verdict = asks()
            if verdict.outcome is False:
                continue
            if verdict.outcome and not outcomes:
                # No branch before this one may be taken instead. One that holds by assumption
                # ("if nothing is given: print the usage, exit") is passed over where it ends the
                # script, for the script was written to run. So is one that ends in 'exit 1'.
                flow, after = self.attempt(partial(self.run, body))
                if flow and (verdict.is_assumed or self._is_guard(flow)):
                    continue
                self.scope = after
                return flow
            outcomes.append(self.attempt(partial(self.run, body)))
            if verdict.outcome:
                break
        else:
            # No condition is known to hold, so 'else' is one of the outcomes, or the only one.
            if not outcomes:
                return self.run(otherwise)
            outcomes.append(self.attempt(partial(self.run, otherwise)))
        staying = [scope for flow, scope in outcomes if not flow]
        if not staying:
            return outcomes[0][0]
        self.scope = merged(staying, line)
        return ""

    # ------------------------------------------------------------------- loops

    def _loop(self, command: Loop) -> Flow:
        if command.variable:
            # Each word is followed in turn; no words at all mean "$@" or a variable that only
            # whoever starts the script gives, so what the loop would set is not given either.
            fields = self.expansion.fields(command.words or ())
            if not fields:
                self._leave_to_arguments(command)
            if len(fields) <= SCRIPT_TURNS.most and all(_is_plain(each) for each in fields):
                return self._turns(command, fields)
            because = said("the loop on line {line} sets it", line=command.line)
            return self._perhaps_once(command, (Unknown(because, command.line),))
        if command.kind == "for":
            return self._perhaps_once(command, None)
        verdict = self.verdict(command.condition)
        if command.kind == "until":
            verdict = verdict.negated()
        if verdict.outcome is None:
            return self._perhaps_once(command, None)
        # A condition that holds is not asked again: 'while true' ends by 'break' or not at all.
        if verdict.outcome:
            flow = self.run(command.body)
            return flow if flow in ("exit", "return") else ""
        if verdict.is_assumed:
            self._leave_to_arguments(command)
        return ""

    def _leave_to_arguments(self, command: Loop) -> None:
        """Makes what is empty, and what a loop over the script's arguments sets, not given."""
        because = said("the loop on line {line} sets it", line=command.line)
        names = assigned(command.body)
        self.scope.steps.spend(sum(1 for _ in inside(command.body)))
        for name in names:
            value = self.scope.variables.get(name)
            if isinstance(value, tuple) and text_of(value) == "":
                self.scope.variables[name] = (Unknown(because, command.line, name),)

    def _turns(self, command: Loop, fields: Sequence[Field]) -> Flow:
        for each in fields:
            self.scope.variables[command.variable] = named(each.pieces, command.variable)
            flow = self.run(command.body)
            if flow in ("exit", "return"):
                return flow
            if flow == "break":
                break
        return ""

    def _perhaps_once(self, command: Loop, value: Value | None) -> Flow:
        def once() -> Flow:
            if value is not None:
                self.scope.variables[command.variable] = value
            return self.run(command.body)

        # However often the body runs, what it sets is open after it. Where it would end the script
        # or function, it is taken not to run.
        flow, after = self.attempt(once)
        self.scope = merged(
            [self.scope] if flow in ("exit", "return") else [after, self.scope], command.line
        )
        return ""


def _is_plain(each: Field) -> bool:
    """Tells whether a word of ``for`` is known, and is no pattern or brace to be spread out."""
    return each.text is not None and not each.maybe and not re.search(r"[{*?]", each.text)
