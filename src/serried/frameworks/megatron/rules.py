"""Where Megatron refuses a job, and where it makes groups that overlap or leave ranks out.

Read from initialize_model_parallel of megatron-core 0.10.0 to 0.16.1 and core_v0.19.0, and for
``ARGUMENTS``, which Megatron-LM's own command line looks at beyond that, from
megatron/training/arguments.py (validate_args) of Megatron-LM core_v0.16.1. No group depends on
those, so they count only where they are given.
"""

from __future__ import annotations

import math

from serried.errors import InputError, listed
from serried.finding import Finding, Sentence, said
from serried.frameworks.framework import at_least, divisors, number, numbers, switch
from serried.frameworks.megatron.kinds import MegatronJob, two_levels
from serried.frameworks.megatron.names import name_of
from serried.mesh import Chunks, GroupKind
from serried.mesh.sizes import Sizes

ARGUMENTS = {
    "num_experts": "experts of the model; --ep must divide them (default not looked at)",
    "seq_length": "tokens of a sequence; 2 x cp must divide them (default not looked at)",
    "use_torch_fsdp2": "true shards by torch, which needs pp=1 and ep=1 (default false)",
    "validate_args": "true refuses hybrid context parallelism with pipelines too (default false)",
}


def check_arguments(sizes: Sizes) -> None:
    """Raises InputError where Megatron-LM's command line refuses what megatron-core would take."""
    # A setting that is not given takes a value that passes, so only what was given can be refused.
    experts = number(sizes, "num_experts", sizes.ep)
    if experts % sizes.ep:
        raise InputError(
            "ep={ep} does not divide num_experts={experts}; sizes that do: {fits}",
            ep=sizes.ep,
            experts=experts,
            fits=listed(divisors(experts), limit=24),
        )
    # A context rank takes two parts of a sequence, one from its start and one from its end, so that
    # causal attention costs all of them alike.
    tokens = number(sizes, "seq_length", 2 * sizes.cp)
    if sizes.cp > 1 and tokens % (2 * sizes.cp):
        raise InputError(
            "seq_length={tokens} does not divide into 2 x cp = {parts} parts; "
            "lengths that do: {below} and {above}",
            tokens=tokens,
            parts=2 * sizes.cp,
            below=tokens // (2 * sizes.cp) * 2 * sizes.cp,
            above=(tokens // (2 * sizes.cp) + 1) * 2 * sizes.cp,
        )
    if switch(sizes, "use_torch_fsdp2") and (sizes.pp > 1 or sizes.ep > 1):
        raise InputError(
            "use_torch_fsdp2=true needs pp=1 and ep=1; here pp={pp} and ep={ep}",
            pp=sizes.pp,
            ep=sizes.ep,
        )
    hybrid = switch(sizes, "hybrid_context_parallel")
    if switch(sizes, "validate_args") and hybrid and sizes.pp > 1:
        raise InputError(
            "hybrid_context_parallel=true does not go with pp={pp} in Megatron-LM; set pp=1",
            pp=sizes.pp,
        )


WINDOWS = {
    "pipeline_model_parallel_split_rank": ("0", "0.13"),
    "encoder_tensor_model_parallel_size": ("0.9", "0.13"),
    "encoder_pipeline_model_parallel_size": ("0.9", "0.13"),
    "expert_tensor_parallel_size": ("0.10", "99"),
    "num_distributed_optimizer_instances": ("0.10", "99"),
    "hierarchical_context_parallel_sizes": ("0.10", "99"),
    "create_gloo_process_groups": ("0.12", "99"),
    "sharp_enabled_group": ("0.14", "99"),
    "use_tp_pp_dp_mapping": ("0.7", "99"),
    "use_torch_fsdp2": ("0.10", "99"),
    "hybrid_context_parallel": ("0.16", "99"),
    "create_all_gather_group": ("0.16", "0.17"),
    "rank_offset": ("0.17", "99"),
    "local_world_size": ("0.17", "99"),
    "gtp_remat_size": ("0.19", "99"),
    "expert_gtp_remat_size": ("0.19", "99"),
}
"""First and last version that has a setting, where not all have it."""


def refuse_options_of_other_versions(sizes: Sizes, version: str) -> None:
    """Raises InputError for a setting that ``version`` does not have."""
    given = {*sizes.options} | ({"expert_tensor_parallel_size"} if sizes.etp is not None else set())
    for key, (first, last) in WINDOWS.items():
        # The last version stands for its patches too: a window that ends with 0.13 takes in 0.13.1.
        after = at_least(version, last) and not version.startswith(last)
        if key in given and (not at_least(version, first) or after):
            raise InputError(
                "megatron {version} has no setting '{key}'; versions that do: {when}",
                version=version,
                key=key,
                when=_when(first, last),
            )


def _when(first: str, last: str) -> Sentence:
    """Says in which versions a setting is there; 0 and 99 are the ends of all versions."""
    if first == "0":
        return said("up to {last}", last=last)
    if last == "99":
        return said("from {first} on", first=first)
    return said("from {first} to {last}", first=first, last=last)


def check_virtual_stages(sizes: Sizes) -> None:
    """Raises InputError for model chunks without a pipeline."""
    if "virtual_pipeline_model_parallel_size" in sizes.options:
        number(sizes, "virtual_pipeline_model_parallel_size", 1)
        if sizes.pp == 1:
            raise InputError(
                "virtual pipeline stages need pp above 1 (here pp=1); "
                "raise pp or leave out virtual_pipeline_model_parallel_size"
            )


def check_sharp(sizes: Sizes, job: MegatronJob) -> None:
    """Raises InputError for a group that SHARP cannot serve."""
    group = sizes.options.get("sharp_enabled_group")
    if group is None:
        return
    if not switch(sizes, "use_sharp"):
        raise InputError("sharp_enabled_group={group} needs use_sharp=true", group=group)
    if group not in ("dp", "dp_replica"):
        raise InputError(
            "sharp_enabled_group={group} is not known; it is dp or dp_replica", group=group
        )
    if group == "dp_replica" and job.instances == 1:
        raise InputError(
            "sharp_enabled_group=dp_replica needs num_distributed_optimizer_instances above 1"
        )


def check_instances(job: MegatronJob) -> None:
    """Raises InputError for optimizer instances that do not divide the data groups."""
    if job.instances > 1 and job.has_gtp:
        raise InputError(
            "gtp_remat does not go with {count} optimizer instances; set one of them to 1",
            count=job.instances,
        )
    # Instances cut the dp lists before 0.11 and the dp x cp lists since; from 0.13 on those of
    # experts as well.
    held = {"dp x cp": job.dp * job.cp} if at_least(job.version, "0.11") else {"dp": job.dp}
    if at_least(job.version, "0.13"):
        held["expert dp"] = job.edp
    for name, size in held.items():
        if size % job.instances:
            fits = divisors(math.gcd(*held.values()))
            raise InputError(
                "num_distributed_optimizer_instances={count} does not divide {name}={size}; "
                "numbers that do: {fits}",
                count=job.instances,
                name=said("expert dp") if name == "expert dp" else name,
                size=size,
                fits=listed(fits, limit=24),
            )


def findings_of(sizes: Sizes, kinds: tuple[GroupKind, ...], job: MegatronJob) -> list[Finding]:
    """Returns what is ragged or left out in the groups that Megatron makes."""
    return [*_ragged(kinds, job), *_left_out(kinds, job), *_loose_hierarchy(sizes, kinds, job)]


def _loose_hierarchy(sizes: Sizes, kinds: tuple[GroupKind, ...], job: MegatronJob) -> list[Finding]:
    """Returns a finding where context levels before 0.13 do not multiply to cp."""
    text = sizes.options.get("hierarchical_context_parallel_sizes", "")
    if not text or math.prod(numbers(text)) == sizes.cp:
        return []
    sentence = said(
        "megatron {version} takes hierarchical context sizes '{text}' though they do not "
        "multiply to cp={cp}, so its levels do not add up to the context group",
        version=job.version,
        text=text,
        cp=sizes.cp,
    )
    cure = said("sizes that fit: {example}", example=" ".join(map(str, two_levels(sizes.cp))))
    levels = tuple(kind.name for kind in kinds if "HIERARCHICAL_CONTEXT" in kind.name)
    return [Finding("misfit", evidence=(sentence,), groups=levels, cure=cure)]


def _ragged(kinds: tuple[GroupKind, ...], job: MegatronJob) -> list[Finding]:
    """Returns a finding for each hybrid context kind whose last group is shorter."""
    size = job.dp * job.cp
    found = []
    for kind in kinds:
        # With dp x cp = 10, chunks of 4 leave groups of 4, 4 and 2; with 12 all are whole.
        if (
            kind.name.startswith("HYBRID")
            and isinstance(kind.rule, Chunks)
            and size % kind.rule.size
        ):
            found.append(
                Finding(
                    "ragged",
                    groups=(kind.name,),
                    evidence=(
                        said(
                            "{kind} cuts {size} ranks into groups of {each} and one of {left}",
                            kind=kind.name,
                            size=size,
                            each=kind.rule.size,
                            left=size % kind.rule.size,
                        ),
                    ),
                    cure=said("choose dp x cp a power of two; here it is {size}", size=size),
                )
            )
    return found


def _left_out(kinds: tuple[GroupKind, ...], job: MegatronJob) -> list[Finding]:
    """Returns a finding where optimizer instances of 0.10 leave ranks without a group."""
    if at_least(job.version, "0.11") or job.instances == 1 or job.cp == 1:
        return []
    kind = name_of("intra_dp_cp", "_INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP", kinds)
    return [
        Finding(
            "uncovered",
            groups=(kind,),
            evidence=(
                said(
                    "megatron 0.10 counts dp={dp} for {kind} and forgets cp={cp}, so {left} of "
                    "every {whole} ranks are in no optimizer instance",
                    kind=kind,
                    dp=job.dp,
                    cp=job.cp,
                    left=job.dp * job.cp - job.dp,
                    whole=job.dp * job.cp,
                ),
            ),
            cure=said("use megatron 0.11 or newer"),
        )
    ]
