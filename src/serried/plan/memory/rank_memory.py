"""The memory of one place in the pipeline at its fullest: items that sum to it, when, and the room.

parameters │ gradients │ optimizer │ activations │ … │ workspace │ reserved │ outside torch
└──────────────── torch's allocator: allocated ──────────────────┘          │
└──────────────────────────── reserved ─────────────────────────────────────┘
└──────────────────────────── what the device has in use ───────────────────────────────────┘
"""

from __future__ import annotations

from dataclasses import dataclass

OF_A_MOMENT = ("activations", "work of backward", "gathered weights", "fresh gradients")
"""Items that come and go within a step."""
OUTSIDE = ("fragments", "context")
"""Items that are not tensors: what lies between them, and what lies outside the allocator."""


@dataclass(frozen=True)
class MemoryItem:
    """Holds one thing that takes memory, and how much of it there is at the fullest moment."""

    name: str
    num_bytes: int


@dataclass(frozen=True)
class PlannedMemory:
    """Holds what each rank of one place in the pipeline has at most.

    >>> items = MemoryItem("parameters", 60), MemoryItem("kept", 30), MemoryItem("context", 5)
    >>> memory = PlannedMemory(0, (0,), 0, items, "0B0", 100, 0.1)
    >>> memory.total, memory.allocated, memory.fits, memory.room
    (95, 90, True, 5)
    """

    pp_rank: int
    stages: tuple[int, ...]
    first_rank: int
    """The first of the ranks that have it, where the pipeline is the outermost axis."""
    items: tuple[MemoryItem, ...]
    moment: str
    """The action at which most is held, or ``optimizer``."""
    card_bytes: int
    error: float
    """Nine of ten measured peaks lay within this part of the total and ``error_bytes``."""
    error_bytes: int = 0
    ended_bytes: int = 0
    """Messages and routed tokens that the allocator still has between two steps."""

    @property
    def total(self) -> int:
        """All that the device has in use at that moment."""
        return sum(each.num_bytes for each in self.items)

    @property
    def allocated(self) -> int:
        """What torch's allocator counts as allocated at most."""
        return sum(each.num_bytes for each in self.items if each.name not in OUTSIDE)

    @property
    def steady(self) -> int:
        """What torch's allocator has between two steps."""
        away = (*OF_A_MOMENT, *OUTSIDE)
        return self.ended_bytes + sum(
            each.num_bytes for each in self.items if each.name not in away
        )

    @property
    def reserved(self) -> int:
        """What torch's allocator has taken from the device."""
        return sum(each.num_bytes for each in self.items if each.name != "context")

    @property
    def room(self) -> int:
        """What the card has left; below 0 what it lacks."""
        return self.card_bytes - self.total

    @property
    def fits(self) -> bool:
        """Whether the card holds it."""
        return self.room >= 0

    @property
    def largest(self) -> tuple[MemoryItem, ...]:
        """The three largest items, the largest first."""
        return tuple(sorted(self.items, key=lambda each: -each.num_bytes)[:3])

    @property
    def interval(self) -> tuple[int, int]:
        """The least and the most of the total, where nine of ten measured peaks lay."""
        off = round(self.total * self.error) + self.error_bytes
        return max(0, self.total - off), self.total + off

    def bytes_of(self, name: str) -> int:
        """Returns the bytes of one item, 0 where there is none."""
        return sum(each.num_bytes for each in self.items if each.name == name)
