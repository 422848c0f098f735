"""Megatron's order string, read into meshes, and the rules that depend on it.

tp-cp-ep-dp-pp names the fastest axis first; names left out are appended at the slow end if
their size is 1 (RankGenerator.__init__). An axis named twice counts twice, so ranks beyond
the world appear; serried refuses that unless ``allow_repeated_axes`` is set, and then warns.

From 0.19 on an axis gtp_remat is put after tp on the dense grid and after ep on that of experts
(_inject_gtp_remat_axis), unless the order names it. That looks at the order as it is written: where
ep is missing or in capitals it is put after tp, and where tp is too, it is the fastest axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from serried.errors import InputError
from serried.finding import Finding, said
from serried.frameworks.framework import number, switch
from serried.mesh import Ends, First, Mesh, Pick, Rule
from serried.mesh.sizes import Sizes

AXES = ("tp", "pp", "dp", "ep", "cp")
"""The order in which names missing from the order string are appended at its slow end."""

ORDER = "tp-cp-ep-dp-pp"
TP_PP_DP = "tp-cp-ep-pp-dp"
"""What ``--use-tp-pp-dp-mapping`` asks for."""


GTP = "gtp_remat"


@dataclass(frozen=True)
class AxisOrder:
    """Holds an order as the user wrote it and as the axes it names, fastest first."""

    text: str
    axes: tuple[str, ...]
    with_gtp: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def named(self) -> list[str]:
        """The axes that the text names; the others follow at the slow end."""
        return self.text.lower().split("-")

    @property
    def is_repeated(self) -> bool:
        """Whether an axis stands twice."""
        return len(set(self.axes)) < len(self.axes)

    def mesh(self, sizes: Mapping[str, int], offset: int = 0, *, gtp_after: str = "") -> Mesh:
        """Returns the mesh of ``sizes``; a repeated axis is called ``tp#2`` the second time."""
        fastest_first: list[str] = []
        for axis in self._with_gtp_after(gtp_after) if gtp_after else self.axes:
            fastest_first.append(f"{axis}#2" if axis in fastest_first else axis)
        named = {axis: sizes[axis.removesuffix("#2")] for axis in reversed(fastest_first)}
        return Mesh(named, offset)

    def _with_gtp_after(self, anchor: str) -> tuple[str, ...]:
        """Returns the axes with gtp_remat where Megatron puts it."""
        written = self.text.split("-")
        if not self.with_gtp or GTP in written:
            return self.axes
        # tp-cp-ep-dp-pp becomes tp-gtp_remat-cp-ep-dp-pp on the dense grid and
        # tp-cp-ep-gtp_remat-dp-pp on that of experts. Where the order leaves ep out it follows tp,
        # and without tp it comes first.
        anchor = anchor if anchor in written else "tp"
        place = written.index(anchor) + 1 if anchor in written else 0
        return (*self.axes[:place], GTP, *self.axes[place:])


def read_order(sizes: Sizes, *, with_gtp: bool = False) -> AxisOrder:
    """Returns the order asked for; raises InputError for one Megatron cannot use."""
    # An order may leave axes of size 1 out, but may not name what Megatron does not know. Named
    # twice, an axis is refused here unless it is asked for, though Megatron takes it (_repeated).
    mapping = switch(sizes, "use_tp_pp_dp_mapping")
    text = sizes.order if sizes.order is not None else TP_PP_DP if mapping else ORDER
    names = text.lower().split("-")
    twice = next((name for name in names if names.count(name) > 1), None)
    _check_names(text, names, twice, sizes, with_gtp=with_gtp)
    missing = tuple(axis for axis in AXES if axis not in names)
    findings = (_repeated(text, twice, sizes.world_size),) if twice else ()
    return AxisOrder(text, (*names, *missing), with_gtp, findings)


def _check_names(
    text: str, names: list[str], twice: str | None, sizes: Sizes, *, with_gtp: bool
) -> None:
    """Raises InputError for an order whose axes Megatron does not know, or refuses together."""
    for name in names:
        if name not in AXES and (name != GTP or not with_gtp):
            raise InputError(
                "order '{order}' names an unknown axis '{axis}'; "
                "it joins some of tp, cp, ep, dp, pp by '-', such as {example}",
                order=text,
                axis=name,
                example=ORDER,
            )
    if twice and not switch(sizes, "allow_repeated_axes"):
        raise InputError(
            "order '{order}' names {axis} twice; each axis stands once, such as {example}",
            order=text,
            axis=twice,
            example=ORDER,
        )
    if twice and "encoder_pipeline_model_parallel_size" in sizes.options:
        raise InputError(
            "order '{order}' names {axis} twice, which does not go with a separate encoder; "
            "name each axis once, such as {example}",
            order=text,
            axis=twice,
            example=ORDER,
        )
    if any(names.count(name) > 2 for name in names):
        raise InputError("order '{order}' names an axis more than twice", order=text)
    if with_gtp and "tp" not in names:
        raise InputError(
            "order '{order}' leaves out tp, whatever its size: from 0.19 on Megatron takes the tp "
            "in gtp_remat for it and then finds none; name it, such as {example}",
            order=text,
            example=ORDER,
        )


def _repeated(text: str, axis: str, world_size: int) -> Finding:
    return Finding(
        "out_of_range",
        evidence=(
            said(
                "order '{order}' names {axis} twice; Megatron accepts it and counts it twice, "
                "so groups reach beyond the {world} ranks and leave some out",
                order=text,
                axis=axis,
                world=world_size,
            ),
        ),
        cure=said("name each axis once, such as {example}", example=ORDER),
    )


def require_in_order(sizes: Mapping[str, int], order: AxisOrder) -> None:
    """Raises InputError for an axis longer than one that the order leaves out."""
    for axis, size in sizes.items():
        if size > 1 and axis in AXES and axis not in order.named:
            raise InputError(
                "order '{order}' leaves out {axis}, whose size is {size}; "
                "add it where it varies, such as {example}",
                order=order.text,
                axis=axis,
                size=size,
                example=f"{order.text}-{axis}",
            )


def check_pipelines(
    order: AxisOrder, meshes: Mapping[str, Mesh], pp: int, *, dp: int, edp: int, strict: bool
) -> None:
    """Raises InputError unless both grids hold the same pipelines.

    ``strict`` is the further rule of newer versions: an order whose text does not end in pp
    (in lower case) needs as many data ranks for experts as for dense layers.
    """
    for mesh in meshes.values():
        require_in_order(mesh.sizes, order)
    if pp == 1:
        return
    dense, expert = meshes["dense"], meshes["expert"]
    # A dense model meets this rule too: with cp=2, pp=2 and pp before dp, its etp x ep is tp alone,
    # so expert dp is twice as large as dp.
    if strict and not order.text.endswith("pp") and dp != edp:
        raise InputError(
            "order '{order}' needs dp = expert dp, but dp={dp} and expert dp={edp}; "
            "make etp x ep = tp x cp = {both}, or end the order in pp",
            order=order.text,
            dp=dp,
            edp=edp,
            both=dense.sizes["tp"] * dense.sizes["cp"],
        )
    if not _same_pipelines(dense, expert):
        raise InputError(
            "order '{order}' gives experts other pipelines than the dense layers; "
            "an order that ends in pp does not, such as {example}",
            order=order.text,
            example=ORDER,
        )


def _same_pipelines(dense: Mesh, expert: Mesh) -> bool:
    """Tells whether the grids step equally through stages, hence hold the same pipelines."""
    if dense.axes[0] == expert.axes[0] == "pp" and dense.num_ranks == expert.num_ranks:
        return True
    return np.array_equal(dense.groups("pp"), expert.groups("pp"))


def embedding_rules(sizes: Sizes) -> tuple[Rule, Rule]:
    """Returns which members of a pipeline, its encoder's included, hold the embeddings.

    The first rule is that of word embeddings, the second that of position embeddings.
    """
    key = "pipeline_model_parallel_split_rank"
    split = number(sizes, key, 0, least=0)
    last = sizes.pp + number(sizes, "encoder_pipeline_model_parallel_size", 0, least=0) - 1
    if split > last:
        raise InputError(
            "{key}={split} is no stage; stages are 0 to {last}", key=key, split=split, last=last
        )
    # The split rank is the first stage of a decoder, which has embeddings as well. Where it is the
    # last stage, that has word embeddings anyway.
    if split in (0, last):
        return Ends(), (First() if split == 0 else Pick((0, split)))
    return Pick((0, split, last)), Pick((0, split))
