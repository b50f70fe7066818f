"""Sorting, selecting, searching and counting; conditions, counts and cumulative operators. Where elements are equal,
PyTorch's choice among them is its own: then only values are compared."""

import math

import torch

from cases import cases
from draw import Case


def size(x, dim):
    return x.shape[dim] if x.ndim else 1


@cases("sort")
def sort(d):
    x = d.tensor()
    dim, descending = d.any_dim(x), d.chance(0.5)
    return Case([x], {"dim": dim, "descending": descending},
                lambda t: torch.sort(t, dim=dim, descending=descending, stable=True))


@cases("argsort")
def argsort(d):
    x = d.tensor(grad=False)
    dim, descending = d.any_dim(x), d.chance(0.5)
    return Case([x], {"dim": dim, "descending": descending},
                lambda t: torch.argsort(t, dim=dim, descending=descending, stable=True))


@cases("topk")
def topk(d):
    x = d.floats(grad=False)
    dim, largest = d.dim(x), d.chance(0.5)
    k = d.integer(0 if x.ndim else 1, size(x, dim))
    return Case([x], {"k": k, "dim": dim, "largest": largest}, lambda t: torch.topk(t, k, dim, largest).values)


@cases("kthvalue")
def kthvalue(d):
    x = d.floats(grad=False, shape=d.shape(1) + (d.integer(1, 9),))
    dim, keepdim = -1, d.chance(0.5)
    k = d.integer(1, size(x, dim))
    return Case([x], {"k": k, "dim": dim, "keepdim": keepdim}, lambda t: torch.kthvalue(t, k, dim, keepdim).values)


@cases("median_dim", "nanmedian_dim", "mode")
def one_of_each_row(d):
    # PyTorch's medians of rows that are expanded, with strides of 0, are wrong.
    x = d.floats(grad=False, special=d.name != "mode", shape=d.shape(0, 3) + (d.integer(1, 9),), layout="distinct")
    function, keepdim = getattr(torch, d.name.replace("_dim", "")), d.chance(0.5)
    return Case([x], {"dim": -1, "keepdim": keepdim}, lambda t: function(t, -1, keepdim).values)


@cases("median", "nanmedian")
def of_all(d):
    return Case([d.floats(layout="distinct")], function=getattr(torch, d.name))


@cases("quantile", "nanquantile")
def quantiles(d):
    """Without ties: which of equal elements has the gradient is arbitrary in PyTorch."""
    x = d.floats(special=False, ties=False, shape=d.shape(0, 3) + (d.integer(1, 9),))
    q = d.like(x, special=False, low=0, high=1, shape=d.one_of((), (1,), (3,)), layout=False,
                 grad=False)
    keepdim, how = d.chance(0.5), d.one_of("linear", "lower", "higher", "midpoint")
    function = getattr(torch, d.name)
    return Case([x, q], {"dim": (-1,), "keepdim": keepdim, "interpolation": how},
                lambda t, q: function(t, q, -1, keepdim, interpolation=how))


@cases("unique", "unique_consecutive")
def distinct(d):
    x = d.tensor(special=False, grad=False)
    function = getattr(torch, d.name)
    return Case([x], function=lambda t: function(t, return_inverse=True, return_counts=True))


@cases("searchsorted")
def searchsorted(d):
    n, right = d.integer(1, 9), d.chance(0.5)
    values = d.tensor(grad=False, special=False)
    edges = d.like(values, (n,), grad=False, special=False, layout=False)
    edges.base = torch.sort(edges.base).values
    return Case([edges, values], {"right": right}, lambda s, v: torch.searchsorted(s, v, right=right))


@cases("bucketize")
def bucketize(d):
    n, right = d.integer(1, 9), d.chance(0.5)
    values = d.tensor(grad=False, special=False)
    edges = d.like(values, (n,), grad=False, special=False, layout=False)
    edges.base = torch.sort(edges.base).values
    return Case([values, edges], {"right": right}, lambda v, s: torch.bucketize(v, s, right=right))


@cases("isin")
def isin(d):
    x, invert = d.tensor(grad=False), d.chance(0.5)
    tests = d.like(x, (d.integer(0, 9),), grad=False)
    whole = x.dtype == torch.bool  # which torch.isin refuses
    return Case([x, tests], {"invert": invert},
                lambda a, b: torch.isin(a.byte() if whole else a, b.byte() if whole else b, invert=invert))


@cases("bincount")
def bincount(d):
    x = d.indices(9, (d.integer(0, 60),))
    least = d.integer(0, 12)
    return Case([x], {"minlength": least}, lambda t: torch.bincount(t, minlength=least))


@cases("histc")
def histc(d):
    x, bins = d.floats(special=False, grad=False), d.integer(1, 20)
    low, high = d.one_of((0, 0), (-2, 2), (0.25, 3))
    return Case([x], {"bins": bins, "min": low, "max": high}, lambda t: torch.histc(t, bins, low, high))


@cases("any", "all", "count_nonzero", "nansum", "nanmean")
def over_dims(d):
    x = d.floats() if d.name == "nanmean" else d.tensor()
    dims = d.dims(x)
    if d.name == "nanmean":  # of a row without numbers PyTorch's gradient is infinity times 0
        x.wants_grad = x.wants_grad and not x.view().double().nanmean(dims or None).isnan().any()
    function, every = getattr(torch, d.name), dims or tuple(range(x.ndim))
    if d.name == "count_nonzero":
        return Case([x], {"dims": dims}, lambda t: function(t, every) if every else function(t))
    keepdim = d.chance(0.5)
    if d.name in ("any", "all") and not every:
        return Case([x], {"dims": dims, "keepdim": keepdim}, function)
    return Case([x], {"dims": dims, "keepdim": keepdim}, lambda t: function(t, every, keepdim=keepdim))


@cases("cummax", "cummin")
def running_extreme(d):
    x = d.tensor()
    dim = d.any_dim(x)
    return Case([x], {"dim": dim}, lambda t: getattr(torch, d.name)(t, dim))


def overflows(x, dim):
    """Do some neighbours have a product whose square is no number of the dtype? Second gradients multiply two."""
    logarithms = x.view().double().abs().clamp(min=1e-9).log().cumsum(dim)
    largest = torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).max
    return logarithms.numel() > 0 and \
        bool((logarithms.amax(dim) - logarithms.amin(dim)).max() > math.log(largest) / 2 - 5)


@cases("cumprod", "logcumsumexp")
def running(d):
    x = d.floats(special=False)
    dim = d.any_dim(x)
    # PyTorch multiplies float32 in float64, where a product that overflows may become small again.
    while d.name == "cumprod" and -x.ndim <= dim < x.ndim and overflows(x, dim):
        x.base.div_(2).add_(0.5)
    return Case([x], {"dim": dim}, lambda t: getattr(torch, d.name)(t, dim))
