"""Megatron's separate encoder (0.9 to 0.13): a second window of ranks before the decoder's.

Read from generator_wrapper in megatron-core 0.9.0 to 0.13.0, megatron/core/parallel_state.py.
Kinds are made for the encoder and for the decoder and stand one after the other; only
pipelines (and tp-pp) join an encoder list to a decoder list, as ``join`` does.

    20 ranks, encoder tp 2, decoder tp 4 pp 2, dp 2       encoder ranks 0-3, decoder 4-19
    0.9   encoder lists in turn        [0 4 12] [1 5 13] [2 6 14] [3 7 15] [0 8 16] …
    0.12  each repeated in one run     [0 4 12] [0 5 13] [1 6 14] [1 7 15] [2 8 16] …

An encoder rank then stands in several pipelines. The module's variables hold, for each rank,
the last group made with it (pipelines: a list of them), and that is what is shown here.
"""

from __future__ import annotations

from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.finding import Finding, said
from serried.frameworks.framework import at_least, number
from serried.frameworks.megatron.kinds import MegatronJob
from serried.frameworks.megatron.order import AxisOrder
from serried.mesh import GroupKind, Mesh
from serried.mesh.sizes import Sizes


@dataclass(frozen=True)
class Encoder:
    """Holds the sizes of the encoder; none when its pipeline size is 0."""

    tp: int
    pp: int
    cp: int
    decoder_tp: int

    @classmethod
    def of(cls, sizes: Sizes, version: str) -> Encoder:
        """Returns the encoder that the settings ask for; raises InputError where refused."""
        tp = number(sizes, "encoder_tensor_model_parallel_size", 0, least=0)
        pp = number(sizes, "encoder_pipeline_model_parallel_size", 0, least=0)
        if tp == 0 and pp > 0:
            tp = sizes.tp
        if tp > 0 and pp == 0 and not at_least(version, "0.10"):
            raise InputError(
                "encoder tp={tp} needs encoder_pipeline_model_parallel_size of at least 1", tp=tp
            )
        if tp > sizes.tp:
            raise InputError(
                "encoder tp={encoder} is above the decoder's tp={tp}; it is at most that",
                encoder=tp,
                tp=sizes.tp,
            )
        return cls(tp, pp, sizes.cp, sizes.tp)

    @property
    def is_used(self) -> bool:
        """Whether there is an encoder at all."""
        return self.tp * self.pp > 0

    @property
    def model_size(self) -> int:
        """Ranks of one copy of the encoder."""
        return self.tp * self.pp * self.cp

    def num_ranks(self, dp: int) -> int:
        """Returns how many ranks the encoder owns."""
        return self.model_size * dp

    def data_parallel(self, sizes: Sizes) -> int:
        """Returns dp, shared by encoder and decoder; raises InputError where it is not whole."""
        whole = self.model_size + sizes.tp * sizes.pp * sizes.cp
        if sizes.world_size % whole:
            raise InputError(
                "encoder and decoder take {whole} ranks per copy, which does not divide "
                "{world}; worlds that fit: {fits}",
                whole=whole,
                world=sizes.world_size,
                fits=listed([whole, 2 * whole, 3 * whole, 4 * whole], limit=3),
            )
        return sizes.world_size // whole

    def check(self, job: MegatronJob) -> None:
        """Raises InputError for optimizer instances that cut encoder and experts differently."""
        if job.instances > 1 and at_least(job.version, "0.13") and job.dp != job.edp:
            raise InputError(
                "{count} optimizer instances cut dp={dp} of the encoder as they cut expert "
                "dp={edp}; with an encoder the two are equal",
                count=job.instances,
                dp=job.dp,
                edp=job.edp,
            )

    def mesh(self, order: AxisOrder, dp: int) -> Mesh:
        """Returns the encoder's grid, which starts at rank 0."""
        sizes = {"tp": self.tp, "cp": self.cp, "ep": 1, "dp": dp, "pp": self.pp}
        return order.mesh(sizes)

    def findings(self, kinds: tuple[GroupKind, ...]) -> tuple[Finding, ...]:
        """Returns a warning that encoder ranks stand in several pipelines, where they do."""
        if not self.is_used or self.tp == self.decoder_tp:
            return ()
        return (
            Finding(
                "overlap",
                groups=tuple(kind.name for kind in kinds if _is_pipeline(kind)),
                evidence=(
                    said(
                        "each encoder rank stands in {share} pipelines or more, because the "
                        "encoder's tp={tp} is below the decoder's tp={decoder}",
                        share=self.decoder_tp // self.tp,
                        tp=self.tp,
                        decoder=self.decoder_tp,
                    ),
                ),
                cure=said("give encoder and decoder the same tp"),
            ),
        )


def _is_pipeline(kind: GroupKind) -> bool:
    """Tells whether ``kind`` joins pipelines, or keeps some members of them."""
    return kind.axes == ("pp",) and not kind.twin_of
