"""Reductions, scans and everything else along dimensions."""

import torch
import torch.nn.functional as F

from cases import cases
from draw import Case, without_gradient_of_nan


@cases("sum", "mean", "amax", "amin", "logsumexp")
def over_dims(d):
    x = d.tensor() if d.name in ("sum", "amax", "amin") else d.floats()
    if d.name in ("amax", "amin"):
        # PyTorch's gradient is NaN (0 / 0) there; that of its max goes to the NaN, as Koine's
        x = without_gradient_of_nan(x)
    dims, keepdim = d.dims(x), d.chance(0.5)
    if d.name == "logsumexp":  # of a row of minus infinities PyTorch's gradient is NaN, their difference; Koine's is 0
        result = torch.logsumexp(x.view().double(), dims or tuple(range(x.ndim)))
        x.wants_grad = x.wants_grad and not (result == -torch.inf).any()
    functions = {"logsumexp": lambda t: torch.logsumexp(t, dims or tuple(range(t.ndim)), keepdim)}
    function = getattr(torch, d.name)
    return Case([x], {"dims": dims, "keepdim": keepdim},
                functions.get(d.name, lambda t: function(t, dims or tuple(range(t.ndim)), keepdim=keepdim)))


@cases("max", "min")
def extreme_of_all(d):
    return Case([d.tensor()], function=getattr(torch, d.name))


@cases("prod")
def product(d):
    x = d.tensor(low=0.5, high=1.5, special=False, most=2)
    if d.chance(0.5) or x.ndim == 0:
        return Case([x], {"keepdim": False}, torch.prod)
    dim, keepdim = d.dim(x), d.chance(0.5)
    return Case([x], {"dims": (dim,), "keepdim": keepdim}, lambda t: torch.prod(t, dim, keepdim))


@cases("var", "std")
def spread(d):
    x = d.floats(special=False)
    dims, keepdim, correction = d.dims(x), d.chance(0.5), d.one_of(0, 1)
    function = getattr(torch, d.name)
    # Of one element with a correction PyTorch's gradient, infinity or NaN, is a constant; its second one of std, NaN
    # where std is 0.
    count = torch.Size(x.shape[i] for i in dims or range(x.ndim)).numel()
    count = 0 if d.name == "std" and (x.view().double().std(dims or None, correction=0) == 0).any() else count
    return Case([x], {"dims": dims, "keepdim": keepdim, "correction": correction},
                lambda t: function(t, dims or None, correction=correction, keepdim=keepdim), twice=count > correction)


@cases("norm")
def vector_norm(d):
    x = d.floats(special=False)
    dims, keepdim, p = d.dims(x), d.chance(0.5), d.one_of(0, 1, 2, 3, float("inf"), float("-inf"))
    return Case([x], {"dims": dims, "keepdim": keepdim, "p": p},
                lambda t: torch.linalg.vector_norm(t, p, dims or None, keepdim))


@cases("max_dim", "min_dim", "argmax", "argmin")
def along_one(d):
    x = d.tensor()
    dim, keepdim = d.any_dim(x), d.chance(0.5)
    function = getattr(torch, d.name.replace("_dim", ""))
    return Case([x], {"dim": dim, "keepdim": keepdim}, lambda t: function(t, dim, keepdim))


@cases("cumsum")
def scan(d):
    x = d.tensor(special=False)
    dim = d.any_dim(x)
    return Case([x], {"dim": dim}, lambda t: getattr(torch, d.name)(t, dim))


@cases("softmax", "log_softmax")
def softmax(d):
    x = d.floats()
    dim = d.any_dim(x)
    return Case([x], {"dim": dim}, lambda t: getattr(F, d.name)(t, dim))


@cases("gumbel_softmax")
def gumbel_softmax(d):
    """Where nothing is random: one logit of each row is far above the others."""
    x = d.floats(least=1, low=-1, high=1, special=False, layout=False)
    dim, hard, tau = d.dim(x), d.chance(0.5), d.one_of(0.5, 1.0, 2.0)
    if 0 not in x.shape:
        rows = x.base[x.offset:x.offset + torch.Size(x.shape).numel()].view(x.shape)
        places = torch.randint(0, x.shape[dim], x.shape, generator=d.generator).narrow(dim, 0, 1)
        rows.scatter_add_(dim, places, torch.full(places.shape, 1000.0, dtype=x.dtype))
    return Case([x], {"dim": dim, "hard": hard, "tau": tau}, lambda t: F.gumbel_softmax(t, tau, hard, dim=dim))


def steepness(x, dims):
    """The largest derivative of (x - mean) / sqrt(variance + 1e-5), times a weight of up to 3: that of equal elements,
    whose gradient is 0, multiplies its rounding by 949."""
    variance = x.view().double().var(dims, correction=0) if 0 not in x.shape else torch.ones(1)
    return 3 / (variance.min().item() + 1e-5) ** 0.5


@cases("layer_norm")
def layer_norm(d):
    x = d.floats(least=1, special=False, layout="distinct")
    shape = x.shape[d.integer(0, x.ndim - 1):]
    weight = d.like(x, shape, special=False) if d.chance(0.7) else None
    bias = d.like(x, shape, special=False) if weight and d.chance(0.7) else None
    return Case([x, weight, bias], {"shape": shape}, lambda t, w, b: F.layer_norm(t, shape, w, b),
                scale=steepness(x, tuple(range(-len(shape), 0))))


@cases("batch_norm")
def batch_norm(d):
    """Trained, PyTorch's kernel fails without channels, and of an input in channels-last order with a dimension of
    size 1 its gradient is wrong; evaluated, it ignores the weight's strides."""
    training, shape = d.chance(0.5), d.shape(2, 5)
    x = d.floats(shape=(shape[0], max(shape[1], 1)) + shape[2:], special=False, layout="distinct")
    channels = (x.shape[1],)
    mean = d.like(x, channels, grad=False, special=False, layout=False)
    var = d.like(x, channels, low=0.5, high=2, grad=False, special=False, layout=False)
    weight = d.like(x, channels, special=False) if d.chance(0.7) else None
    bias = d.like(x, channels, special=False) if weight and d.chance(0.7) else None
    return Case([x, weight, bias, mean, var], {"training": training},
                lambda t, w, b, m, v: F.batch_norm(t.contiguous(), m.clone(), v.clone(),
                                                   w.contiguous() if w is not None else w, b, training),
                scale=steepness(x, [0] + list(range(2, x.ndim))) if training else 1)


@cases("cov")
def cov(d):
    n = d.integer(2, 8)
    x = d.tensor((d.integer(1, 4), n), d.floating(), special=False)
    counts = d.tensor((n,), torch.int64, low=1, high=4) if d.chance(0.5) else None
    weights = d.like(x, (n,), low=0.5, special=False, grad=False) if d.chance(0.5) else None
    return Case([x, counts, weights], {"correction": 0.0},
                lambda t, f, a: torch.cov(t, correction=0, fweights=f, aweights=a), 1e-5)


@cases("corrcoef")
def corrcoef(d):
    x = d.tensor((d.integer(2, 4), d.integer(3, 8)), d.floating(), special=False, ties=False, layout=False)
    return Case([x], function=torch.corrcoef, tolerance=1e-4)


@cases("cdist")
def cdist(d):
    m, p = d.integer(1, 5), d.one_of(0.0, 0.5, 1.0, 2.0, 3.0, float("inf"))
    # Of equal differences, each has the whole gradient of the largest one in PyTorch.
    distinct = {"special": False, "ties": False, "layout": "distinct"}
    a = d.tensor(d.shape(0, 2) + (d.integer(1, 5), m), d.floating(), **distinct)
    b = d.like(a, (d.integer(1, 5), m), **distinct)
    return Case([a, b], {"p": p}, lambda x, y: torch.cdist(x, y, p), 1e-5)


@cases("pdist")
def pdist(d):
    p = d.one_of(0.0, 0.5, 1.0, 2.0, 3.0, float("inf"))
    x = d.tensor((d.integer(2, 6), d.integer(1, 5)), d.floating(), special=False, ties=False, layout=False)
    return Case([x], {"p": p}, lambda t: torch.nn.functional.pdist(t, p), 1e-5)


@cases("gradient")
def gradient(d):
    x = d.floats(shape=d.shape(0, 2) + (d.integer(3, 6), d.integer(3, 6)), special=False)
    dim, edge_order, spacing = d.dim(x), d.integer(1, 2), d.one_of(0.5, 1.0, 2.0)
    places = None
    if d.chance(0.5):
        places = d.like(x, (x.shape[dim],), low=1, high=2, special=False, grad=False, layout=False)
        places.base.copy_(places.base.cumsum(0))

    def function(t, p):
        at = spacing if p is None else (p.to(t.dtype),)
        return torch.gradient(t, spacing=at, dim=dim, edge_order=edge_order)[0]
    return Case([x, places], {"dim": dim, "edge_order": edge_order, "spacing": spacing}, function, 1e-2)


@cases("combinations")
def combinations(d):
    r, with_replacement = d.integer(0, 3), d.chance(0.5)
    return Case([d.tensor((d.integer(0, 6),))], {"r": r, "with_replacement": with_replacement},
                lambda t: torch.combinations(t, r, with_replacement))
