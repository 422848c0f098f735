"""The two ways in which most ranks take turns: forwards with backwards, or with their halves.

warm-up   pairs, one forward and one backward   backwards that are left
F F F     F B  F B  F B  F B                    B B B
"""

from __future__ import annotations

from serried.pipeline.packed import Codes, alternate, chain


def one_each(forwards: Codes, backwards: Codes, *, warmup: int) -> Codes:
    """Returns ``warmup`` forwards, then pairs of one forward and one backward, then the rest.

    >>> import numpy as np
    >>> one_each(np.array([1, 2, 3]), np.array([-1, -2, -3]), warmup=1).tolist()
    [1, 2, -1, 3, -2, -3]
    """
    warmup = min(warmup, len(forwards))
    pairs = len(forwards) - warmup
    return chain(
        forwards[:warmup], alternate(forwards[warmup:], backwards[:pairs]), backwards[pairs:]
    )


def late_weights(
    forwards: Codes, inputs: Codes, weights: Codes, *, warmup: int, delay: int
) -> Codes:
    """Returns the same with input halves for backwards, and weight half k - delay after input k.

    What is left of the weight halves stands at the end.

    >>> import numpy as np
    >>> f, i, w = np.array([1, 2, 3]), np.array([-1, -2, -3]), np.array([-10, -20, -30])
    >>> late_weights(f, i, w, warmup=1, delay=1).tolist()
    [1, 2, -1, 3, -2, -10, -3, -20, -30]
    """
    count = len(forwards)
    pairs = count - min(warmup, count)
    late = min(delay, count)
    without, both = min(pairs, late), max(pairs, late)
    f, steady = forwards[count - pairs :], forwards[: count - pairs]
    return chain(
        steady,
        alternate(f[:without], inputs[:without]),
        alternate(f[without:], inputs[without:pairs], weights[: pairs - without]),
        inputs[pairs:both],
        alternate(inputs[both:], weights[both - late : count - late]),
        weights[count - late :],
    )
