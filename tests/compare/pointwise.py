"""Elementwise operators."""

import torch
import torch.nn.functional as F

from cases import cases
from draw import Case, without_gradient_of_nan


# Those that some operators apply to their results.
ACTIVATIONS = {"none": lambda t: t, "relu": F.relu, "relu6": F.relu6}


def torch_function(name):
    """PyTorch's function of that name."""
    for module in (torch, F, torch.special):
        if hasattr(module, name):
            return getattr(module, name)
    return getattr(torch.Tensor, name)


@cases("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1",
       "hardsigmoid", "log", "log10", "log1p", "log2", "logsigmoid", "neg", "reciprocal", "relu",
       "rsqrt", "sigmoid", "sign", "silu", "sin", "sinh", "sqrt", "square", "tan", "tanh", "tanhshrink")
def unary(d):
    x = d.tensor(extremes=True)
    # PyTorch's derivative of hardsigmoid multiplies by 1 / 6 in float32; the second ones of erf and erfc are 0
    # times 2 x, which is NaN where that overflows.
    return Case([x], function=torch_function(d.name), tolerance=1e-7 if d.name == "hardsigmoid" else 0,
                twice=d.name not in ("erf", "erfc") or not (2 * x.base).isinf().any())


@cases("hardswish", "relu6")
def bounded(d):
    return Case([without_gradient_of_nan(d.tensor())], function=torch_function(d.name))


@cases("add", "sub", "mul", "div", "maximum", "eq", "ne", "lt", "le", "gt", "ge")
def binary(d):
    a = d.tensor(extremes=True)
    return Case([a, d.tensor(d.broadcasting(a.shape), d.dtype_of(1), extremes=True)], function=torch_function(d.name))


@cases("pow")
def power(d):
    a = d.tensor(low=0.25, high=2, special=False)
    return Case([a, d.like(a, d.broadcasting(a.shape), low=0, special=False)], function=torch.pow)


def number(d, x):
    return d.integer(0, 3) if not x.dtype.is_floating_point or d.chance(0.3) else round(d.rng.uniform(-2, 2), 3)


@cases("add_scalar", "mul_scalar")
def with_number(d):
    x = d.tensor(extremes=True)
    value = number(d, x)
    function = torch_function(d.name.replace("_scalar", ""))
    return Case([x], {"value": value}, lambda t: function(t, value))


@cases("pow_scalar")
def power_of_number(d):
    x = d.tensor(low=0.25, high=2, special=False)
    value = d.one_of(0, 1, 2, 3) if not x.dtype.is_floating_point else d.one_of(-1, 0, 0.5, 1, 2, 2.5, 3)
    return Case([x], {"exponent": value}, lambda t: torch.pow(t, value))


@cases("fill_")
def fill(d):
    x = d.tensor()
    value = number(d, x)
    return Case([x], {"value": value}, lambda t: t.clone().fill_(value))


@cases("clamp")
def clamp(d):
    x = d.tensor(extremes=True)
    bounds = {"min": d.integer(-2, 1), "max": d.integer(-1, 2)}
    if d.chance(0.4):
        del bounds[d.one_of("min", "max")]
    return Case([x], bounds, lambda t: torch.clamp(t, **bounds))


@cases("hardtanh")
def hardtanh(d):
    x = without_gradient_of_nan(d.floats())
    low, high = d.integer(-2, 0), d.integer(0, 2)
    return Case([x], {"min_val": low, "max_val": high}, lambda t: F.hardtanh(t, low, high))


@cases("where")
def where(d):
    shape = d.shape()
    a = d.tensor(d.broadcasting(shape), d.dtype_of(1))
    b = d.tensor(shape, d.dtype_of(2))
    return Case([d.conditions(d.broadcasting(shape)), a, b], function=torch.where)


@cases("dropout", "dropout2d")
def dropout(d):
    x = d.floats(shape=d.shape(4, 4) if d.name == "dropout2d" else None)
    p = d.one_of(0.0, 1.0)
    return Case([x], {"p": p}, lambda t: getattr(F, d.name)(t, p, True))


@cases("to_dtype")
def to_dtype(d):
    x = d.tensor(special=False, low=0)
    dtype = d.one_of(*[t for t in d.operator.dtypes(0)])
    return Case([x], {"dtype": dtype}, lambda t: t.to(dtype))


@cases("add_activated")
def add_activated(d):
    a, activation = without_gradient_of_nan(d.floats()), d.one_of(*ACTIVATIONS)
    b = without_gradient_of_nan(d.like(a, d.broadcasting(a.shape)))
    a.wants_grad = a.wants_grad and not b.base.isnan().any()
    b.wants_grad = b.wants_grad and not a.base.isnan().any()
    return Case([a, b], {"activation": activation}, lambda x, y: ACTIVATIONS[activation](x + y))


@cases("clone", "contiguous")
def clone(d):
    return Case([d.tensor()], function=torch.clone)
