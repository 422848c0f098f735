"""What options of ColossalAI's example scripts mean; it has no config file of its own.

Names: ColossalAI 0.5.0 examples/language/llama/benchmark.py and applications/*/train.py,
which hand them to HybridParallelPlugin, MoeHybridParallelPlugin or GeminiPlugin.
"""

from __future__ import annotations

from collections.abc import Sequence

from serried.launch.facts.config import Reading
from serried.launch.facts.emit import LaunchJob, options
from serried.launch.facts.flags import Flag, Meaning, take
from serried.launch.facts.found import Facts, Found

MEANINGS = {
    "tp": Meaning("tp"),
    "pp": Meaning("pp"),
    "sp": Meaning("sp_size"),
    "ep": Meaning("ep"),
    "zero": Meaning("zero"),
    "zero-stage": Meaning("zero"),
    "extra-dp": Meaning("extra_dp_size"),
    "extra-dp-size": Meaning("extra_dp_size"),
    "sp-mode": Meaning("sequence_parallelism_mode", "text"),
    "sequence-parallelism-mode": Meaning("sequence_parallelism_mode", "text"),
    "enable-sequence-parallelism": Meaning("enable_sequence_parallelism", "yes"),
    "inner-ring-size": Meaning("inner_ring_size"),
    "plugin": Meaning("_plugin", "text"),
    "p": Meaning("_plugin", "text"),
}
PLUGINS = {
    "3d": "hybrid",
    "3d_cpu": "hybrid",
    "hybrid": "hybrid",
    "hybrid_parallel": "hybrid",
    "moe": "moe",
    "moe_hybrid": "moe",
    "gemini": "gemini",
    "gemini_auto": "gemini",
    "zero2": "low_level_zero",
    "zero2_cpu": "low_level_zero",
    "zero1": "low_level_zero",
}
"""Value of ``--plugin`` -> the kind of plugin serried knows."""


def read(flags: Sequence[Flag], file: str) -> Reading:
    """Returns what the options say."""
    facts = Facts(file)
    take(facts, flags, MEANINGS)
    plugin = facts.drop("_plugin")
    if plugin and str(plugin.value) in PLUGINS:
        kind = PLUGINS[str(plugin.value)]
        facts.claim("plugin", Found(kind, plugin.file, plugin.line, plugin.key))
    if facts.text("sequence_parallelism_mode") and not facts.says("enable_sequence_parallelism"):
        mode = facts.settled()["sequence_parallelism_mode"]
        facts.claim("enable_sequence_parallelism", Found("true", mode.file, mode.line, mode.key))
    return Reading("ColossalAI command line", facts, "colossalai")


def arguments(job: LaunchJob) -> list[str]:
    """Returns the options that lay the job out."""
    # Reversed, so that the first of several names of a kind is written: '3d' for hybrid.
    named = {kind: name for name, kind in reversed(PLUGINS.items())}
    default = "moe" if job.sizes.ep > 1 else "hybrid"
    plugin = named[job.sizes.options.get("plugin", default)]
    aliases = ("zero-stage", "extra-dp-size", "sequence-parallelism-mode", "plugin", "p")
    written = {name: meaning for name, meaning in MEANINGS.items() if name not in aliases}
    return [f"--plugin {plugin}", *options(job, written)]
