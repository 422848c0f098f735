"""The models that SimuMax names in its tables of measured runs."""

from __future__ import annotations

from serried.plan.model.shape import ExpertShape, LatentAttention, ModelShape

_LATENT = LatentAttention(kv_rank=512, nope_dim=128, rope_dim=64, v_dim=128, q_rank=1536)
SIMUMAX_MODELS = {
    each.name: each
    for each in (
        ModelShape("llama3-8b", 32, 4096, 32, 8, 128, 14336, 128256),
        ModelShape("llama3-70b", 80, 8192, 64, 8, 128, 28672, 128256),
        # SimuMax's 405B has 16 heads of keys and values: configs/models/llama3-405b_padding_128.
        ModelShape("llama3-405b", 128, 16384, 128, 16, 128, 53248, 128256),
        ModelShape("qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936),
        ModelShape("mixtral-8x7b", 32, 4096, 32, 8, 128, 14336, 32000,
                   experts=ExpertShape(8, 2, 14336)),
        ModelShape("deepseekv2", 60, 5120, 128, 128, 128, 12288, 102400, latent=_LATENT,
                   experts=ExpertShape(160, 6, 1536, 3072, 1)),
        # Its DeepSeek-V3 rows have one dense layer: docs/b200, the notes on the release's rows.
        ModelShape("deepseekv3", 61, 7168, 128, 128, 128, 18432, 129280, latent=_LATENT,
                   experts=ExpertShape(256, 8, 2048, 2048, 1)),
    )
}  # fmt: skip
"""Source: MooreThreads/SimuMax 4dcaae5, configs/models."""
