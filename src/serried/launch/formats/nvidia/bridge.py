"""Reads what Megatron-Bridge changes of a recipe, and what it keeps of it.

    run_recipe.py --recipe llama3_70b_pretrain_config -tp 8 model.context_parallel_size=1

The sizes of NVIDIA's own recipes stand in ``bridge_recipes.csv`` beside this module, as the
functions of Megatron-Bridge src/megatron/bridge/recipes set them. It holds those recipes whose
sizes are the same in each release from 0.2.0 to 0.6.0 that has them, whichever one is installed,
and leaves out those with experts whose tensor size is told by Megatron-core alone.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from serried.errors import listed
from serried.finding import said
from serried.launch.facts.flags import Flag, Meaning, take
from serried.launch.facts.found import Facts, Found
from serried.launch.formats.megatron import MEANINGS

PROGRAM = re.compile(
    r"(?:.*/)?(?:scripts/(?:training|performance)/run_(?:\w+_)?recipe\w*|run_recipe)\.py"
)
"""Programs of Megatron-Bridge, which train the recipe that they are given by its name."""

VIRTUAL = "virtual_pipeline_model_parallel_size"
SHORT = {
    "tp": Meaning("tp"),
    "pp": Meaning("pp"),
    "cp": Meaning("cp"),
    "ep": Meaning("ep"),
    "etp": Meaning("etp"),
    "vp": Meaning(VIRTUAL),
}
"""Short options of Megatron-Bridge 0.6 scripts/training/run_recipe.py, beside the long ones."""

ASKED = ("tp", "pp", "cp", "ep")
"""Sizes that a recipe may set, and that are asked for where it is not known."""

TASKS = {"lora": "peft", "dora": "peft"}
"""What ``--mode`` is called in the name of a recipe, where that is another word."""


def take_flags(facts: Facts, flags: Sequence[Flag]) -> None:
    """Adds the sizes among the options of ``run_recipe.py``."""
    take(facts, flags, {**MEANINGS, **SHORT})


def named_by(flags: Sequence[Flag]) -> str:
    """Returns the recipe that options name: ``--recipe``, or ``--model`` with ``--mode``; else ''.

    Source: Megatron-Bridge 0.6 scripts/training/run_recipe.py, _selected_recipe_name.
    """
    told = {flag.name: flag.values[0].text or "" for flag in flags if flag.values}
    model, mode = told.get("model", ""), told.get("mode", "")
    if model and mode and "recipe" not in told:
        return f"{model}_{TASKS.get(mode, mode)}_config"
    return told.get("recipe", "")


def complete(facts: Facts, recipe: str) -> None:
    """Adds what the recipe sets and ``facts`` leave; asks where the recipe is not known.

    ``recipe`` may be its whole path, ``megatron.bridge.recipes.llama.llama3_8b_sft_config``.
    """
    name = recipe.rpartition(".")[2]
    sizes = _recipes().get(name)
    if sizes is None:
        ask(facts, is_named=True)
        return
    if facts.says("pp"):
        # Chunks of a stage are those of the recipe's own stages.
        sizes = {key: size for key, size in sizes.items() if key != VIRTUAL}
    for key, size in sizes.items():
        if not facts.says(key):
            facts.claim(key, Found(size, default_of=f"Megatron-Bridge's {name}"))


def ask(facts: Facts, *, is_named: bool) -> None:
    """Says that a recipe which is not read may set more sizes, and asks for them at once.

    A file that sets some sizes is read as it stands, with a remark on the others, unless it
    names its recipe (``is_named``) and so is no whole of its own.
    """
    missing = [name for name in ASKED if not facts.says(name)]
    if not missing:
        return
    because = said("{file} overrides a recipe, which is not read", file=facts.file)
    if len(missing) < len(ASKED) and not is_named:
        facts.note(
            said("{because}; {names} are taken as 1", because=because, names=listed(missing))
        )
        return
    # One question: the other sizes can be given with it, and it says what they are otherwise.
    first, *others = missing
    if others:
        because = said(
            "{because}; {names} are taken as 1 unless they are given too",
            because=because,
            names=listed(others),
        )
    facts.lack(first, because)


@cache
def _recipes() -> Mapping[str, Mapping[str, int]]:
    """Returns the sizes that each recipe sets, by its name.

    >>> _recipes()["llama3_70b_pretrain_config"]["pp"]
    4
    """
    with Path(__file__).with_name("bridge_recipes.csv").open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    keys = {"vp": VIRTUAL}
    return {
        row["recipe"]: {
            keys.get(key, key): int(size) for key, size in row.items() if key != "recipe" and size
        }
        for row in rows
    }
