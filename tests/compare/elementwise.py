"""Elementwise operators with parameters, of numbers, in place; activations; logic and bits; special functions."""

import torch
import torch.nn.functional as F

from cases import cases
from draw import HALVES, Case, without_gradient_of_nan
from pointwise import number, torch_function


def named(d, x, function=None, tolerance=0, **params):
    """PyTorch's function with the same parameters."""
    function = function or torch_function(d.name)
    return Case([x], params, lambda t: function(t, **params), tolerance)


@cases("ceil", "floor", "trunc", "frac", "sgn", "signbit", "isnan", "isinf", "isfinite", "isposinf",
       "isneginf", "logical_not", "bitwise_not", "erfinv", "deg2rad", "rad2deg", "entr", "angle")
def plain(d):
    return Case([d.tensor(extremes=True)], function=torch_function(d.name))


@cases("mish", "softsign")
def with_slopes_at_infinity(d):
    """PyTorch's gradient of an infinity is NaN, from infinity times 0; here it is the slope there."""
    x = d.tensor()
    x.wants_grad = x.wants_grad and not x.base.isinf().any()
    return Case([x], function=torch_function(d.name))


@cases("selu")
def selu(d):
    return Case([without_gradient_of_nan(d.tensor())], function=F.selu)


@cases("erfcx", "i0", "i0e", "i1", "i1e", "ndtr", "log_ndtr", "sinc", "lgamma", "digamma")
def special(d):
    x = d.tensor(low=0.25 if d.name in ("lgamma", "digamma") else -3, special=False)
    # PyTorch's second derivative of sinc at 0 is 0 or NaN.
    return Case([x], function=torch_function(d.name), tolerance=1e-5, twice=d.name != "sinc" or bool(x.base.all()))


@cases("ndtri")
def quantile(d):
    return Case([d.floats(low=0.01, high=0.99, special=False)], function=torch.special.ndtri, tolerance=1e-5)


@cases("logit")
def logit(d):
    return named(d, d.floats(low=0.02, high=0.98, special=False), torch.logit, eps=d.one_of(0.1, 0.25), tolerance=1e-5)


@cases("polygamma")
def polygamma(d):
    n = d.integer(0, 3)
    return Case([d.tensor(low=0.5, special=False)], {"n": n}, lambda t: torch.polygamma(n, t), 1e-5)


@cases("elu", "celu")
def elu(d):
    return named(d, without_gradient_of_nan(d.floats()), alpha=d.one_of(0.5, 1.0, 2.0))


@cases("leaky_relu")
def leaky_relu(d):
    return named(d, d.floats(), negative_slope=d.one_of(0.01, 0.5, 2.0))


@cases("softplus")
def softplus(d):
    return named(d, d.floats(), beta=d.one_of(0.5, 1.0, 2.0), threshold=d.one_of(1.0, 20.0))


@cases("hardshrink", "softshrink")
def shrink(d):
    return named(d, without_gradient_of_nan(d.floats()), lambd=d.one_of(0.0, 0.5, 1.25))


@cases("gelu")
def gelu(d):
    return named(d, d.floats(special=False), approximate=d.one_of("none", "tanh"), tolerance=1e-6)


@cases("threshold")
def threshold(d):
    x = d.tensor()
    return named(d, x, F.threshold, threshold=d.integer(-2, 2), value=d.integer(-2, 2))


@cases("rrelu")
def rrelu(d):
    return named(d, d.floats(), F.rrelu, lower=0.25, upper=0.5)


@cases("prelu")
def prelu(d):
    x = d.floats(least=1)
    channels = x.shape[1] if x.ndim > 1 and d.chance(0.5) else 1
    # PyTorch's second gradient at 0 is that of positive numbers, its first that of negative ones.
    return Case([x, d.like(x, (channels,), special=False)], function=F.prelu, twice=bool(x.base.all()))


@cases("glu")
def glu(d):
    shape = d.shape(1)
    dim = d.integer(0, len(shape) - 1)
    x = d.floats(shape=shape[:dim] + (2 * shape[dim],) + shape[dim + 1:])
    return Case([x], {"dim": dim}, lambda t: F.glu(t, dim))


@cases("dropout1d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
def dropout(d):
    ndim = {"dropout1d": 3, "dropout3d": 5, "feature_alpha_dropout": 4}.get(d.name)
    x = d.floats(shape=d.shape(ndim, ndim) if ndim else None, special=False)
    p = d.one_of(0.0, 1.0)
    return Case([x], {"p": p, "training": True}, lambda t: getattr(F, d.name)(t, p, True))


@cases("stochastic_depth")
def stochastic_depth(d):
    """torchvision.ops.stochastic_depth where nothing is random: all samples are kept, or none."""
    x = d.floats(shape=d.shape(2), special=False)
    p = d.one_of(0.0, 1.0)
    return Case([x], {"p": p, "mode": d.one_of("batch", "row"), "training": True}, lambda t: t * (1 - p))


@cases("round")
def rounding(d):
    x = d.tensor()
    decimals = d.integer(-1, 2) if x.dtype in (torch.float32, torch.float64) else 0
    return Case([x], {"decimals": decimals}, lambda t: torch.round(t, decimals=decimals), 1e-6)


@cases("nan_to_num")
def nan_to_num(d):
    return named(d, d.tensor(), torch.nan_to_num, nan=2.0, posinf=7.0, neginf=-7.0)


# --- two operands ---

@cases("minimum", "fmax", "fmin", "copysign", "hypot", "atan2", "logaddexp", "logaddexp2", "logical_and", "logical_or",
       "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor")
def binary(d):
    a = d.tensor(special=False)
    b = d.tensor(d.broadcasting(a.shape), d.dtype_of(1) if d.chance(0.3) else a.dtype, special=False)
    if d.name == "atan2" and a.dtype != b.dtype:  # PyTorch squares and negates integers in their dtype
        a.wants_grad = b.wants_grad = False
    # PyTorch's second derivative of copysign at 0 is NaN.
    return Case([a, b], function=torch_function(d.name),
                twice=d.name != "copysign" or bool(a.base.all()))


@cases("nextafter", "heaviside")
def of_one_dtype(d):
    a = d.tensor(grad=False)
    return Case([a, d.like(a, d.broadcasting(a.shape), grad=False)], function=torch_function(d.name))


@cases("xlogy", "xlog1py", "float_power")
def of_positive(d):
    a = d.tensor(low=1, special=False)
    return Case([a, d.like(a, d.broadcasting(a.shape), low=1, special=False)], function=torch_function(d.name))


@cases("ldexp")
def ldexp(d):
    a = d.floats()
    return Case([a, d.like(a, d.broadcasting(a.shape), special=False)], function=torch.ldexp, tolerance=1e-5)


@cases("floor_divide", "remainder", "fmod")
def division(d):
    """PyTorch refuses a gradient of floor_divide; Koine's result has none."""
    a = d.tensor(special=False, grad=d.name != "floor_divide")
    b = d.like(a, d.broadcasting(a.shape), low=1, special=False, grad=False)
    return Case([a, b], function=getattr(torch, d.name))


@cases("div_mode")
def div_mode(d):
    a = d.tensor(special=False)
    b = d.like(a, d.broadcasting(a.shape), low=1, special=False)
    mode = d.one_of("none", "trunc", "floor")
    return Case([a, b], {"rounding_mode": mode},
                lambda x, y: torch.div(x, y, rounding_mode=None if mode == "none" else mode))


@cases("gcd", "lcm")
def divisors(d):
    a = d.tensor()
    return Case([a, d.like(a, d.broadcasting(a.shape))], function=getattr(torch, d.name))


@cases("bitwise_left_shift", "bitwise_right_shift")
def shift(d):
    a = d.tensor(low=0)
    return Case([a, d.like(a, d.broadcasting(a.shape), low=0)], function=getattr(torch, d.name))


@cases("isclose")
def isclose(d):
    """Of halves PyTorch rounds the tolerance, Koine does not: where a difference is as large, they disagree."""
    a = d.tensor(dtype=d.one_of(torch.float32, torch.float64) if d.dtype in HALVES else d.dtype)
    equal_nan = d.chance(0.5)
    return Case([a, d.like(a, d.broadcasting(a.shape))], {"rtol": 0.25, "atol": 0.5, "equal_nan": equal_nan},
                lambda x, y: torch.isclose(x, y, 0.25, 0.5, equal_nan))


@cases("lerp")
def lerp(d):
    a = d.floats(special=False)
    b, weight = d.like(a, d.broadcasting(a.shape), special=False), d.like(a, d.broadcasting(a.shape), special=False)
    return Case([a, b, weight], function=lambda x, y, w: torch.lerp(x, y, w), tolerance=1e-5)


@cases("lerp_scalar")
def lerp_scalar(d):
    a, weight = d.floats(special=False), d.one_of(0.0, 0.25, 0.75, 1.0)
    b = d.like(a, d.broadcasting(a.shape), special=False)
    return Case([a, b], {"weight": weight}, lambda x, y: torch.lerp(x, y, weight), 1e-5)


@cases("addcmul", "addcdiv")
def mixture(d):
    a, value = d.floats(special=False), d.one_of(0.5, 1.0, 2.0)
    b = d.like(a, d.broadcasting(a.shape), special=False)
    c = d.like(a, d.broadcasting(a.shape), low=0.5, special=False)
    function = getattr(torch, d.name)
    return Case([a, b, c], {"value": value}, lambda x, y, z: function(x, y, z, value=value), 1e-5)


# --- a tensor and a number ---

@cases("sub_scalar", "div_scalar", "eq_scalar", "ne_scalar", "lt_scalar", "le_scalar", "gt_scalar", "ge_scalar")
def with_number(d):
    x = d.tensor()
    value = number(d, x) if not x.dtype == torch.uint8 else d.integer(1, 3)
    value = value or 1
    function = getattr(torch, d.name.replace("_scalar", ""))
    return Case([x], {"value": value}, lambda t: function(t, value))


@cases("rsub_scalar", "rdiv_scalar")
def number_first(d):
    x = d.tensor(low=1, special=False)
    value = number(d, x)
    function = torch.rsub if d.name == "rsub_scalar" else lambda t, v: v / t
    return Case([x], {"value": value}, lambda t: function(t, value))


@cases("rpow_scalar")
def power(d):
    x = d.tensor(low=0, special=False)
    value = d.integer(1, 3)
    return Case([x], {"value": value}, lambda t: torch.pow(value, t), 1e-5)


@cases("floor_divide_scalar", "remainder_scalar", "fmod_scalar", "bitwise_and_scalar", "bitwise_or_scalar",
       "bitwise_xor_scalar", "bitwise_left_shift_scalar", "bitwise_right_shift_scalar")
def whole_number(d):
    x = d.tensor(special=False, grad=d.name != "floor_divide_scalar")
    value = d.integer(1, 3)
    function = getattr(torch, d.name.replace("_scalar", ""))
    return Case([x], {"value": value}, lambda t: function(t, value))


@cases("igamma", "igammac")
def igamma(d):
    a = d.tensor(dtype=d.one_of(torch.float32, torch.float64), low=0.25, high=12, special=False, grad=False)
    return Case([a, d.like(a, d.broadcasting(a.shape), low=0.25, high=12, special=False)],
                function=torch_function(d.name), tolerance=1e-5)


@cases("mvlgamma")
def mvlgamma(d):
    p = d.integer(1, 3)
    return Case([d.tensor(low=2, high=5, special=False)], {"p": p}, lambda t: torch.mvlgamma(t, p), 1e-5)


@cases("frexp")
def frexp(d):
    return Case([d.floats()], function=lambda t: torch.frexp(t)[0])
