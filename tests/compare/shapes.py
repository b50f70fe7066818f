"""Views, joining, indexing."""

import torch

from cases import cases
from draw import Case


@cases("reshape")
def reshape(d):
    x = d.tensor()
    count = torch.Size(x.shape).numel()
    shape = d.one_of((count,), x.shape + (1,), (1, count), (-1,) if count else (count,))
    return Case([x], {"shape": shape}, lambda t: t.reshape(shape))


@cases("expand")
def expand(d):
    x = d.tensor(most=3)
    shape = tuple(d.integer(1, 3) if n == 1 else n for n in x.shape)
    shape = ((2,) + shape) if d.chance(0.3) else shape
    return Case([x], {"shape": shape}, lambda t: t.expand(shape))


@cases("permute")
def permute(d):
    x = d.tensor()
    dims = list(range(x.ndim))
    d.rng.shuffle(dims)
    return Case([x], {"dims": tuple(dims)}, lambda t: t.permute(dims))


@cases("transpose")
def transpose(d):
    x = d.tensor(least=1)
    a, b = d.any_dim(x), d.any_dim(x)
    return Case([x], {"dim0": a, "dim1": b}, lambda t: t.transpose(a, b))


@cases("t")
def matrix_transpose(d):
    return Case([d.tensor(most=2)], function=torch.t)


@cases("flatten")
def flatten(d):
    x = d.tensor()
    a, b = sorted((d.integer(0, max(x.ndim - 1, 0)), d.integer(0, max(x.ndim - 1, 0))))
    return Case([x], {"start_dim": a, "end_dim": b}, lambda t: t.flatten(a, b))


@cases("squeeze")
def squeeze(d):
    x = d.tensor(least=1)
    dim = d.any_dim(x)
    return Case([x], {"dim": dim}, lambda t: t.squeeze(dim))


@cases("unsqueeze")
def unsqueeze(d):
    x = d.tensor(most=3)
    dim = d.integer(-x.ndim - 1, x.ndim)
    return Case([x], {"dim": dim}, lambda t: t.unsqueeze(dim))


@cases("narrow")
def narrow(d):
    x = d.tensor(least=1)
    dim = d.dim(x)
    start = d.integer(0, x.shape[dim])
    length = d.integer(0, x.shape[dim] - start)
    return Case([x], {"dim": dim, "start": start, "length": length}, lambda t: t.narrow(dim, start, length))


@cases("select")
def select(d):
    x = d.tensor(least=1)
    dim = d.dim(x)
    index = d.integer(-x.shape[dim], x.shape[dim] - 1) if x.shape[dim] else 0
    return Case([x], {"dim": dim, "index": index}, lambda t: t.select(dim, index))


@cases("as_strided")
def as_strided(d):
    x = d.tensor((24,), layout=False)
    shape, strides, offset = d.one_of(((3, 4), (4, 1), 2), ((2, 3), (1, 2), 0), ((4, 4), (1, 1), 5),
                                      ((2, 2), (0, 3), 1))
    return Case([x], {"shape": shape, "strides": strides, "offset": offset},
                lambda t: torch.as_strided(t, shape, strides, offset))


@cases("view_dtype")
def view_dtype(d):
    x = d.tensor((4, 8), torch.float32, grad=False, layout=False)
    dtype = d.one_of(torch.int32, torch.int64, torch.int16, torch.float64, torch.uint8)
    return Case([x], {"dtype": dtype}, lambda t: t.float().contiguous().view(dtype))


@cases("cat")
def cat(d):
    x = d.tensor(least=1)
    dim = d.dim(x)
    others = [d.like(x, tuple(d.size() if i == dim % x.ndim else n for i, n in enumerate(x.shape)))
              for _ in range(d.integer(0, 3))]
    return Case([x] + others, {"dim": dim}, lambda *t: torch.cat(t, dim))


@cases("stack")
def stack(d):
    x = d.tensor(most=3)
    dim = d.integer(-x.ndim - 1, x.ndim)
    return Case([x] + [d.like(x) for _ in range(d.integer(0, 3))], {"dim": dim}, lambda *t: torch.stack(t, dim))


@cases("index_select")
def index_select(d):
    x = d.tensor(least=1)
    dim = d.dim(x)
    count = x.shape[dim]
    index = d.indices(count, (d.integer(0, 5) if count else 0,), d.one_of(torch.int64, torch.int32))
    return Case([x, index], {"dim": dim}, lambda t, i: torch.index_select(t, dim, i))


@cases("slice")
def slices(d):
    x = d.tensor(least=1)
    dim, start, step = d.dim(x), d.integer(-9, 9), d.integer(1, 4)
    params, stop = {"dim": dim, "start": start, "step": step}, None
    if d.chance(0.7):
        params["stop"] = stop = d.integer(-9, 9)
    return Case([x], params, lambda t: t[(slice(None),) * (dim % t.ndim) + (slice(start, stop, step),)])


@cases("diagonal")
def diagonal(d):
    x = d.tensor(least=2)
    a, b = d.rng.sample(range(x.ndim), 2)
    offset = d.integer(-3, 3)
    return Case([x], {"offset": offset, "dim1": a, "dim2": b - x.ndim}, lambda t: t.diagonal(offset, a, b))


@cases("diagonal_backward")
def diagonal_backward(d):
    shape = (d.integer(1, 5), d.integer(1, 5), d.integer(1, 5))
    a, b = d.rng.sample(range(3), 2)
    offset = d.integer(-2, 2)
    x = d.tensor(torch.empty(shape).diagonal(offset, a, b).shape)
    return Case([x], {"shape": shape, "offset": offset, "dim1": a, "dim2": b},
                lambda t: torch.ops.aten.diagonal_backward(t, shape, offset, a, b))


@cases("tensor_unfold")
def tensor_unfold(d):
    x = d.tensor(least=1, most=3)
    dim, step = d.dim(x), d.integer(1, 3)
    size = d.integer(0, x.shape[dim] + (1 if d.chance(0.1) else 0))
    return Case([x], {"dimension": dim, "size": size, "step": step}, lambda t: t.unfold(dim, size, step))


@cases("flip")
def flip(d):
    x = d.tensor()
    dims = d.dims(x)
    return Case([x], {"dims": dims}, lambda t: t.flip(dims))


@cases("roll")
def roll(d):
    x = d.tensor()
    dims = d.dims(x)
    shifts = tuple(d.integer(-9, 9) for _ in dims) or (d.integer(-9, 9),)
    return Case([x], {"shifts": shifts, "dims": dims}, lambda t: t.roll(shifts, dims))


@cases("tril", "triu")
def triangle(d):
    x = d.tensor(least=2)
    diagonal = d.integer(-4, 4)
    return Case([x], {"diagonal": diagonal}, lambda t: getattr(torch, d.name)(t, diagonal))


@cases("select_scatter")
def select_scatter(d):
    x = d.tensor((3, 4), special=False)
    index = d.integer(-4, 3)
    return Case([x, d.like(x, (3,), special=False)], {"dim": 1, "index": index},
                lambda t, s: torch.select_scatter(t, s, 1, index))


@cases("slice_scatter")
def slice_scatter(d):
    x, step = d.tensor((5, 4), special=False), d.integer(1, 3)
    source = d.like(x, (len(range(1, 5, step)), 4), special=False)
    return Case([x, source], {"dim": 0, "start": 1, "stop": 5, "step": step},
                lambda t, s: torch.slice_scatter(t, s, 0, 1, 5, step))


@cases("diagonal_scatter")
def diagonal_scatter(d):
    x, offset = d.tensor((3, 4), special=False), d.integer(-2, 1)
    source = d.like(x, (3 + min(offset, 0),), special=False)
    return Case([x, source], {"offset": offset}, lambda t, s: torch.diagonal_scatter(t, s, offset))


@cases("as_strided_scatter")
def as_strided_scatter(d):
    """Without x's gradient, in which PyTorch's has a zero for an element that is kept."""
    x = d.tensor((3, 4), special=False, layout=False, grad=False)
    return Case([x, d.like(x, (2, 2), special=False)], {"shape": (2, 2), "strides": (5, 2), "offset": 1},
                lambda t, s: torch.as_strided_scatter(t, s, (2, 2), (5, 2), 1))
