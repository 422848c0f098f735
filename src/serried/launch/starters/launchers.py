"""Commands that start ranks: torchrun, srun, deepspeed, accelerate, mpirun and others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from serried.launch.facts.words import Field, Piece
from serried.launch.formats.reinforcement import skyrl
from serried.launch.shell import slurm
from serried.launch.shell.split import split
from serried.launch.shell.story import StartedCommand

MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "torch.distributed.elastic": "torchrun",
    "paddle.distributed.launch": "paddle",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed": "deepspeed",
}
"""Module after ``python -m`` -> the launcher it is."""

COMMANDS = {
    ("torchrun",): "torchrun",
    ("deepspeed",): "deepspeed",
    ("accelerate", "launch"): "accelerate",
    ("colossalai", "run"): "colossalai",
    ("mpirun",): "mpirun",
    ("mpiexec",): "mpirun",
    ("ezpz", "launch"): "ezpz",
    ("msrun",): "msrun",
    ("fleetrun",): "paddle",
    ("paddleformers-cli", "train"): "paddle",
    ("erniekit", "train"): "paddle",
    ("megatron", "sft"): "megatron-swift",
    ("megatron", "pt"): "megatron-swift",
    ("megatron", "rlhf"): "megatron-swift",
    ("swift", "sft"): "swift",
    ("swift", "pt"): "swift",
    ("swift", "rlhf"): "swift",
    ("llamafactory-cli", "train"): "llamafactory",
    ("axolotl", "train"): "axolotl",
    ("composer",): "composer",
}

PROGRAMS = ("swift", "megatron-swift", "llamafactory", "axolotl")
"""Those that start torchrun themselves, upon a program of their own: all words are for it."""

SWITCHES = {
    "torchrun": frozenset(("standalone", "no-python", "use-env", "virtual-local-rank")),
    "deepspeed": frozenset(
        (
            *("force-multi", "no-python", "save-pid", "no-local-rank", "no-ssh", "no-ssh-check"),
            *("elastic-training", "bind-cores-to-rank", "quick-start"),
        )
    ),
    "accelerate": frozenset(
        (
            *("quiet", "cpu", "multi-gpu", "tpu", "ipex", "use-deepspeed", "use-fsdp", "use-cpu"),
            *("use-megatron-lm", "use-parallelism-config", "no-python", "debug", "use-xpu"),
            *("enable-cpu-affinity", "same-network", "tpu-use-cluster", "use-tpu"),
        )
    ),
    "paddle": frozenset(("auto-parallel",)),
}
"""Options of a launcher that take no value."""

FORMATS = {
    "torchrun": "torchrun command line",
    "srun": "srun command line",
    "deepspeed": "deepspeed command line",
    "accelerate": "accelerate launch command line",
    "colossalai": "ColossalAI command line",
    "paddle": "Paddle command line",
    "mpirun": "mpirun command line",
    "msrun": "msrun command line",
    "ezpz": "ezpz command line",
    "swift": "ms-swift command line",
    "megatron-swift": "Megatron command of ms-swift",
    "llamafactory": "LLaMA-Factory command line",
    "axolotl": "axolotl command line",
    "composer": "composer command line",
    "ray": "verl command line",
}

TALKS = re.compile(
    "echo|printf|which|type|command|grep|pip3?|conda|mamba|apt(-get)?|module|git|wget|curl|"
    "ls|cat|rm|cp|mv|ln|cd|mkdir|touch|chmod|chown|find|tar|sed|awk|head|tail|tee|"
    "kill|pkill|killall|pgrep"
)
"""Commands that may name a launcher without starting it."""

# 'python', 'python3', 'python3.11'.
PYTHON = re.compile(r"python[\d.]*")

DRIVER = re.compile(
    r"(?:.*[./])?(?:verl|recipe)[./](?:\w+[./])*(?:main|\w+_main)(?!_gen|_eval)(?:_\w+)?(?:\.py)?"
)
"""Programs of verl, of which one process tells Ray where its ranks run.

Source: verl examples/slurm/ray_on_slurm.slurm, which starts one with ``srun --ntasks=1``.
"""
# 'actor_rollout_ref.actor.strategy=fsdp' and 'worker.actor.fsdp.fsdp_size=8' are settings of it,
# 'trainer.placement.policy_num_nodes=2' of SkyRL's.
DRIVER_SETTING = re.compile(
    r"\+{0,2}(?:actor_rollout_ref\.|worker\.actor\.|(?:trainer\.)?placement\.(?:policy_)?num_)"
)


def is_driver(program: Field | None, arguments: Sequence[Field]) -> bool:
    """Tells whether a program is one process that has Ray start the ranks."""
    name = (program.text if program is not None else None) or ""
    if DRIVER.fullmatch(name) or skyrl.PROGRAM.fullmatch(name):
        return True
    return any(DRIVER_SETTING.match(each.start) for each in arguments)


@dataclass(frozen=True)
class Launch:
    """Holds one start of ranks: the launcher and its options, the program and its arguments.

    ``step`` is what Slurm is asked for around it; ``has_srun`` tells whether srun starts it.
    """

    launcher: str
    options: tuple[Field, ...]
    program: Field | None
    arguments: tuple[Field, ...]
    run: StartedCommand
    step: slurm.SlurmRequest
    has_srun: bool
    handed_by: str = ""
    """The program that hands the launcher to machines of its own, where one does."""

    @property
    def format(self) -> str:
        """What such a command is called when nothing tells its framework."""
        return FORMATS.get(self.launcher, "Python command")


def launch_of(run: StartedCommand) -> Launch | None:
    """Returns the start of ranks that a command is, or None when it starts none."""
    step, has_srun = _slurm_step(run)
    found = _head(run.fields)
    outer = next((head for words in run.wrappers if (head := _head(words))), None)
    if found is None:
        return None
    launcher, rest, program = found
    # A plain 'python' is one rank of those that mpirun or srun around it starts.
    if launcher == "python" and outer and outer[0] == "mpirun":
        if program is None and rest:
            program, rest = rest[0], rest[1:]
        return Launch("mpirun", tuple(outer[1]), program, tuple(rest), run, step, has_srun)
    if launcher == "python" and is_driver(program or (rest[0] if rest else None), rest):
        launcher = "ray"
    elif launcher == "python" and has_srun and not _is_submitted(run.fields):
        launcher = "srun"
    switches = SWITCHES.get(launcher, frozenset())
    if program is not None or launcher in ("python", "srun", "ray", *PROGRAMS):
        options: Sequence[Field] = ()
        if program is None and rest and launcher not in PROGRAMS:
            program, rest = rest[0], rest[1:]
    elif launcher in ("mpirun", "ezpz"):
        options, program, rest = _mpi(rest)
    else:
        options, program, rest = _divided(rest, switches)
    handed_by = _handed_by(run.fields) if launcher != "python" else ""
    return Launch(launcher, tuple(options), program, tuple(rest), run, step, has_srun, handed_by)


def _slurm_step(run: StartedCommand) -> tuple[slurm.SlurmRequest, bool]:
    """Returns what Slurm is asked for around a command, and whether an srun starts it."""
    step = run.job or slurm.SlurmRequest()
    has_srun = False
    # An inner srun is a step of the job around it: what it leaves out, the outer one says.
    for words in (*run.wrappers, run.fields):
        at = _place(words, "srun")
        if at is not None:
            has_srun = True
            step = slurm.SlurmRequest(slurm.figures(_step_options(words[at + 1 :]))[0]).over(step)
    return step, has_srun


def _is_submitted(words: Sequence[Field]) -> bool:
    """Tells ``srun -n 1 ray job submit … -- python x.py``: Ray starts the ranks, not srun."""
    at = _place(words, "ray")
    return at is not None and [each.text for each in words[at + 1 : at + 3]] == ["job", "submit"]


def _handed_by(words: Sequence[Field]) -> str:
    """Returns the program of ``python submit.py … -- torchrun …``, '' where there is none."""
    behind = _place(words, "--")
    before = _head(words[:behind]) if behind else None
    if before is None or before[0] != "python":
        return ""
    return ((before[2] or before[1][0]).text if before[2] or before[1] else None) or ""


def _place(words: Sequence[Field], name: str) -> int | None:
    for i, each in enumerate(words):
        if PurePosixPath(each.text or "").name == name:
            return i
    return None


def _step_options(words: Sequence[Field]) -> Sequence[Field]:
    """Returns the words after srun up to the program it starts, as far as that can be told."""
    # Behind the program stand options of its own: in 'srun -N 2 python x.py -n 5' the 5 is not
    # srun's.
    for i, each in enumerate(words):
        name = PurePosixPath(each.text or "").name
        if PYTHON.fullmatch(name) or name in ("torchrun", "bash", "sh", "accelerate", "deepspeed"):
            return words[:i]
    return words


def _head(words: Sequence[Field]) -> tuple[str, Sequence[Field], Field | None] | None:
    """Returns the first launcher among words, the words after it, and the program if told."""
    if words and TALKS.fullmatch(words[0].text or ""):
        return None
    # 'python submit.py --gpus 8 -- torchrun x.py' hands what stands behind '--' to its machines.
    behind = _place(words, "--")
    if behind is not None and (inner := _head(words[behind + 1 :])) and inner[0] != "python":
        return inner
    # The launcher need not come first, as in 'nohup env A=1 torchrun x.py', so the first word that
    # is one counts. A .py file with no launcher before it starts itself.
    for i, each in enumerate(words):
        name = _command(each.text or "", is_first=not i)
        following = words[i + 1].text if i + 1 < len(words) else None
        for (command, *verb), launcher in COMMANDS.items():
            if name == command and (not verb or following == verb[0]):
                return launcher, words[i + 1 + len(verb) :], None
        # 'uv run --extra fsdp -m pkg.main': the module stands behind options of uv's own.
        if name == "uv" and following == "run" and (module := _module(words[i + 2 :])):
            return module
        if PYTHON.fullmatch(name) or (each.text is None and each.via.upper().startswith("PYTHON")):
            return _python(words[i + 1 :])
        if name.endswith(".py"):
            return "python", words[i:], None
    if _is_torchrun(words):
        return "torchrun", words[1:], None
    return None


def _module(words: Sequence[Field]) -> tuple[str, Sequence[Field], Field | None] | None:
    """Returns the module that ``uv run … -m`` starts, where nothing else stands before it."""
    for i, each in enumerate(words):
        if each.start == "-m" and i + 1 < len(words):
            return _python(words[i:])
        # In '--extra megatron' the second word is a value, not the command of that name.
        if i and words[i - 1].start.startswith("--") and "=" not in words[i - 1].start:
            continue
        name = PurePosixPath(each.text or "").name
        if PYTHON.fullmatch(name) or name.endswith(".py") or any(name == c[0] for c in COMMANDS):
            return None
    return None


def _command(text: str, *, is_first: bool) -> str:
    """Returns the command that a word is; a path among other words is one only below ``bin``."""
    path = PurePosixPath(text)
    # In '--data /data/deepspeed' the last word names a folder, not the launcher.
    is_folder = len(path.parts) > 1 and path.parent.name != "bin"
    return "" if is_folder and not is_first and path.suffix != ".py" else path.name


def _is_torchrun(words: Sequence[Field]) -> bool:
    """Tells torchrun by its options, where its path is a variable that is not known."""
    names = {each.start.partition("=")[0].replace("_", "-") for each in words[1:]}
    return "--nproc-per-node" in names


def _python(words: Sequence[Field]) -> tuple[str, Sequence[Field], Field | None]:
    """Returns what ``python`` starts: a launcher's module, a module, or a file."""
    for i, each in enumerate(words):
        text = each.text or each.start
        # 'python -u -m torch.distributed.run x.py' is torchrun; any other module is a program
        # itself.
        if text == "-m" and i + 1 < len(words):
            module = words[i + 1].text or ""
            if module in MODULES:
                return MODULES[module], words[i + 2 :], None
            return "python", words[i + 2 :], words[i + 1]
        if text == "-c":
            return "python", (), each
        if not text.startswith("-"):
            return "python", words[i:], None
    return "python", (), None


def _divided(
    words: Sequence[Field], switches: frozenset[str]
) -> tuple[list[Field], Field | None, Sequence[Field]]:
    """Divides words into the launcher's options, the program, and the program's arguments.

    A word that is not known may be options or the program; what follows it is told apart
    by name later.
    """
    options: list[Field] = []
    at = 0
    while at < len(words):
        each = words[at]
        at += 1
        if each.start in ("-m", "--module") and at < len(words):
            return options, words[at], words[at + 1 :]
        if not each.start.startswith("-"):
            if each.text is not None or at == len(words) or _is_program(each):
                return options, each, words[at:]
            options.append(each)
            continue
        options.append(each)
        name = each.start.lstrip("-").replace("_", "-")
        if "=" in each.start or name in switches or at == len(words):
            continue
        value = words[at]
        if not value.start.startswith("--") and not _is_program(value):
            numbers = {maybe.number for maybe in value.maybe}
            options.append(value)
            at += 1
            # All alternatives of one open value belong to the option before them.
            while numbers and at < len(words) and numbers & {m.number for m in words[at].maybe}:
                options.append(words[at])
                at += 1
    return options, None, ()


def _is_program(word: Field) -> bool:
    last = word.pieces[-1] if word.pieces else None
    return isinstance(last, Piece) and last.text.endswith((".py", ".pyz"))


def _mpi(words: Sequence[Field]) -> tuple[Sequence[Field], Field | None, Sequence[Field]]:
    # 'mpirun -np 8 python x.py --tp 2' names its program after python. In 'mpirun -np 8 ./bind.sh
    # x.py "--tp 2 --pp 4"' bind.sh is not given, and the words behind x.py are taken to reach it.
    for i, each in enumerate(words):
        if PYTHON.fullmatch(PurePosixPath(each.text or "").name):
            _, rest, program = _python(words[i + 1 :])
            if program is not None:
                return words[:i], program, rest
            return words[:i], (rest[0] if rest else None), rest[1:]
    for i, each in enumerate(words):
        if _is_program(each):
            return words[:i], each, _spread(words[i + 1 :])
    return words, None, ()


def _spread(words: Sequence[Field]) -> list[Field]:
    """Returns words for a script that is not given, options in one pair of quotes apart."""
    return [
        part for each in words for part in (split(each.pieces) if " --" in each.start else [each])
    ]
