"""Group kinds that run from Megatron's separate encoder (0.9 to 0.13) into its decoder.

Read from generator_wrapper in megatron-core 0.9.0 to 0.13.0, megatron/core/parallel_state.py.

    E = 3 encoder lists, D = 7 decoder lists       0.9   in turn     0 1 2 0 1 2 0
                                                   0.12  in runs     0 0 0 1 1 2 2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from serried.frameworks.framework import at_least
from serried.frameworks.megatron.encoder import Encoder
from serried.frameworks.megatron.order import AxisOrder
from serried.mesh import GroupKind, Groups, JoinRuns, Mesh, ModulesKind, Ranks

Numbers = NDArray[np.int64]

EMBEDDINGS = ("embd", "pos_embd")
"""Kinds that keep some members of each pipeline."""


@dataclass(frozen=True)
class Join:
    """Says which encoder list each decoder list is joined to, and the places kept of both."""

    num_encoders: int
    num_decoders: int
    encoder_places: list[int]
    decoder_places: list[int]
    in_turn: bool

    def encoder_of(self, decoders: Numbers) -> Numbers:
        """Returns the encoder list of each decoder list.

        >>> [Join(3, 7, [], [], turn).encoder_of(np.arange(7)).tolist() for turn in (True, False)]
        [[0, 1, 2, 0, 1, 2, 0], [0, 0, 0, 1, 1, 2, 2]]
        """
        if self.in_turn:
            return decoders % self.num_encoders
        # In runs, the first ``wide`` encoder lists serve share + 1 decoder lists each, the others
        # ``share``; what is beyond the wide runs is divided by the shorter length.
        share, wide = divmod(self.num_decoders, self.num_encoders)
        beyond = decoders - wide * (share + 1)
        return np.where(beyond < 0, decoders // (share + 1), wide + beyond // max(share, 1))

    def decoders_of(self, encoders: Numbers) -> tuple[Numbers, Numbers, int]:
        """Returns the first decoder list of each encoder list, how many, and the step on.

        >>> [each.tolist() for each in Join(3, 7, [], [], False).decoders_of(np.arange(3))[:2]]
        [[0, 3, 5], [3, 2, 2]]
        """
        share, left = divmod(self.num_decoders, self.num_encoders)
        counts = share + (encoders < left)
        if self.in_turn:
            return encoders, counts, self.num_encoders
        return encoders * share + np.minimum(encoders, left), counts, 1


@dataclass(frozen=True)
class JoinedKind(GroupKind):
    """Joins each decoder list to an encoder list, then shows what each rank holds of them.

    A decoder rank is in one list, an encoder rank in those of several decoder lists.
    ``place`` is the position in a rank's list of groups, None for ranks with one group only
    and for kinds of which a rank keeps the last.
    """

    in_turn: bool = True
    place: int | None = None
    keeps_last: bool = False

    def over(self, meshes: Mapping[str, Mesh]) -> Groups:
        """Returns the groups in the order in which ranks, from 0 on, hold them."""
        # ``held`` is the decoder list that each rank's variable shows in the end, encoder ranks
        # first, for they come first in the world. Reading it from rank 0 on gives the order in
        # which a user who asks rank after rank meets the groups.
        join = self._join(meshes)
        held = np.full(meshes["dense"].offset + meshes["dense"].num_ranks, -1, dtype=np.int64)
        if join.encoder_places:
            ranks = self._lists(meshes["encoder"])[:, join.encoder_places]
            held[ranks] = self._shown(join, np.arange(join.num_encoders))[:, None]
        if join.decoder_places and self.place is None:
            ranks = self._lists(meshes["dense"])[:, join.decoder_places]
            held[ranks] = np.arange(join.num_decoders)[:, None]
        shown = _in_order(held[held >= 0], join.num_decoders)
        if not join.decoder_places:
            # Without decoder members, all lists with one encoder list are the same group.
            shown = shown[np.sort(np.unique(join.encoder_of(shown), return_index=True)[1])]
        encoder = self._lists(meshes["encoder"])[join.encoder_of(shown)][:, join.encoder_places]
        decoder = self._lists(meshes["dense"])[shown][:, join.decoder_places]
        return Groups.even(np.concatenate([encoder, decoder], axis=1))

    def of(self, rank: int, meshes: Mapping[str, Mesh]) -> list[Sequence[int]]:
        """Returns the groups that ``rank`` is in, of the lists that it is joined into."""
        join = self._join(meshes)
        if rank in meshes["dense"]:
            rows = np.array([meshes["dense"].row(rank, *self.axes)])
        else:  # an encoder rank is in the lists of all decoders that its list serves
            number = np.array([meshes["encoder"].row(rank, *self.axes)])
            first, counts, step = join.decoders_of(number)
            rows = first[0] + step * np.arange(counts[0])
        held = self._shown(join, join.encoder_of(rows)) == rows
        by_decoders = join.decoder_places and self.place is None
        # Encoder ranks come first, and with them the list that they hold.
        rows = np.concatenate([rows[held], rows[~held]]) if by_decoders else rows[held]
        found = [self._group(join, int(row), meshes) for row in rows]
        return [ranks for ranks in found if rank in ranks]

    @property
    def is_in_rank_order(self) -> bool:
        """Whether ranks, from 0 on, come upon the groups in their order: they are made so."""
        return True

    def numbers(self, rank: int, meshes: Mapping[str, Mesh]) -> list[int]:
        """Returns the numbers of the groups that ``rank`` is in, out of all of them."""
        return self.over(meshes).containing(rank)

    def _join(self, meshes: Mapping[str, Mesh]) -> Join:
        encoders, decoders = (self.shape(meshes[name]) for name in ("encoder", "dense"))
        # A joined list is an encoder list, then a decoder list. A rule takes the same places of
        # each, so it runs once, on the numbers of places, and not on every list of ranks.
        places = np.arange(encoders[1] + decoders[1], dtype=np.int32)
        kept = (self.rule(places[None]).members if self.rule else places).tolist()
        return Join(
            encoders[0],
            decoders[0],
            [place for place in kept if place < encoders[1]],
            [place - encoders[1] for place in kept if place >= encoders[1]],
            self.in_turn,
        )

    def _lists(self, mesh: Mesh) -> Ranks:
        return mesh.groups(*self.axes)

    def _group(self, join: Join, row: int, meshes: Mapping[str, Mesh]) -> list[int]:
        number = int(join.encoder_of(np.array([row]))[0])
        encoder = meshes["encoder"].rows(range(number, number + 1), *self.axes)[0]
        decoder = meshes["dense"].rows(range(row, row + 1), *self.axes)[0]
        return [*encoder[join.encoder_places].tolist(), *decoder[join.decoder_places].tolist()]

    def _shown(self, join: Join, encoders: Numbers) -> Numbers:
        """Returns the decoder list that ranks of each encoder list show; -1 where none is."""
        # Megatron assigns the variable once for each decoder list: embeddings keep the last, a
        # pipeline variable becomes a list at the second, of which ``place`` is one entry.
        first, counts, step = join.decoders_of(encoders)
        if self.keeps_last:
            return np.where(counts > 0, first + (counts - 1) * step, -1)
        if self.place is None:
            return np.where(counts == 1, first, -1)
        return np.where(counts > max(1, self.place), first + self.place * step, -1)


def _in_order(values: Numbers, limit: int) -> Numbers:
    """Returns each value once, where it first stands; all are below ``limit``.

    >>> _in_order(np.array([2, 0, 2, 1]), 4).tolist()
    [2, 0, 1]
    """
    first = np.full(limit, len(values))
    first[values[::-1]] = np.arange(len(values))[::-1]
    there = np.flatnonzero(first < len(values))
    return there[np.argsort(first[there])]


@dataclass(frozen=True)
class RunsKind(ModulesKind):
    """Joins each run of ``length`` groups, counted on from the encoder into the decoder.

    Groups left over at the end are in none. Its parts have no rule of their own.
    """

    length: int = 1

    def over(self, meshes: Mapping[str, Mesh]) -> Groups:
        """Returns the whole runs."""
        lists = super().over(meshes)
        bounds = lists.bounds[:: self.length]
        return Groups(lists.members[: bounds[-1]], bounds)

    def of(self, rank: int, meshes: Mapping[str, Mesh]) -> list[Sequence[int]]:
        """Returns the run that ``rank`` is in, made of its own lists alone."""
        counts = [part.shape(meshes[part.mesh])[0] for part in self.parts]
        place = self._place(rank, meshes, counts)
        first = place - place % self.length
        if first + self.length > sum(counts):
            return []
        # A run may begin among the encoder's lists and end among the decoder's, so each part gives
        # those of its rows that lie within it.
        run: list[int] = []
        before = 0
        for part, count in zip(self.parts, counts, strict=True):
            rows = range(max(first - before, 0), min(first + self.length - before, count))
            if rows:
                run += meshes[part.mesh].rows(rows, *part.axes).reshape(-1).tolist()
            before += count
        return [run]

    def numbers(self, rank: int, meshes: Mapping[str, Mesh]) -> list[int]:
        """Returns the number of the run that ``rank`` is in."""
        counts = [part.shape(meshes[part.mesh])[0] for part in self.parts]
        number = self._place(rank, meshes, counts) // self.length
        return [number] if number < sum(counts) // self.length else []

    def _place(self, rank: int, meshes: Mapping[str, Mesh], counts: list[int]) -> int:
        """Returns the place of the rank's list among those of all parts."""
        before = 0
        for part, count in zip(self.parts, counts, strict=True):
            if rank in meshes[part.mesh]:
                return before + meshes[part.mesh].row(rank, *part.axes)
            before += count
        raise AssertionError(f"rank {rank} is in no module")


def with_encoder(
    kinds: tuple[GroupKind, ...],
    meshes: dict[str, Mesh],
    encoder: Encoder,
    order: AxisOrder,
    version: str,
) -> tuple[dict[str, Mesh], tuple[GroupKind, ...]]:
    """Returns meshes and kinds with the encoder's window before the decoder's."""
    dp = meshes["dense"].sizes["dp"]
    meshes = meshes | {"encoder": encoder.mesh(order, dp)}
    in_turn = not at_least(version, "0.12")
    joined = [made for kind in kinds for made in _joined(kind, meshes, in_turn)]
    return meshes, tuple(joined)


def _joined(kind: GroupKind, meshes: Mapping[str, Mesh], in_turn: bool) -> list[GroupKind]:
    # Pipelines run through both modules: they are joined. A rank keeps every pipeline it is in, in
    # a list, but only the last of the groups made from them. All other kinds stay within a module.
    if kind.twin_of:
        return [kind]
    if kind.name == "mp" or kind.name in EMBEDDINGS:
        return [_join(kind, kind.name, in_turn, keeps_last=True)]
    if kind.name == "pp":
        counts = [kind.shape(meshes[name])[0] for name in ("encoder", "dense")]
        several = -(-counts[1] // counts[0]) if counts[1] > counts[0] else 0
        lists = [_join(kind, f"pp[{i}]", in_turn, place=i) for i in range(several)]
        return [*lists, _join(kind, "pp", in_turn)]
    encoders = replace(kind, mesh="encoder")
    if isinstance(kind.rule, JoinRuns):
        parts = (replace(encoders, rule=None), replace(kind, rule=None))
        return [RunsKind(kind.name, kind.axes, parts=parts, length=kind.rule.length)]
    return [
        ModulesKind(
            kind.name, kind.axes, kind.mesh, kind.rule, about=kind.about, parts=(encoders, kind)
        )
    ]


def _join(
    kind: GroupKind, name: str, in_turn: bool, *, place: int | None = None, keeps_last: bool = False
) -> JoinedKind:
    return JoinedKind(
        name,
        kind.axes,
        kind.mesh,
        kind.rule,
        about=kind.about,
        in_turn=in_turn,
        place=place,
        keeps_last=keeps_last,
    )
