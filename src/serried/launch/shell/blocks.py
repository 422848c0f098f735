"""Follows ``if``, ``case``, loops and groups: the outcome that is settled, or each that may be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial

from serried.finding import said
from serried.launch.facts.words import Field, Line, Unknown, Value, named, text_of
from serried.launch.shell.conditions import OPEN, Verdict
from serried.launch.shell.scope import Scope
from serried.launch.shell.syntax import Case, Group, If, Loop, Script, Word, assigned, inside
from serried.launch.shell.walk import Flow, Walk
from serried.limits import SCRIPT_TURNS


class Blocks(Walk):
    """Walks through commands that hold others."""

    def block(self, command: If | Loop | Case | Group) -> Flow:
        """Follows a command that holds others."""
        if isinstance(command, If):
            return self._if(command)
        if isinstance(command, Loop):
            return self._loop(command)
        if isinstance(command, Case):
            return self._case(command)
        if not command.is_subshell:
            return self.run(command.body)
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
                if not verdict.is_assumed:
                    return self.run(body)
                flow, after = self._try_assumed(body)
                if flow:
                    continue
                self.scope = after
                return ""
            outcomes.append(self.attempt(partial(self.run, body)))
            if verdict.outcome:
                break
        else:
            if not outcomes:
                return self.run(otherwise)
            outcomes.append(self.attempt(partial(self.run, otherwise)))
        staying = [scope for flow, scope in outcomes if not flow]
        if not staying:
            return outcomes[0][0]
        self.join(staying, line)
        return ""

    def _try_assumed(self, body: Script) -> tuple[Flow, Scope]:
        """Follows a branch that is taken when something is not given; it may end the script."""
        before = self.scope
        self.scope = before.copy()
        flow = self.run(body)
        after, self.scope = self.scope, before
        return flow, after

    # ------------------------------------------------------------------- loops

    def _loop(self, command: Loop) -> Flow:
        if command.variable:
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
        self.scope.work.spend(sum(1 for _ in inside(command.body)))
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

        flow, after = self.attempt(once)
        self.join([self.scope] if flow in ("exit", "return") else [after, self.scope], command.line)
        return ""


def _is_plain(each: Field) -> bool:
    """Tells whether a word of ``for`` is known, and is no pattern or brace to be spread out."""
    return each.text is not None and not each.maybe and not re.search(r"[{*?]", each.text)
