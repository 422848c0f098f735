"""A whole number as an option takes it."""

from __future__ import annotations

import click

from serried.errors import InputError
from serried.number import MOST, shortened

MOST_DIGITS = len(str(MOST))


class Count(click.ParamType[int]):
    """Reads a whole number; says in one sentence when it is none."""

    name = "number"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Returns ``value`` as an int; raises InputError when it is not a whole number."""
        if isinstance(value, int):
            return value
        option = param.opts[0] if param else "the option"
        # The length comes first: int() refuses more than 4,300 digits as if they were no number.
        digits = str(value).strip().lstrip("+-")
        if digits.isdecimal() and (len(digits) > MOST_DIGITS or int(digits) > MOST):
            raise InputError(
                "{option} {value} is too large; it is at most {most}",
                option=option,
                value=shortened(str(value)),
                most=MOST,
            )
        try:
            return int(str(value))
        except ValueError as error:
            raise InputError(
                "{option} takes a whole number, such as 16; it got '{value}'",
                option=option,
                value=shortened(str(value)),
            ) from error


COUNT = Count()
