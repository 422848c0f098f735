"""What the parts of a plan are called, and the colour that each has in its picture."""

from __future__ import annotations

from collections.abc import Mapping

from serried.finding import Sentence, said

MEMORY: Mapping[str, Sentence] = {
    "parameters": said("parameters"),
    "gradients": said("gradients"),
    "optimizer": said("optimizer state"),
    "copies of weights": said("copies of weights"),
    "blank gradients": said("blank gradients"),
    "gathered weights": said("gathered weights"),
    "fresh gradients": said("fresh gradients"),
    "activations": said("activations"),
    "work of backward": said("work of backward"),
    "messages": said("messages"),
    "buffers": said("buffers"),
    "workspace": said("workspace"),
    "fragments": said("fragments"),
    "context": said("CUDA context and NCCL"),
}
"""Items of memory, in the order in which a bar stacks them."""

TIME: Mapping[str, Sentence] = {
    "matrices": said("matrices"),
    "attention": said("attention"),
    "elementwise": said("elementwise"),
    "recompute": said("recomputation"),
    "tp": said("tp communication"),
    "cp": said("cp communication"),
    "ep": said("ep communication"),
    "launch": said("kernel launches"),
    "offload": said("host transfers"),
    "embedding and output": said("embedding, output and loss"),
    "pp": said("pp communication"),
    "bubble": said("bubble"),
    "dp": said("dp communication"),
    "optimizer": said("optimizer step"),
    "fixed": said("fixed time of a step"),
    "straggling": said("waiting for the slowest"),
}
"""Parts of a step, in the order in which a bar stacks them."""

RECOMPUTED: Mapping[str, Sentence] = {
    "none": said("none"),
    "selective": said("selective"),
    "full": said("full"),
}
"""What a backward computes again."""

OFFLOADED: Mapping[str, Sentence] = {
    "none": said("none"),
    "optimizer": said("optimizer"),
    "activations": said("activations"),
    "parameters": said("parameters"),
}
"""What lies in the host's memory."""

COLOURS: Mapping[str, str] = {
    "parameters": "#5093c2",
    "gradients": "#d47d20",
    "optimizer": "#38cbbd",
    "copies of weights": "#8fb8d8",
    "blank gradients": "#e7b98a",
    "gathered weights": "#b4cfe3",
    "fresh gradients": "#f0d3b2",
    "activations": "#7a5fb5",
    "work of backward": "#a894d4",
    "messages": "#c2b6de",
    "buffers": "#9aa5b1",
    "workspace": "#b9c1ca",
    "fragments": "#d3d8de",
    "context": "#e4e8ec",
    "matrices": "#2f6db3",
    "attention": "#5a9bd6",
    "elementwise": "#9cc3e6",
    "recompute": "#7a5fb5",
    "tp": "#c4570f",
    "cp": "#dd8a4a",
    "ep": "#b3243b",
    "launch": "#8a6d00",
    "offload": "#c9a227",
    "embedding and output": "#2b8a4b",
    "pp": "#e0a878",
    "bubble": "#d3d8de",
    "dp": "#a0410b",
    "fixed": "#5a5f66",
    "straggling": "#b9c1ca",
}
"""Colours of both pictures; what communicates is warm, what computes is cool."""


def memory_word(name: str) -> Sentence:
    """Returns what an item of memory is called."""
    return MEMORY.get(name) or Sentence(name, {})


def time_word(name: str) -> Sentence:
    """Returns what a part of a step is called."""
    return TIME.get(name) or Sentence(name, {})


TRAFFIC: Mapping[str, Sentence] = {
    "node": said("node"),
    "NVLink domain": said("NVLink domain"),
    "rail": said("rail"),
    "spine": said("spine"),
    "GEMMs": said("GEMMs"),
    "attention": said("attention"),
    "half a batch": said("half a batch"),
    "other microbatches": said("other microbatches"),
    "last backward": said("last backward"),
    "first forward": said("first forward"),
    "the layer before": said("the layer before"),
}
"""Links that collectives go over, and what runs beside them."""


def traffic_word(name: str) -> Sentence:
    """Returns what a link, or what runs beside a collective, is called."""
    return TRAFFIC.get(name) or Sentence(name, {})
