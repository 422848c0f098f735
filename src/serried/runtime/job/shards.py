"""Which places of a sequence each context parallel rank holds, and which sizes can be cut so.

    contiguous, cp 4    place  | 0     | 1     | 2     | 3     |   one piece a rank
                        rank   | 0     | 1     | 2     | 3     |

    zig-zag, cp 4       place  | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |   two pieces a rank
                        rank   | 0 | 1 | 2 | 3 | 3 | 2 | 1 | 0 |

Under a causal mask a piece costs as much as there is before it, so the last of contiguous ranks
would do almost everything; in zig-zag an early piece goes with a late one and all cost the same.
Ulysses has whole sequences when it computes, and the ring in two passes computes every score,
masked or not: both are balanced as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from serried.errors import InputError, listed
from serried.frameworks.framework import divisors

FORMS = ("ring", "ring-two-pass", "ulysses", "all-gather")
"""Ways to attend over a sequence that lies in shards on several ranks."""

ZIG_ZAG = ("ring", "all-gather")
"""Forms whose ranks hold an early and a late piece each."""


@dataclass(frozen=True)
class ContextSizes:
    """Sizes of one attention over ``cp`` ranks; ``kv_heads`` are shared by groups of heads.

    Raises InputError for sizes that ``form`` cannot cut evenly, with sizes that it can.
    """

    form: str
    cp: int
    seq_len: int
    heads: int
    kv_heads: int

    def __post_init__(self) -> None:
        require_form(self.form)
        pieces = self.cp * pieces_per_rank(self.form, self.cp)
        if self.seq_len % pieces:
            least = math.ceil(self.seq_len / pieces)
            raise InputError(
                "{form} over cp={cp} cuts a sequence into {pieces} equal pieces, which {seq_len} "
                "cannot be cut into; lengths that can: {fits}",
                form=self.form,
                cp=self.cp,
                pieces=pieces,
                seq_len=self.seq_len,
                fits=listed(pieces * n for n in range(least, least + 4)) + ", …",
            )
        shared = math.gcd(self.heads, self.kv_heads)
        if self.form == "ulysses" and shared % self.cp:
            raise InputError(
                "ulysses gives each of cp={cp} ranks whole heads, and {cp} does not divide {heads} "
                "heads and {kv_heads} KV heads; sizes that do: {fits}; other forms take any: "
                "{others}",
                cp=self.cp,
                heads=self.heads,
                kv_heads=self.kv_heads,
                fits=listed(divisors(shared)),
                others=listed(form for form in FORMS if form != "ulysses"),
            )


def require_form(form: str) -> None:
    """Raises InputError for a form that is not."""
    if form not in FORMS:
        raise InputError(
            "there is no context parallel form '{form}'; there are {forms}",
            form=form,
            forms=listed(FORMS),
        )


def pieces_per_rank(form: str, cp: int) -> int:
    """Returns how many pieces of the sequence a rank holds."""
    return 2 if form in ZIG_ZAG and cp > 1 else 1


def places(form: str, *, seq_len: int, rank: int, cp: int) -> tuple[range, ...]:
    """Returns the pieces of a sequence that ``rank`` of ``cp`` ranks holds, in order.

    >>> [places("ring", seq_len=16, rank=rank, cp=2) for rank in (0, 1)]
    [(range(0, 4), range(12, 16)), (range(4, 8), range(8, 12))]
    >>> [places("ulysses", seq_len=16, rank=rank, cp=2) for rank in (0, 1)]
    [(range(0, 8),), (range(8, 16),)]
    """
    numbers = (rank, 2 * cp - 1 - rank) if pieces_per_rank(form, cp) == 2 else (rank,)
    size = seq_len // (cp * len(numbers))
    return tuple(range(number * size, (number + 1) * size) for number in numbers)
