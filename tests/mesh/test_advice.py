"""Advice: what is said of a layout on its nodes, and what is not."""

from __future__ import annotations

import pytest

from serried.errors import InputError
from serried.finding import Finding
from serried.frameworks import Sizes, layout
from serried.mesh import FixedKind, Layout, Mesh, Placement
from serried.mesh.advice import advise, is_important
from serried.mesh.domain import domain_of
from serried.mesh.layers import as_listed, evenly


def advice(name: str, sizes: Sizes, **keywords: object) -> dict[str, Finding]:
    per_node = int(str(keywords.pop("gpus_per_node", 8)))
    placement = Placement(sizes.world_size, per_node)
    found = advise(layout(name, sizes), placement, **keywords)  # type: ignore[arg-type]
    return {each.kind: each for each in found}


def free_form(*lists: list[int], world: int = 8) -> Layout:
    kind = FixedKind("ring", (), lists=tuple(map(tuple, lists)))
    return Layout("custom", "1", world, {}, "-", {"dense": Mesh({"dp": world})}, (kind,), {})


def test_a_layout_that_fits_its_nodes_has_nothing_important() -> None:
    found = advice("megatron", Sizes(16, tp=2, pp=4))
    assert not any(map(is_important, found.values()))
    assert {"alone", "doubled"} <= set(found)


def test_tensor_groups_across_nodes_are_told_with_the_sizes_that_stay_inside() -> None:
    finding = advice("megatron", Sizes(32, tp=16))["tp_across"]
    assert str(finding) == (
        "2 of 2 tp groups spread over several nodes of 8 GPUs, such as [0 1 2 3 4 5 6 7 …]; "
        "tensor traffic, several times a layer, then crosses the slower network; "
        "tp that stays inside: 1, 2, 4, 8"
    )


def test_expert_groups_across_nodes_may_be_cured_by_etp() -> None:
    finding = advice("megatron", Sizes(64, tp=4, ep=8))["ep_across"]
    assert str(finding.cure) == (
        "ep that stays inside: 1, 2; etp=1 would set expert ranks side by side"
    )
    assert "ep_across" not in advice("megatron", Sizes(64, tp=4, ep=8, etp=1))


def test_an_order_that_spreads_tensor_ranks_is_told_by_its_axes() -> None:
    finding = advice("megatron", Sizes(64, tp=2, pp=1, order="dp-pp-cp-ep-tp"))["tp_across"]
    assert str(finding.cure) == ("let tp vary before dp in the order; they stand 32 ranks apart")


def test_context_wider_than_the_domain_is_told() -> None:
    finding = advice("megatron", Sizes(32, tp=4, cp=4))["cp_tp_wide"]
    assert str(finding.cure) == "cp x tp of at most 8 stays inside"
    assert "cp_tp_wide" not in advice("megatron", Sizes(32, tp=4, cp=4), nvlink_domain=16)


def test_a_domain_larger_than_a_node_holds_larger_groups() -> None:
    sizes = Sizes(64, tp=16)
    assert "tp_across" in advice("megatron", sizes, gpus_per_node=4)
    assert "tp_across" not in advice("megatron", sizes, gpus_per_node=4, nvlink_domain=64)


def test_a_domain_smaller_than_a_node_holds_smaller_groups() -> None:
    finding = advice("megatron", Sizes(16, tp=8), nvlink_domain=4)["tp_across"]
    assert "several NVLink domains of 4 GPUs" in str(finding)


@pytest.mark.parametrize("domain", [0, 3, 12])
def test_a_domain_that_cuts_nodes_apart_is_refused(domain: int) -> None:
    with pytest.raises(InputError) as error:
        domain_of(Placement(16), domain)
    assert str(error.value) == (
        f"an NVLink domain of {domain} GPUs does not go with nodes of 8 GPUs and 1 per rank; "
        "it divides a node or is made of whole nodes"
    )


def test_a_ragged_window_is_told_with_windows_that_divide() -> None:
    finding = advice("internlm", Sizes(80, tp=8))["ragged"]
    assert str(finding) == (
        "groups differ in size: nettest (32, 16); what counts on equal groups hangs or averages "
        "wrongly; windows that divide 80 ranks: 8, 10, 16, 20, 40, 80"
    )


def test_overlapping_groups_are_told_once_with_a_rank_that_sees_them() -> None:
    found = advise(free_form([0, 1, 2, 3], [2, 3, 4, 5], [6, 7]), Placement(8))
    finding = next(each for each in found if each.kind == "overlap")
    assert finding.ranks == (2, 3)
    assert "2 ranks stand in several ring groups, such as rank 2 in [0 1 2 3], [2 3 4 5]" in str(
        finding
    )


def test_ranks_without_a_group_are_told() -> None:
    found = advise(free_form([0, 1], [2, 3]), Placement(8))
    assert "uncovered" not in [each.kind for each in found], "a listed kind covers what it lists"
    sizes = Sizes(8, tp=2, options={"rank_offset": "2", "local_world_size": "4"})
    finding = advice("megatron@0.19.0", sizes)["uncovered"]
    assert finding.ranks == (0, 1, 6, 7)
    assert "4 of 8 ranks are in no group of " in str(finding)
    assert ": 0-1, 6-7" in str(finding)


def test_ranks_beyond_the_world_are_told() -> None:
    found = advise(free_form([0, 1], [6, 9]), Placement(8))
    finding = next(each for each in found if each.kind == "out_of_range")
    assert "ring name ranks beyond the last, 7; new_group refuses them" in str(finding)


def test_what_the_framework_says_itself_is_not_said_twice() -> None:
    options = {"hybrid_context_parallel": "true"}
    made = layout("megatron", Sizes(20, cp=2, options=options))
    found = advise(made, Placement(20))
    assert [each.kind for each in made.findings] == ["ragged"]
    assert [each.kind for each in found].count("ragged") == 1


def test_communicators_over_the_same_ranks_are_counted_for_a_rank() -> None:
    finding = advice("megatron", Sizes(16, tp=2, pp=4))["doubled"]
    assert str(finding).startswith("a rank makes 20 communicators over 10 different sets of ranks")
    assert "3 are gloo twins, which create_gloo_process_groups=false leaves out" in str(finding)


def test_a_framework_that_keeps_one_communicator_for_equal_ranks_has_no_doubles() -> None:
    assert "doubled" not in advice("nanotron", Sizes(16, tp=2, pp=4))


def test_an_odd_data_size_is_told_with_worlds_that_are_even() -> None:
    finding = advice("megatron", Sizes(96, tp=8, pp=4))["odd"]
    assert str(finding.cure) == "worlds with an even dp: 64 and 128"


def test_a_half_filled_node_is_told() -> None:
    assert str(advice("fsdp", Sizes(20))["half_node"].cure) == "worlds that fill nodes: 16 and 24"


def test_layers_that_stages_do_not_divide_are_told() -> None:
    sizes = Sizes(16, pp=4)
    finding = advice("megatron", sizes, layers=evenly(15, pp=4))["layers_uneven"]
    assert "15 layers over 4 stages leave 3 or 4 layers each" in str(finding)
    assert "megatron refuses that" in str(finding)
    assert "layers that divide: 12, 16" in str(finding)
    assert "layers_uneven" not in advice("megatron", sizes, layers=evenly(16, pp=4))
    assert "layers_uneven" not in advice("megatron", sizes, layers=as_listed([3, 4, 4, 4], pp=4))


def test_more_stages_than_layers_are_told() -> None:
    finding = advice("deepspeed", Sizes(16, pp=8), layers=evenly(6, pp=8))["layers_few"]
    assert str(finding) == (
        "pp=8 is deeper than 6 layers reach: positions 6-7 hold none; pp of at most 6"
    )


def test_only_the_important_can_be_asked_for() -> None:
    made = layout("megatron", Sizes(32, tp=16))
    found = advise(made, Placement(32), only_important=True)
    assert [each.kind for each in found] == ["tp_across"]


def test_groups_are_near_by_the_nodes_that_there_are() -> None:
    made = layout("megatron", Sizes(12, tp=4))
    near = {each.kind for each in advise(made, Placement.on(12, (8, 4)))}
    assert not near & {"tp_across", "half_node"}
    apart = {each.kind: each for each in advise(made, Placement.on(12, (6, 4, 2)))}
    assert str(apart["tp_across"].evidence[0]) == (
        "2 of 3 tp groups spread over several nodes of 6, 4 and 2 GPUs, such as [4 5 6 7]"
    )
    assert str(apart["tp_across"].cure) == "tp that stays inside: 1, 2"


def test_an_nvlink_domain_divides_every_node_or_is_refused() -> None:
    assert domain_of(Placement.on(12, (8, 4)), 4).num_ranks == 4
    with pytest.raises(InputError, match="8 GPUs does not go with nodes of 8 and 4 GPUs"):
        domain_of(Placement.on(12, (8, 4)), 8)
