"""Which framework the options of a program tell, and what they say under it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from serried.launch.facts.config import Reading
from serried.launch.facts.flags import Flag, loose, take
from serried.launch.facts.found import Facts
from serried.launch.facts.keys import ConfigValue, Keys
from serried.launch.facts.whole_number import NUMBER
from serried.launch.facts.words import Field, Unknown
from serried.launch.formats import colossalai, deepspeed, huggingface, megatron, paddle, torchtitan
from serried.launch.formats.nvidia import bridge
from serried.launch.formats.reinforcement import openrlhf
from serried.launch.starters.launchers import Launch

SWIFT = re.compile(r"(?:.*[./])?swift[./]cli[./](?:sft|rlhf|pt)(?:\.py)?")
"""The programs that ``swift sft`` and its like start."""

HYDRA = re.compile(r"\+{0,2}([a-zA-Z_][\w.]*)=(.*)", re.S)
"""``model.tensor_model_parallel_size=4``, as NeMo, verl and MaxText take settings."""


def reading(launch: Launch, flags: Sequence[Flag], file: str) -> Reading | None:
    """Returns what the options say, under the framework that alone has them, or None."""
    names = {flag.name for flag in flags}
    # Paddle goes before Megatron-LM, whose names for sizes its newer trainers share.
    # Megatron-DeepSpeed has Megatron-LM's options as well, so marks of its own, or the launcher,
    # tell it.
    if launch.launcher == "paddle" or names & paddle.MARKS:
        return _paddle(flags, names, file)
    program = launch.program.text if launch.program else None
    # Sizes that change a recipe are no whole of their own.
    if bridge.PROGRAM.fullmatch(program or ""):
        return None
    if names & set(torchtitan.FLAGS) or torchtitan.PROGRAM.fullmatch(program or ""):
        return _torchtitan(flags, file)
    if names & megatron.MARKS or megatron.is_program(program or "", names):
        has_marks = bool(names & deepspeed.MARKS) or any(map(_holds_marks, launch.arguments))
        is_deepspeed = has_marks or launch.launcher == "deepspeed"
        read_flags = deepspeed.read_flags if is_deepspeed else megatron.read_flags
        found = read_flags(flags, file)
        if not names & megatron.MARKS:
            _lack_sizes(found.facts, launch)
        return found
    if openrlhf.PROGRAM.fullmatch(program or ""):
        return openrlhf.read_flags(flags, file, has_ray=launch.launcher in ("python", "srun"))
    if launch.launcher == "megatron-swift":
        return megatron.read_flags(flags, file)
    if launch.launcher == "colossalai" or _is_colossalai(flags):
        return colossalai.read(flags, file)
    if launch.launcher == "swift" or huggingface.has_marks(flags):
        has_deepspeed = launch.launcher == "deepspeed"
        is_swift = launch.launcher == "swift" or bool(SWIFT.fullmatch(program or ""))
        return huggingface.read_flags(
            flags, file, launch.format, has_deepspeed=has_deepspeed, is_swift=is_swift
        )
    return None


def _lack_sizes(facts: Facts, launch: Launch) -> None:
    """Leaves sizes open that may stand in words of a command which are not known.

    A command that gives some sizes is taken at its word; one that gives none may give them there.
    """
    words = [*loose(launch.arguments), *(each for each in launch.arguments if _holds_options(each))]
    for word in words:
        for size in ("tp", "pp"):
            if not facts.says(size):
                facts.lack(size, word.because)


# '$MODEL_ARGS', which behind a switch reads as the value of it.
OPTIONS_NAME = re.compile(r"(?i)\w*(?:args|arguments|opts?|options|flags|params)")

# '$ds_args' and '$DEEPSPEED_ARGS', which hold '--deepspeed --zero-stage 1' and their like.
DEEPSPEED_NAME = re.compile(r"(?i)(?:ds|deepspeed)_(?:args|arguments|opts?|options|flags)")


def _holds_marks(word: Field) -> bool:
    """Tells whether a word that is not known is called as those that hold DeepSpeed's options."""
    first = word.pieces[0] if word.pieces else None
    return isinstance(first, Unknown) and bool(DEEPSPEED_NAME.fullmatch(first.name))


def _holds_options(word: Field) -> bool:
    """Tells whether a word that is not known is a variable called as those that hold options."""
    first = word.pieces[0] if word.pieces else None
    return isinstance(first, Unknown) and bool(OPTIONS_NAME.fullmatch(first.name))


def is_megatron(flags: Sequence[Flag]) -> bool:
    """Tells whether an option is there that only Megatron-LM and its kin have."""
    return any(flag.name in megatron.MARKS for flag in flags)


def _torchtitan(flags: Sequence[Flag], file: str) -> Reading:
    facts = Facts(file)
    take(facts, flags, torchtitan.FLAGS)
    torchtitan.tidy(facts)
    return Reading("torchtitan command line", facts, "torchtitan")


def _paddle(flags: Sequence[Flag], names: set[str], file: str) -> Reading | None:
    if not names & (paddle.MARKS | set(paddle.NEWER)):
        return None
    facts = Facts(file)
    take(facts, flags, paddle.MEANINGS)
    is_newer = bool(names & set(paddle.NEWER))
    return paddle.settle(facts, "Paddle command line", is_newer=is_newer)


def _is_colossalai(flags: Sequence[Flag]) -> bool:
    return any(
        flag.name == "plugin" and flag.values and flag.values[0].text in colossalai.PLUGINS
        for flag in flags
    )


def overrides(words: Sequence[Field], file: str) -> Keys:
    """Returns the settings among the words of a command, as Hydra takes them."""
    keys = Keys(file)
    for word in words:
        found = HYDRA.fullmatch(word.start)
        if not found:
            continue
        # In 'model.pipeline_model_parallel_size=$PP' the key is known although its value is not.
        if word.text is None:
            keys.add(found[1], ConfigValue(None, word.line.number, why=word.because))
        else:
            text = found[2].strip("'\"")
            value = int(text) if NUMBER.fullmatch(text) else text
            keys.add(found[1], ConfigValue(value, word.line.number, word.via))
    return keys
