"""Gathers and scatters by index, masks, embedding."""

import torch

from cases import cases
from draw import Case

INDEX_TYPES = (torch.int64, torch.int64, torch.int32)


def smaller(d, shape, dim):
    """A shape that is no larger than `shape` except along `dim`."""
    return tuple(d.integer(0, 6) if i == dim % len(shape) else d.integer(1 if n else 0, n) for i, n in enumerate(shape))


def table(d, least=1, most=4):
    """x and a dimension along which it is not empty, if possible."""
    x = d.tensor(least=least, most=most)
    return x, d.dim(x)


def index_along(d, x, dim):
    shape = smaller(d, x.shape, dim)
    count = x.shape[dim]
    shape = shape if count else tuple(0 if i == dim % x.ndim else n for i, n in enumerate(shape))
    return d.indices(count, shape)


def unique_along(d, x, dim):
    """An index without repetition, for values that are written: which of several stays is not defined in PyTorch."""
    shape = list(smaller(d, x.shape, dim))
    at = dim % x.ndim
    shape[at] = min(shape[at], x.shape[at])
    count = torch.Size(shape[:at] + shape[at + 1:]).numel()
    rows = [torch.randperm(x.shape[at], generator=d.generator)[:shape[at]] for _ in range(count)]
    values = torch.stack(rows) if rows else torch.zeros(0, shape[at], dtype=torch.int64)
    values = values.reshape(shape[:at] + shape[at + 1:] + [shape[at]]).movedim(-1, at).contiguous()
    index = d.tensor(tuple(shape), torch.int64, low=0, high=1, grad=False, layout=False)
    index.base[index.offset:index.offset + values.numel()] = values.reshape(-1)
    return index


def unique_row(d, count, dtype=torch.int64):
    values = torch.randperm(count, generator=d.generator)[:d.integer(0, count)]
    index = d.tensor((len(values),), dtype, low=0, high=1, grad=False, layout=False)
    index.base[:len(values)] = values.to(dtype)
    return index


def wide(i):
    return i.long()


@cases("gather")
def gather(d):
    x, dim = table(d)
    index = index_along(d, x, dim)
    return Case([x, index], {"dim": dim}, lambda t, i: torch.gather(t, dim, wide(i)))


@cases("take")
def take(d):
    x = d.tensor()
    count = torch.Size(x.shape).numel()
    index = d.indices(count, d.shape(most=3) if count else (0,), negative=True)
    return Case([x, index], function=lambda t, i: torch.take(t, i))


def indices_of(d, x):
    """Indices of some dimensions of x, which broadcast."""
    dims = sorted(d.rng.sample(range(x.ndim), d.integer(1, min(x.ndim, 3))))
    shape = d.shape(most=2)
    if any(x.shape[dim] == 0 for dim in dims):
        shape = (0,) + shape[1:]
    return dims, [d.indices(x.shape[dim], d.broadcasting(shape) if 0 not in shape else shape, d.one_of(*INDEX_TYPES),
                            negative=True) for dim in dims]


def positions(x, dims, indices):
    return tuple(wide(indices[dims.index(i)]) if i in dims else slice(None) for i in range(x.ndim))


@cases("index")
def index(d):
    x = d.tensor(least=1)
    if d.chance(0.3):
        start = d.integer(0, x.ndim - 1)
        mask = d.conditions(x.shape[start:d.integer(start + 1, x.ndim)])
        return Case([x, mask], {"dims": (start,)}, lambda t, m: t[(slice(None),) * start + (m,)])
    dims, indices = indices_of(d, x)

    def function(t, *i):  # t[...] takes a tensor without dimensions for a number
        return torch.ops.aten.index(t, [wide(i[dims.index(k)]) if k in dims else None for k in range(t.ndim)])
    return Case([x] + indices, {"dims": tuple(dims)}, function)


def accumulated(d, values):
    """Are the values added? Those of bool are not: then they are equal,
    because which of several stays is not defined."""
    if values.dtype != torch.bool:
        return True
    values.base.fill_(d.chance(0.5))
    return False


@cases("index_put", "index_put_")
def index_put(d):
    x = d.tensor(least=1, layout="distinct")
    dims, indices = indices_of(d, x)
    result = torch.empty(x.shape)[positions(torch.empty(x.shape), dims, [i.view() for i in indices])]
    values = d.like(x, d.broadcasting(result.shape))
    accumulate = accumulated(d, values)

    def function(t, v, *i):
        places = [wide(i[dims.index(k)]) if k in dims else None for k in range(t.ndim)]
        return torch.ops.aten.index_put(t, places, v, accumulate)
    return Case([x, values] + indices, {"dims": tuple(dims), "accumulate": accumulate}, function)


@cases("scatter", "scatter_")
def scatter(d):
    x = d.tensor(least=1, layout="distinct")
    dim = d.dim(x)
    index = unique_along(d, x, dim)
    if d.chance(0.3):
        return Case([x, index], {"dim": dim, "value": 1}, lambda t, i: t.scatter(dim, i, 1))
    src = d.like(x, index.shape)
    return Case([x, index, src], {"dim": dim}, lambda t, i, s: t.scatter(dim, i, s))


def in_full(index):
    """PyTorch 2.15 adds to and reduces into wrong places where an index is expanded
    and the source the smaller tensor."""
    return wide(index).clone(memory_format=torch.contiguous_format)


@cases("scatter_add", "scatter_add_")
def scatter_add(d):
    x = d.tensor(least=1, special=False, layout="distinct")
    dim = d.dim(x)
    index = index_along(d, x, dim)
    src = d.like(x, index.shape, special=False)
    return Case([x, index, src], {"dim": dim}, lambda t, i, s: t.scatter_add(dim, in_full(i), s))


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def reducible(d):
    return d.tensor(least=1, special=False) if d.dtype != torch.bool else d.tensor(least=1, dtype=torch.int32)


@cases("scatter_reduce")
def scatter_reduce(d):
    x = reducible(d)
    dim, reduce, own = d.dim(x), d.one_of(*REDUCTIONS), d.chance(0.5)
    index = index_along(d, x, dim)
    src = d.like(x, index.shape, special=False)
    return Case([x, index, src], {"dim": dim, "reduce": reduce, "include_self": own},
                lambda t, i, s: t.scatter_reduce(dim, in_full(i), s, reduce, include_self=own))


def selection(d, x, dim, unique=False):
    index = unique_row(d, x.shape[dim]) if unique else d.indices(
        x.shape[dim], (d.integer(0, 6) if x.shape[dim] else 0,), d.one_of(*INDEX_TYPES))
    shape = tuple(index.shape[0] if i == dim % x.ndim else n for i, n in enumerate(x.shape))
    return index, d.like(x, shape, special=False)


@cases("index_reduce")
def index_reduce(d):
    x = reducible(d)
    dim, reduce, own = d.dim(x), d.one_of(*REDUCTIONS[1:]), d.chance(0.5)
    index, source = selection(d, x, dim)
    return Case([x, index, source], {"dim": dim, "reduce": reduce, "include_self": own},
                lambda t, i, s: t.index_reduce(dim, wide(i), s, reduce, include_self=own))


@cases("index_add", "index_add_")
def index_add(d):
    x = d.tensor(least=1, special=False, layout="distinct")
    dim, alpha = d.dim(x), 1 if d.dtype == torch.bool else d.one_of(1, 1, 2, -3)
    index, source = selection(d, x, dim)
    return Case([x, index, source], {"dim": dim, "alpha": float(alpha)},
                lambda t, i, s: t.index_add(dim, wide(i), s, alpha=alpha))


@cases("index_copy", "index_copy_")
def index_copy(d):
    x = d.tensor(least=1, layout="distinct")
    dim = d.dim(x)
    index, source = selection(d, x, dim, unique=True)
    return Case([x, index, source], {"dim": dim}, lambda t, i, s: t.index_copy(dim, i, s))


@cases("index_fill", "index_fill_")
def index_fill(d):
    x = d.tensor(least=1, layout="distinct")
    dim = d.dim(x)
    index = d.indices(x.shape[dim], (d.integer(0, 5) if x.shape[dim] else 0,), negative=True)
    return Case([x, index], {"dim": dim, "value": 1}, lambda t, i: t.index_fill(dim, i, 1))


@cases("put", "put_")
def put(d):
    x = d.tensor(special=False, layout="distinct")
    count = torch.Size(x.shape).numel()
    index = d.indices(count, d.shape(most=3) if count else (0,), negative=True)
    source = d.like(x, index.shape, special=False)
    accumulate = accumulated(d, source)
    return Case([x, index, source], {"accumulate": accumulate}, lambda t, i, s: t.put(i, s, accumulate))


@cases("masked_fill", "masked_fill_")
def masked_fill(d):
    x = d.tensor(layout="distinct")
    mask = d.conditions(d.broadcasting(x.shape))
    return Case([x, mask], {"value": 1}, lambda t, m: t.masked_fill(m, 1))


@cases("embedding")
def embedding(d):
    weight = d.tensor((d.integer(1, 8), d.integer(0, 8)), d.floating(), special=False)
    index = d.indices(weight.shape[0], d.shape(most=3))
    padding, scaled = d.integer(-1, weight.shape[0] - 1), d.chance(0.3)
    params = {"scale_grad_by_freq": scaled}
    if padding >= 0:
        params["padding_idx"] = padding

    def function(t, i):
        return torch.nn.functional.embedding(wide(i), t, padding if padding >= 0 else None, scale_grad_by_freq=scaled)
    # PyTorch's second gradient is not scaled.
    return Case([weight, index], params, function, twice=not scaled)


@cases("embedding_bag")
def embedding_bag(d):
    mode = d.one_of("sum", "mean", "max")
    # Of equal maxima, each has a share of the gradient; in PyTorch one has all.
    weight = d.tensor((d.integer(1, 8), d.integer(1, 8)), d.floating(), special=False, grad=mode != "max")
    offsets = weights = None
    if d.chance(0.5):
        index = d.indices(weight.shape[0], (d.integer(1, 4), d.integer(1, 5)))
    else:
        index = d.indices(weight.shape[0], (d.integer(0, 9),))
        offsets = d.indices(index.shape[0] + 1, (d.integer(1, 4),))
        offsets.base[offsets.offset] = 0
        offsets.base.copy_(offsets.base.sort().values)
        offsets.base[:offsets.offset + 1] = 0
    if mode == "sum" and d.chance(0.4):
        weights = d.like(weight, index.shape, special=False)

    def function(t, i, o, w):
        return torch.nn.functional.embedding_bag(i, t, o, mode=mode, per_sample_weights=w)
    return Case([weight, index, offsets, weights], {"mode": mode}, function)
