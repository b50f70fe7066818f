"""The cases of all operators: CASES[name](draw) makes one. Families register theirs with @cases."""

import torch

CASES = {}

def cases(*names):
    """Registers a function Draw -> Case for these operators."""
    def register(function):
        for name in names:
            CASES[name] = function
        return function
    return register


def draw_case(rng, operators, name):
    if name in CASES:
        return CASES[name](Draw(rng, operators[name]))
    if forward_name(operators, name):
        return backward_case(rng, operators, name)
    return in_place(name, CASES[name[:-1]](Draw(rng, operators[name[:-1]])))


def has_case(operators, name):
    return name in CASES or (name.endswith("_") and name[:-1] in CASES) or forward_name(operators, name)


# --- forms in place: those that have no case of their own have the operator's -----------------------------------------

# PyTorch passes the gradient through although the result does not depend on the input; or has none (acosh_ and so on,
# comparisons in place of integers with floating numbers).
PASSES_GRADIENTS = ("acosh_", "asinh_", "atanh_", "eq_", "ne_", "lt_", "le_", "gt_", "ge_",
                    "logical_and_", "logical_or_", "logical_xor_", "logical_not_", "nextafter_")


def stored(x, result):
    """What Tensor.NAME_ does: the result in x's dtype."""
    if result.shape != x.shape or not torch.can_cast(result.dtype, x.dtype):
        raise RuntimeError(f"a result {list(result.shape)} of {result.dtype} does not fit into {x.dtype}")
    return x.clone().copy_(result)


def in_place(name, case):
    """The same case by Tensor.NAME_, or, where parameters would have to be translated, by storing the result."""
    method, function = getattr(torch.Tensor, name, None), case.function
    if name in PASSES_GRADIENTS:
        for x in case.inputs:
            x.wants_grad = False
    if method and not case.params:
        case.function = lambda x, *others: method(x.clone(), *others)
    else:
        case.function = lambda x, *others: stored(x, function(x, *others))
    return case


from draw import Draw  # noqa: E402
from backward import backward_case, forward_name  # noqa: E402
import index  # noqa: E402,F401
import elementwise  # noqa: E402,F401
import layers  # noqa: E402,F401
import linalg  # noqa: E402,F401
import pointwise  # noqa: E402,F401
import recurrent  # noqa: E402,F401
import losses  # noqa: E402,F401
import products  # noqa: E402,F401
import rows  # noqa: E402,F401
import shapes  # noqa: E402,F401
import sort  # noqa: E402,F401
import vision  # noqa: E402,F401
