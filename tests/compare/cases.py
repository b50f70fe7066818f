"""The cases of all operators: CASES[name](draw) makes one. Families register theirs with @cases."""

CASES = {}

# Operators without a case, and why.
UNLIKE = {
    "add_activated": "PyTorch has no such function; add and relu are compared",
    "contiguous": "a copy",
    "gumbel_softmax": "random numbers",
}


def cases(*names):
    """Registers a function Draw -> Case for these operators."""
    def register(function):
        for name in names:
            CASES[name] = function
        return function
    return register


def draw_case(rng, operator):
    from draw import Draw
    return CASES[operator.name](Draw(rng, operator))


import index  # noqa: E402,F401
import elementwise  # noqa: E402,F401
import layers  # noqa: E402,F401
import linalg  # noqa: E402,F401
import pointwise  # noqa: E402,F401
import recurrent  # noqa: E402,F401
import losses  # noqa: E402,F401
import pointwise  # noqa: E402,F401
import products  # noqa: E402,F401
import rows  # noqa: E402,F401
import shapes  # noqa: E402,F401
import vision  # noqa: E402,F401
