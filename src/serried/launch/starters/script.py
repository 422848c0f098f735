"""Reads launch scripts and command lines: what starts ranks, and the sizes it is given.

The shell is followed, not run (``shell``). Each command that starts ranks (``launchers``)
says how many (``world``) and which framework: by its options (``program_options``), or by
the config file it names (``named_config``). Commands that disagree are all named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from serried.errors import InputError, listed
from serried.finding import said
from serried.launch import neighbours
from serried.launch.facts import training
from serried.launch.facts.config import Reading
from serried.launch.facts.flags import Flag, flags_of, loose
from serried.launch.facts.found import Facts, Found
from serried.launch.facts.words import Field
from serried.launch.formats import accelerate, megatron, nanotron, torchtitan
from serried.launch.shell import follow as shell
from serried.launch.shell.split import split
from serried.launch.shell.story import Story
from serried.launch.starters import named_config, program_options, world
from serried.launch.starters.launchers import Launch, launch_of
from serried.launch.starters.named_config import ConfigFiles, ReadKeys, ReadOther
from serried.limits import SCRIPT_STARTS

# A text with none of these is a script only where it reads as one. Bounds such as {0,60} keep a
# long word from being looked through again at each of its letters.
MENTIONS_LAUNCH = re.compile(
    r"torchrun|torch\.distributed|deepspeed|accelerate launch|colossalai run|srun|mpirun|"
    r"paddle\.distributed|paddleformers-cli|(?:megatron|swift) (?:sft|pt|rlhf)|#SBATCH|"
    r"(?:llamafactory-cli|axolotl) train|\bezpz launch\b|\bcomposer -|openrlhf\.cli|"
    r"\bsbatch\b|\bverl\.\w|"
    r"--[\w.-]{0,60}parallel[-_](?:size|degree)|pretrain_\w{1,60}\.py|nproc[-_]per[-_]node"
)
# '#!/bin/bash', '#!/usr/bin/env zsh'.
SHEBANG = re.compile(r"#!.*\b(?:ba|z|da|k)?sh\b")
NAME = re.compile(r".*\.(?:sh|bash|zsh|slurm|sbatch)")
# 'export TP=2', 'set -x', 'if [ …', 'python3 -m …' at the start of a line, as no YAML has them.
SHELL = re.compile(
    r"(?m)^[ \t]*(?:export [A-Za-z_]\w*=|set [-+][a-z]|(?:el)?if \[|source \S|cd \S|"
    r"(?:CUDA_VISIBLE_DEVICES=\S{0,60} )?(?:bash|sh|python[\d.]{0,5}|uv run|ray) [\w./$-])"
)
SWIFT = re.compile(r"(?:.*[./])?swift[./]cli[./]_megatron[./]\w+(?:\.py)?")
"""The programs that ``megatron sft`` and its like start."""
YAML = re.compile(r"\.ya?ml$")
# A program that the same script hands to Paddle's launcher elsewhere, or a trainer of Paddle's.
PADDLE = re.compile(r"\bpaddle\.distributed\b|\bpaddle(?:nlp|mix|formers)\b", re.I)
RANKS = ("world_size", "nodes", "gpus_per_node")


def is_one(text: str) -> bool:
    """Tells whether a text is a script or a command that may start ranks."""
    return bool(MENTIONS_LAUNCH.search(text))


def is_shell(text: str, file: str) -> bool:
    """Tells whether a text reads as a shell script, whatever its commands do.

    >>> is_shell("set -x\\necho done", "run"), is_shell("a: 1", "a.yaml")
    (True, False)
    """
    return bool(SHEBANG.match(text) or NAME.fullmatch(file) or SHELL.search(text))


def read(
    text: str, file: str, beside: Mapping[str, str], read_other: ReadOther, read_keys: ReadKeys
) -> Reading | None:
    """Returns what the script says, or None when it starts no ranks and sets no options.

    Raises InputError where it cannot be followed, or starts ranks by a script not given.
    """
    story = shell.follow(text, file, beside)
    shelf = ConfigFiles(story.files, beside, read_other, read_keys)
    launches = [
        launch for run in story.runs if (launch := launch_of(run)) and not _converts(launch)
    ]
    if len(launches) > SCRIPT_STARTS.most:
        raise InputError(
            "{file} starts ranks {count} times, and at most {limit} are read; give the one that "
            "you mean in a file of its own",
            file=file,
            count=len(launches),
            limit=SCRIPT_STARTS.most,
        )
    has_paddle = bool(PADDLE.search(text))
    readings = [(_reading(launch, shelf, has_paddle=has_paddle), launch) for launch in launches]
    # A script may start helpers too: those that tell a framework go first, then those of a
    # launcher; a plain 'python' tells nothing by itself.
    launched = [each for each, launch in readings if launch.launcher != "python"]
    told = [each for each, _ in readings if each.framework]
    # A helper whose config is not known ('python convert.py --config $C') is none to be asked of.
    asking = [each for each in launched if each.facts.says("framework")]
    chosen = told or asking or launched
    chosen = chosen or [each for each, _ in readings if each.facts.says("framework")]
    if not chosen:
        chosen = _loose(story, file)
    if not chosen:
        _refuse_wrapper(story, file, text, launches)
        return None
    reading = _joined(chosen, story, file)
    if reading.framework is None and not reading.facts.says("framework"):
        _tell_program(reading, [launch for each, launch in readings if each in chosen])
    return reading


def _converts(launch: Launch) -> bool:
    """Tells whether one process only reads and writes files, whatever options it is given."""
    program = (launch.program.text if launch.program else None) or ""
    return launch.launcher == "python" and bool(neighbours.CONVERTS.fullmatch(program))


def _tell_program(reading: Reading, launches: Sequence[Launch]) -> None:
    """Says which program tells no framework, where one is named."""
    # 'torchrun --no-python bash run.sh' names a shell, of which nothing is to be said.
    programs = (each for each in launches if each.program and "." in (each.program.text or ""))
    named = next(programs, None)
    if named and named.program:
        reading.facts.lack(
            "framework",
            said(
                "{program} on line {line} is given no option, and names no config, by which "
                "serried knows its framework",
                program=named.program.text,
                line=named.run.line,
            ),
        )


def _refuse_wrapper(story: Story, file: str, text: str, launches: Sequence[Launch]) -> None:
    """Raises InputError when the script only starts others that are not given, or ends first."""
    started = [name for name in dict.fromkeys(story.not_given) if name not in story.not_read]
    if started:
        raise InputError(
            "{file} starts no ranks itself; it starts {others}, which is not given beside it",
            file=file,
            others=listed(started),
        )
    if story.not_named:
        raise InputError(
            "{file} starts no ranks itself; it starts a script that it does not name: {why}; "
            "give that script",
            file=file,
            why=story.not_named[0],
        )
    rest = text.split("\n", story.end.number)[-1] if story.end else ""
    if story.end and (story.end.file != file or is_one(rest)):
        raise InputError(
            "{file} starts no ranks: line {line} of {where} ends it before; see what the condition "
            "around that line asks for",
            file=file,
            line=story.end,
            where=story.end.file,
        )
    neighbours.refuse_manifest(text, file)
    _refuse_answering(story, file)
    alone = next((each for each in launches if _is_alone(each)), None)
    if alone and alone.program:
        raise InputError(
            "{file} starts {program} on line {line} as one process, and nothing tells of more "
            "ranks; give the command or script that starts them",
            file=file,
            program=alone.program.text,
            line=alone.run.line,
        )
    if story.not_read:
        raise InputError(
            "{file} starts no ranks itself, and it reads {others}, which is not given beside it",
            file=file,
            others=listed(dict.fromkeys(story.not_read)),
        )
    if is_shell(text, file) and not YAML.search(file):
        raise InputError(
            "{file} is a shell script, and none of its commands starts ranks; serried looks for "
            "torchrun, srun, mpirun, accelerate launch, deepspeed and their like, and for the "
            "trainers that it knows",
            file=file,
        )


def _is_alone(launch: Launch) -> bool:
    """Tells whether a start is one program that has a name, and none that installs others."""
    program = launch.program.text if launch.program else None
    return bool(program) and program not in ("pip", "venv", "ensurepip", "-c")


def _refuse_answering(story: Story, file: str) -> None:
    """Raises InputError for a script whose commands answer, evaluate or convert."""
    for run in story.runs:
        launch = launch_of(run)
        program = (launch.program.text if launch and launch.program else None) or ""
        words = [each.text or "" for each in run.fields]
        if named := neighbours.trains_nothing(words, program):
            raise InputError(
                "{file} starts {program} on line {line}, which by its name answers, evaluates, "
                "converts or prepares, and trains nothing; give the command or script that trains",
                file=file,
                program=named,
                line=run.line,
            )


def _tell_of_gaps(readings: Sequence[Reading], facts: Facts) -> None:
    """Says of settings that one command gives and another does not, where their meshes differ."""
    if not all(each.derive for each in readings):
        return
    for name in {name for each in readings for name in each.facts.settled()}:
        givers = [each.facts.settled().get(name) for each in readings]
        found = next((each for each in givers if each and each.line), None)
        if found and None in givers:
            facts.lack(
                name,
                said(
                    "{where} gives {value}, and another command of {file} gives none",
                    where=found.where,
                    value=found.value,
                    file=facts.file,
                ),
            )


def _joined(readings: Sequence[Reading], story: Story, file: str) -> Reading:
    """Returns one reading of all commands: what they agree on, and where they do not."""
    first = readings[0]
    facts = Facts(file)
    facts.notes.add(*story.notes)
    _tell_of_gaps(readings, facts)
    # Values on which the commands differ stand side by side under one name, which leaves it open.
    for each in readings:
        facts.join(each.facts)
    names = sorted({each.framework for each in readings if each.framework})
    # A file that is sourced and not given may hold the sizes, where the command gives none.
    if "megatron" in names and story.not_given and not (facts.says("tp") or facts.says("pp")):
        for size in ("tp", "pp"):
            why = said("it reads {name}, which is not given beside it", name=story.not_given[0])
            facts.lack(size, why)
    if len(names) > 1:
        facts.lack("framework", said("it starts {names}", names=listed(names)))
    framework = first.framework if len(names) == 1 else None
    version = next((each.version for each in readings if each.version), None)
    is_slurm = story.job is not None or any(run.job for run in story.runs)
    name = f"{first.format} under Slurm" if is_slurm else first.format
    reading = Reading(name, facts, framework, version, first.product, first.derive)
    nanotron.tell_nodes(reading)
    accelerate.tell_nodes(reading)
    torchtitan.tell_rest(reading)
    return reading


# ----------------------------------------------------------------------- one command


def _reading(launch: Launch, shelf: ConfigFiles, *, has_paddle: bool) -> Reading:
    """Returns what one start of ranks says; ``has_paddle`` tells of a script for Paddle."""
    flags = flags_of((*launch.options, *launch.arguments))
    file = launch.run.line.file
    counted = Facts(file)
    world.count(launch, counted, shelf.beside)
    # Megatron-LM's options on the line go first where there are any; what the config of Accelerate
    # says then only fills gaps.
    if launch.launcher == "accelerate" and not program_options.is_megatron(flags):
        started = named_config.accelerate_launch(launch, flags, shelf)
        started.facts.training |= training.of_flags(flags)
        return _unless_handed(started, launch)
    reading = program_options.reading(launch, flags, file)
    # Paddle's trainers share options with Hugging Face's, and a plain 'python' tells neither.
    if reading and has_paddle and reading.framework == "accelerate" and launch.launcher == "python":
        reading = Reading(launch.format, Facts(file), "paddle")
    if reading is None:
        reading = named_config.overridden(launch, flags, shelf)
    if reading and reading.framework == "torchtitan":
        named_config.take_registry(reading.facts, flags, shelf)
    others = named_config.readings(launch, flags, shelf)
    if reading is None and others:
        reading, *others = others
        if reading.format != launch.format:
            reading.format = f"{launch.format}, {reading.format}"
    reading = reading or Reading(launch.format, Facts(file))
    # The YAML that settings stand over is in their reading already.
    base = reading.format.replace("command line", "YAML")
    for other in others:
        if reading.format != launch.format and other.format == base:
            continue
        if launch.format == reading.format != other.format:
            reading.format = f"{launch.format}, {other.format}"
        _add(reading, other)
    _complete(reading, launch, flags)
    _prefer(reading.facts, counted)
    _note_unknown_options(reading.facts, launch.arguments)
    # What the command says goes before its configs, as it does when it runs.
    reading.facts.training |= training.of_flags(flags)
    return _unless_handed(reading, launch)


def _unless_handed(reading: Reading, launch: Launch) -> Reading:
    """Leaves the ranks open where another program decides on how many machines they start."""
    if launch.handed_by:
        for name in ("world_size", "nodes"):
            reading.facts.drop(name)
        reading.facts.lack(
            "world_size",
            said(
                "{program} on line {line} decides on how many machines it starts them",
                program=launch.handed_by,
                line=launch.run.line,
            ),
        )
    return reading


def _add(reading: Reading, other: Reading) -> None:
    """Adds what a config says where the command itself says nothing."""
    reading.facts.give_way(other.facts)
    reading.framework = reading.framework or other.framework
    if reading.framework == other.framework:
        reading.version = reading.version or other.version


def _complete(reading: Reading, launch: Launch, flags: Sequence[Flag]) -> None:
    """Names the framework and version that the launcher, or a way of launching, tells."""
    if reading.framework is None and launch.launcher in ("deepspeed", "paddle"):
        reading.framework = launch.launcher
    # Only releases up to 0.2.2 of torchtitan take '--job.config_file'.
    reads_toml = any(flag.name == "job.config-file" for flag in flags)
    if reading.framework == "torchtitan" and reads_toml and reading.version is None:
        reading.version = torchtitan.NEWEST_TOML
    if reading.framework == "megatron" and _is_swift(launch) and not reading.facts.says("etp"):
        reading.facts.claim("etp", Found(1, default_of="ms-swift"))


def _is_swift(launch: Launch) -> bool:
    """Tells whether ms-swift starts Megatron-core: its etp is 1 where Megatron-LM's is tp.

    Source: ms-swift swift/megatron/arguments/megatron_args.py, expert_tensor_parallel_size.
    """
    program = launch.program.text if launch.program else None
    return launch.launcher == "megatron-swift" or bool(SWIFT.fullmatch(program or ""))


def _prefer(facts: Facts, counted: Facts) -> None:
    """Lets the launcher's numbers go before a config's."""
    # The launcher starts the ranks, whatever a config says; where it leaves their number open
    # (all GPUs of a node), a config that settles it is believed.
    if any(name in counted.claims for name in RANKS) or not any(map(facts.says, RANKS)):
        for name in RANKS:
            facts.drop(name)
        facts.join(counted)
    else:
        facts.notes.add(*counted.notes)


def _note_unknown_options(facts: Facts, words: Sequence[Field]) -> None:
    """Notes words that are not known and may be options."""
    for word in loose(words):
        facts.note(said("{why}; options in it are not known", why=word.because))


# ----------------------------------------------------------------------- loose options


def _loose(story: Story, file: str) -> list[Reading]:
    """Reads options that a script only puts into variables, for another that sources it."""
    # An env file sets MODEL_ARGS="--tensor-model-parallel-size 4", and whoever sources it starts.
    words: list[Field] = []
    for value in story.variables.values():
        for each in value if isinstance(value, list) else [value]:
            words += split(each)
    flags = flags_of(words)
    if not any(flag.name in megatron.MARKS for flag in flags):
        return []
    reading = megatron.read_flags(flags, file)
    reading.facts.note(
        said("{file} sets options but starts nothing itself; it is read all the same", file=file)
    )
    return [reading]
