"""Advice: what of a layout costs days when nobody looks, each with its reason and its cure.

    tp 16 on nodes of 8 GPUs     tensor traffic of every layer leaves the node     tp 8
    nettest 32 of 80 ranks       groups of 32, 32 and 16                           16, 20, 40

Findings of the framework's own rules come with the layout; here follow those that hold for any
framework. One finding sums up all the groups it concerns.
"""

from __future__ import annotations

from itertools import chain

from serried.finding import Finding
from serried.mesh import advice_nearness as nearness
from serried.mesh import advice_shape as shape
from serried.mesh.domain import domain_of
from serried.mesh.layers import LayerSplit
from serried.mesh.layout import Layout
from serried.mesh.placement import Placement

BY_REQUEST = frozenset({"half_node", "alone", "doubled", "odd"})
"""Kinds of findings that cost memory or thought; all others slow, hang or mislead a job."""


def advise(
    layout: Layout,
    placement: Placement,
    *,
    nvlink_domain: int | None = None,
    layers: LayerSplit | None = None,
    only_important: bool = False,
) -> list[Finding]:
    """Returns what a user should know of a layout on its nodes, the important first.

    ``nvlink_domain`` is in GPUs, a node when None; ``only_important`` spares the work for
    the rest. Raises InputError where the domain does not fit.

    >>> from serried.mesh import GroupKind, Mesh
    >>> mesh = Mesh({"dp": 2, "tp": 16})
    >>> kinds = (GroupKind("dp", ("dp",)), GroupKind("tp", ("tp",)))
    >>> dims = {"dp": "dp", "tp": "tp"}
    >>> layout = Layout("custom", "1", 32, dict(mesh.sizes), "tp-dp", {"dense": mesh}, kinds, dims)
    >>> [finding.kind for finding in advise(layout, Placement(32))]
    ['tp_across']
    """
    domain = domain_of(placement, nvlink_domain)
    found = chain(
        nearness.across(layout, domain),
        nearness.wide_context(layout, domain),
        shape.overlapping(layout),
        shape.outside(layout),
        shape.uncovered(layout),
        shape.ragged(layout),
        shape.layers_by_depth(layout, layers),
    )
    rest = chain(
        nearness.half_node(layout, placement),
        shape.odd(layout),
        shape.alone(layout),
        shape.doubled(layout),
    )
    fresh = found if only_important else chain(found, rest)
    return [*layout.findings, *(each for each in fresh if not _is_said(each, layout))]


def is_important(finding: Finding) -> bool:
    """Tells whether a finding is to be shown without being asked for."""
    return finding.kind not in BY_REQUEST


def _is_said(finding: Finding, layout: Layout) -> bool:
    """Tells whether the framework's own findings say the same, of all its kinds or in general."""
    told = [each.groups for each in layout.findings if each.kind == finding.kind]
    return () in told or (bool(told) and set(finding.groups) <= set().union(*told))
