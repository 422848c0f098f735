"""From evidence to a diagnosis: every family of causes is asked, and the likeliest comes first."""

from __future__ import annotations

from serried.diagnose.causes.logs.order import log_causes
from serried.diagnose.causes.missing import missing_evidence
from serried.diagnose.diagnosis import Diagnosis
from serried.diagnose.gathered import Evidence


def diagnosed(evidence: Evidence) -> Diagnosis:
    """Returns what the evidence tells, with its causes from the likeliest on."""
    heard = {rank for sign in evidence.signs if (rank := sign.speaker.global_rank) is not None}
    causes = tuple(log_causes(evidence.signs))
    return Diagnosis(
        causes,
        missing=(*evidence.missing, *missing_evidence(evidence, causes)),
        notes=evidence.notes,
        ranks_heard=tuple(sorted(heard)),
        world_size=evidence.state.world_size if evidence.state else None,
    )
