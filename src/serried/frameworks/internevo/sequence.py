"""InternEvo's two-dimensional sequence parallelism (LoongTrain): heads, contexts and windows.

Read from Initializer_2D_SEQUENCE_PARALLEL (develop 2024-12) and generate_2d_attn_process_group
(develop 2025-01), internlm/core/context/process_group_initializer.py.

    tensor group of 8, head 2, context 4, window 2, head first
        head         [0 1] [2 3] [4 5] [6 7]
        context      [0 2 4 6] [1 3 5 7]
        intra_window [0 2] [4 6] [1 3] [5 7]      inter_window [0 4] [2 6] [1 5] [3 7]

Before 2025 only the first data x tensor ranks get these groups: with pipelines most have none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from serried.errors import InputError
from serried.finding import Finding, said
from serried.frameworks.framework import number, switch
from serried.mesh import Chain, Chunks, GroupKind, Leading, Level, Mesh, Pick, Rule
from serried.mesh.sizes import Sizes

SEQUENCE_OPTIONS = {
    "sequence_2D.enable": "true splits sequences in two dimensions, develop only",
    "sequence_2D.head_size": "ranks along heads; head x context = tp",
    "sequence_2D.context_size": "ranks along the context; head x context = tp",
    "sequence_2D.window_size": "ranks of a context window; it divides the context size",
    "sequence_2D.head_first": "false puts contexts on neighbouring ranks (default true)",
    "sequence_2D.interleaved": "true pairs even and odd ranks in windows (default false)",
}


@dataclass(frozen=True)
class Sequence2D:
    """Holds the sizes of the two-dimensional plane inside each tensor group."""

    is_used: bool
    head: int
    context: int
    window: int
    head_first: bool
    interleaved: bool

    @classmethod
    def of(cls, sizes: Sizes, tp: int) -> Sequence2D:
        """Returns the plane that the settings ask for; raises InputError where refused."""
        plane = cls(
            is_used=switch(sizes, "sequence_2D.enable"),
            head=number(sizes, "sequence_2D.head_size", 1),
            context=number(sizes, "sequence_2D.context_size", 1),
            window=number(sizes, "sequence_2D.window_size", 1),
            head_first=switch(sizes, "sequence_2D.head_first", default=True),
            interleaved=switch(sizes, "sequence_2D.interleaved"),
        )
        if plane.is_used:
            plane._check(tp)
        return plane

    def _check(self, tp: int) -> None:
        if self.head * self.context != tp:
            raise InputError(
                "head_size={head} x context_size={context} is not tp={tp}; it must be",
                head=self.head,
                context=self.context,
                tp=tp,
            )
        if self.context % self.window:
            raise InputError(
                "window_size={window} does not divide context_size={context}",
                window=self.window,
                context=self.context,
            )

    def mesh(self, outer: int) -> Mesh:
        """Returns the plane as a grid inside ``outer`` tensor groups."""
        inner = ("context", "head") if self.head_first else ("head", "context")
        sizes = {"head": self.head, "context": self.context}
        return Mesh({"outer": outer} | {axis: sizes[axis] for axis in inner})

    def windows(self, *, interleaved: bool) -> tuple[Rule, Rule]:
        """Returns the rules of groups inside windows and across them."""
        count = self.context // self.window
        inside: Rule = Chunks(self.window)
        across: Rule = Level(count, self.window)
        if not interleaved:
            return inside, across
        if count % 2:
            raise InputError(
                "interleaved windows need an even number of them; "
                "context_size={context} over window_size={window} gives {count}",
                context=self.context,
                window=self.window,
                count=count,
            )
        pick = Pick(self._interleaved())
        return Chain((pick, inside)), Chain((pick, across))

    def _interleaved(self) -> tuple[int, ...]:
        """Returns positions of the context: even ones of two windows, then odd ones."""
        # Of 16 places in windows of 4: 0 2 4 6, 1 3 5 7, 8 10 12 14, 9 11 13 15.
        return tuple(
            2 * j + (i // 2) * 2 * self.window + i % 2
            for i in range(self.context // self.window)
            for j in range(self.window)
        )

    def findings(self, pp: int, *, late: bool) -> tuple[Finding, ...]:
        """Returns a finding where pipelines leave most ranks without these groups."""
        if late or pp == 1 or not self.is_used:
            return ()
        return (
            Finding(
                "uncovered",
                groups=NAMES,
                evidence=(
                    said(
                        "sequence_2D groups are made for the first stage only, so {share} of "
                        "{pp} stages have none",
                        share=pp - 1,
                        pp=pp,
                    ),
                ),
                cure=said("use develop-2025-01, or pp=1"),
            ),
        )


NAMES = (
    *("head", "context", "intra_window", "inter_window"),
    *("dkv_intra_window", "dkv_inter_window"),
)


def late_kinds(plane: Sequence2D) -> list[GroupKind]:
    """Returns the kinds of develop 2025-01, in every tensor group."""
    return _kinds(plane, interleaved=plane.interleaved)


def early_kinds(plane: Sequence2D, dp: int) -> list[GroupKind]:
    """Returns the kinds of develop 2024-12, in the first ``dp`` tensor groups only.

    Windows are interleaved only below 8 ranks and below the whole context; even and odd ranks
    are told apart by number, so contexts must lie on neighbouring ranks.
    """
    interleaved = plane.interleaved and plane.window < 8 and plane.window != plane.context
    if interleaved and (plane.context % 2 or (plane.head_first and plane.head > 1)):
        raise InputError(
            "interleaved windows need contexts on neighbouring ranks, as many even as odd; "
            "set head_first=false or head_size=1, and an even context_size"
        )
    return [
        replace(kind, rule=_leading(kind, plane, dp))
        for kind in _kinds(plane, interleaved=interleaved)
    ]


def _leading(kind: GroupKind, plane: Sequence2D, dp: int) -> Rule:
    # A tensor group of head x context ranks has ``context`` groups of heads, and ``head`` of
    # contexts.
    per_tensor_group = plane.context if kind.axes == ("head",) else plane.head
    leading = Leading(dp * per_tensor_group)
    return Chain((leading, kind.rule)) if kind.rule else leading


def _kinds(plane: Sequence2D, *, interleaved: bool) -> list[GroupKind]:
    inside, across = plane.windows(interleaved=interleaved)
    context, about = ("context",), "keys and values of a context window"
    return [
        GroupKind("head", ("head",), "plane", about="other heads of the same tokens"),
        GroupKind("context", context, "plane", about="other tokens of the same heads"),
        GroupKind("intra_window", context, "plane", inside, about=about),
        GroupKind("inter_window", context, "plane", across, about="the same place of each window"),
        GroupKind("dkv_intra_window", context, "plane", inside, "intra_window", "their gradients"),
        GroupKind("dkv_inter_window", context, "plane", across, "inter_window", "their gradients"),
    ]
