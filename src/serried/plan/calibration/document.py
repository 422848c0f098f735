"""Constants as a TOML file: written by a fit, read wherever a plan is made.

schema = "serried.efficiency/1"
source = "which rows, and when"

[constants]
"gemm.hopper.8" = { value = 0.92, error = 0.06, bears = 0.86 }

[residuals]
dense = [0.11, 0.16, 0.20, 0.46]

[measured]
most = { gpus = 10752 }
jobs = ["4096/14336/0 h100 hopper megatron 16 dense"]
"""

from __future__ import annotations

import tomllib
from math import isfinite
from pathlib import Path

from serried import user_file
from serried.errors import InputError, listed
from serried.finding import said
from serried.limits import PLAN_ROWS_BYTES
from serried.plan.time.constants import Constants, of_document, shipped

SCHEMA = "serried.efficiency/1"


def constants_text(constants: Constants) -> str:
    """Returns the TOML of constants, in the order that they have, four digits each.

    >>> from serried.plan.time.constants import Constant
    >>> widths = {"dense": (0.1, 0.1, 0.2, 0.4)}
    >>> text = constants_text(Constants({"nic": Constant(0.9, 0.05)}, widths, "x"))
    >>> of_document(tomllib.loads(text)).value("nic")
    0.9
    """
    lines = [f'schema = "{SCHEMA}"', f'source = "{constants.source}"', "", "[constants]"]
    for name, each in constants.entries.items():
        known = f"error = {each.error:.3f}, bears = {each.bears:.2f}"
        lines.append(f'"{name}" = {{ value = {each.value:.4g}, {known} }}')
    lines += ["", "[residuals]"]
    for name, widths in constants.residuals.items():
        lines.append(f'"{name}" = [{", ".join(f"{each:.4f}" for each in widths)}]')
    seen = constants.experience
    most = ", ".join(f"{name} = {size}" for name, size in seen.most.items())
    lines += ["", "[measured]", f"most = {{ {most} }}", "jobs = ["]
    lines += [f'  "{text}",' for text in sorted(mark.text for mark in seen.marks)]
    lines.append("]")
    return "\n".join(lines) + "\n"


def read_constants(path: Path) -> Constants:
    """Returns the constants of a file; raises InputError for one that does not hold them all.

    Constants of one fit belong together: what another version fitted without some is not
    completed by those that ship now.
    """
    text = user_file.read_text(path, PLAN_ROWS_BYTES.most, said("a file of efficiency constants"))
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            "{path} is not TOML: {reason}; serried plan --calibrate writes such a file",
            path=str(path),
            reason=str(error),
        ) from None
    if document.get("schema") != SCHEMA:
        raise InputError(
            "{path} has schema '{found}'; efficiency constants have {wanted}",
            path=str(path),
            found=str(document.get("schema", ""))[:60],
            wanted=SCHEMA,
        )
    try:
        found = of_document(document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "{path} has constants that cannot be read: {reason}", path=str(path), reason=str(error)
        ) from None
    _require_all(found, str(path))
    return found


def _require_all(found: Constants, path: str) -> None:
    """Raises InputError where a constant is missing that a plan may need, or cannot be."""
    missing = [
        name
        for name in shipped().entries
        if name not in found.entries and not name.startswith("device.")
    ]
    if missing:
        raise InputError(
            "{path} lacks constants that plans are made of now ({names}), as another version of "
            "serried wrote it; 'serried plan --calibrate' makes it again from the measured steps",
            path=path,
            names=listed(missing, limit=4),
        )
    for name, each in found.entries.items():
        if not (isfinite(each.value) and each.value > 0):
            raise InputError(
                "{path}: {name} is {value}; it is a number above 0",
                path=path,
                name=name,
                value=each.value,
            )
