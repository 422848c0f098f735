"""The degrees of a job's parallelism, all of them resolved to numbers.

ranks = tp x cp x dp x pp                 of a layer's dense weights
      = etp x ep x expert_dp x pp         of its experts, over the same ranks of a stage
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.errors import InputError
from serried.mesh import Layout


@dataclass(frozen=True)
class Degrees:
    """Holds over how many ranks each thing is split.

    >>> degrees = Degrees(tp=2, pp=4, dp=8, ep=4)
    >>> degrees.world_size, degrees.expert_dp, degrees.num_stages
    (64, 4, 4)

    Raises InputError where the experts' degrees do not divide the ranks of a stage.
    """

    tp: int = 1
    pp: int = 1
    cp: int = 1
    dp: int = 1
    """Replicas that read different samples; cp is not in it, ep is."""
    ep: int = 1
    etp: int = 1
    chunks: int = 1
    """Model chunks on each rank: virtual pipeline stages."""

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "cp", "dp", "ep", "etp", "chunks"):
            if getattr(self, name) < 1:
                raise InputError(
                    "{axis}={size}; a size is at least 1", axis=name, size=getattr(self, name)
                )
        if self.stage_ranks % (self.etp * self.ep):
            raise InputError(
                "ep={ep} x etp={etp} does not divide the {ranks} ranks of a stage (tp x cp x dp)",
                ep=self.ep,
                etp=self.etp,
                ranks=self.stage_ranks,
            )

    @classmethod
    def of(cls, layout: Layout, chunks: int = 1) -> Degrees:
        """Returns those of a layout of any framework.

        >>> from serried.frameworks import Sizes, layout
        >>> Degrees.of(layout("megatron", Sizes(64, tp=2, pp=4, ep=4))).dp
        8
        """
        sizes = layout.sizes
        told = {name: sizes.get(name, 1) for name in ("tp", "pp", "cp", "ep", "etp")}
        dp = layout.world_size // (told["tp"] * told["pp"] * told["cp"])
        return cls(**told, dp=dp, chunks=chunks)

    @property
    def world_size(self) -> int:
        """All ranks."""
        return self.stage_ranks * self.pp

    @property
    def stage_ranks(self) -> int:
        """Ranks that hold the same layers among them."""
        return self.tp * self.cp * self.dp

    @property
    def shard_ranks(self) -> int:
        """Ranks with the same dense weights, which ZeRO shares states among."""
        return self.cp * self.dp

    @property
    def expert_dp(self) -> int:
        """Ranks with the same experts."""
        return self.stage_ranks // (self.etp * self.ep)

    @property
    def num_stages(self) -> int:
        """Stages of the pipeline, virtual ones counted."""
        return self.pp * self.chunks
