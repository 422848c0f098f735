"""What llm-analysis makes of the same rows: its own package, run on every row that it can express.

It has dense models, tp, pp, dp and full or selective recomputation; it has neither cp nor sliding
windows nor adapters. PyPI's 0.2.2 counts every feed-forward as 16 h h FLOPs a token; the head of
its repository (d841e40, of the same version number) knows gated ones and ZeRO's traffic, and is
asked for that where it is what is installed.

Each GPU type and precision has one FLOPS efficiency, the one that predicts these rows best; its
other efficiencies are its own.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from serried.plan.calibration.rows import Measured
from serried.plan.request import PlanRequest
from serried.plan.time.rates import peak

MISSING = (
    "llm-analysis is not installed and is left out; pip install --no-deps llm-analysis==0.2.2 fire "
    "termcolor adds it"
)
_BITS = {"bf16": "16", "nvfp4": "4"}
_LATENCY_S = 8e-6
"""Least latency of a message in its GPU configurations."""
EFFICIENCIES = np.arange(0.1, 0.91, 0.025)
"""What is tried for each GPU type and precision."""


@dataclass(frozen=True, eq=False)
class PeerSteps:
    """Holds what llm-analysis predicts, fitted to the same rows, and which rows those are."""

    name: str
    rows: np.ndarray
    """Indices of the rows that it can express."""
    steps: np.ndarray
    """Seconds, one for each of them."""


def peer_steps(rows: Sequence[Measured]) -> PeerSteps | None:
    """Returns the steps by llm-analysis; None where it is not installed."""
    if find_spec("llm_analysis") is None or find_spec("fire") is None:
        return None
    chosen = np.array([at for at, row in enumerate(rows) if is_expressed(row)], np.intp)
    with _silence():
        peer = _Peer()
        tried = np.array(
            [[peer.step_s(rows[at].request, each) for each in EFFICIENCIES] for at in chosen]
        )
    measured = np.array([rows[at].step_s or np.nan for at in chosen])
    families = np.array([f"{rows[at].gpu} {_bits(rows[at].request)}" for at in chosen])
    steps = np.empty_like(measured)
    for family in np.unique(families):
        alike = families == family
        errors = np.abs(tried[alike] / measured[alike, None] - 1).mean(axis=0)
        steps[alike] = tried[alike, np.argmin(errors)]
    return PeerSteps(peer.name, chosen, steps)


def is_expressed(row: Measured) -> bool:
    """Returns whether llm-analysis has what a row's job has."""
    asked = row.request
    model = asked.model
    is_plain = model.experts is None and model.latent is None and not model.windowed_layers
    divides = model.layers >= asked.degrees.pp and model.heads % model.kv_heads == 0
    return is_plain and divides and asked.degrees.cp == 1 and asked.lora is None


def _bits(asked: PlanRequest) -> str:
    return _BITS.get(asked.compute, "8")


@contextlib.contextmanager
def _silence() -> Any:
    """Keeps its tables and warnings to itself; it logs a page for every layout."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(before)


class _Peer:
    """Runs ``LLMAnalysis.training`` of the package that is installed."""

    def __init__(self) -> None:
        self.analysis: Any = import_module("llm_analysis.analysis")
        self.config: Any = import_module("llm_analysis.config")
        self.known = set(inspect.signature(self.analysis.LLMAnalysis.training).parameters)
        self.shape = set(inspect.signature(self.config.ModelConfig).parameters)
        is_newer = "mlp_gated_linear_units" in self.shape
        self.name = f"llm-analysis {'d841e40' if is_newer else '0.2.2'}"

    def step_s(self, asked: PlanRequest, efficiency: float) -> float:
        """Returns its seconds of one step at a share of the peak.

        The newer one's ``latency_per_iter`` charges ZeRO-3's traffic to every stage; it is taken
        where weights are sharded, and ``latency_per_iter_using_flops`` elsewhere.
        """
        degrees = asked.degrees
        one = self.analysis.LLMAnalysis(
            self._model(asked),
            self._gpu(asked),
            self.config.get_dtype_config_by_name("w16a16e16"),
            self.config.ParallelismConfig(
                tp_size=degrees.tp,
                pp_size=degrees.pp,
                dp_size=degrees.dp,
                sp_size=degrees.tp if asked.has_sequence_parallel else 1,
            ),
            flops_efficiency=efficiency,
            hbm_memory_efficiency=0.8,
        )
        found = one.training(
            batch_size_per_gpu=asked.micro_batch,
            gradient_accumulation_steps=asked.num_microbatches,
            # With all three it does not refuse what it deems too large for the card.
            global_batch_size=asked.micro_batch * asked.num_microbatches * degrees.dp,
            seq_len=asked.sequence,
            activation_recomputation=self._recompute(asked),
            output_dir=None,
            **self._sharding(asked),
        )
        plain = "latency_per_iter" if asked.zero >= 3 else "latency_per_iter_using_flops"
        return float(found.get(plain) or found["latency_per_iter"])

    def _model(self, asked: PlanRequest) -> Any:
        model = asked.model
        sizes: dict[str, Any] = {
            "name": model.name,
            "num_layers": model.layers,
            "n_head": model.heads,
            "num_key_value_heads": model.kv_heads,
            "hidden_dim": model.hidden,
            "ffn_embed_dim": model.ffn,
            "expansion_ratio": model.ffn / model.hidden,
            "vocab_size": model.vocab,
            "max_seq_len": asked.sequence,
        }
        if "mlp_gated_linear_units" in self.shape:
            sizes["mlp_gated_linear_units"] = model.is_gated
        return self.config.ModelConfig(**sizes)

    def _gpu(self, asked: PlanRequest) -> Any:
        """Returns the row's GPU; its peak is that of the row's precision."""
        gpu = asked.cluster.gpu
        return self.config.GPUConfig(
            name=gpu.name,
            mem_per_GPU_in_GB=gpu.memory_bytes / 1e9,
            hbm_bandwidth_in_GB_per_sec=gpu.memory_bytes_per_s / 1e9,
            intra_node_bandwidth_in_GB_per_sec=gpu.link_bytes_per_s / 1e9,
            intra_node_min_message_latency=_LATENCY_S,
            peak_fp16_TFLOPS=peak(gpu, _bits(asked)) / 1e12,
            inter_node_bandwidth_in_GB_per_sec=asked.cluster.nic_bytes_per_s / 1e9,
        )

    def _recompute(self, asked: PlanRequest) -> Any:
        kinds = self.analysis.ActivationRecomputation
        if asked.recompute.kind == "full":
            return kinds.FULL
        if asked.recompute.kind == "selective":
            return getattr(kinds, "ATTN_COMPUTE", None) or kinds.SELECTIVE
        return kinds.NONE

    def _sharding(self, asked: PlanRequest) -> dict[str, Any]:
        if "fwd_prefetch" not in self.known:
            return {}
        stages = self.analysis.DSZeRO
        return {"ds_zero": {3: stages.STAGE_3, 1: stages.STAGE_1}.get(asked.zero, stages.NONE)}
