"""Padding, patches, resizing, sampling, unpooling and fractional pooling."""

import torch
import torch.nn.functional as F

from cases import cases
from draw import HALVES, Case


@cases("pad")
def pad(d):
    mode = d.one_of("constant", "constant", "reflect", "replicate", "circular")
    if mode == "constant":
        x = d.tensor()
        count = d.integer(0, min(x.ndim, 4))
        pads = [d.integer(-min(2, x.shape[-1 - i // 2] // 2), 3) for i in range(2 * count)]
        value = d.one_of(0.0, 1.5, -2.0) if x.dtype.is_floating_point else d.one_of(0, 1)
        return Case([x], {"pad": pads, "value": value}, lambda t: F.pad(t, pads, "constant", value))
    n = d.integer(1, 3)
    x = d.floats(shape=[d.integer(1, 2) for _ in range(2)] + [d.integer(1, 6) for _ in range(n)])
    limits = [x.shape[-1 - i // 2] - (1 if mode == "reflect" else 0) for i in range(2 * n)]
    pads = [d.integer(0, min(limit, 5) if mode != "replicate" else 5) for limit in limits]
    return Case([x], {"pad": pads, "mode": mode}, lambda t: F.pad(t, pads, mode))


def windows(d):
    """Parameters with which windows fit images of 6 x 6 and more."""
    one = d.chance(0.3)
    pair = lambda low, high: d.integer(low, high) if one else (d.integer(low, high), d.integer(low, high))
    return {"kernel_size": pair(1, 3), "dilation": pair(1, 2), "padding": pair(0, 2), "stride": pair(1, 3)}


def listed(params):
    return {name: value if isinstance(value, tuple) else [value] for name, value in params.items()}


@cases("unfold")
def unfold(d):
    params = windows(d)
    x = d.floats(shape=[d.integer(1, 2)] * d.integer(0, 1) + [d.integer(1, 3), d.integer(6, 9), d.integer(6, 9)])
    return Case([x], listed(params), lambda t: F.unfold(t, **params))


@cases("fold")
def fold(d):
    params, size = windows(d), (d.integer(6, 9), d.integer(6, 9))
    shape = F.unfold(torch.zeros(1, d.integer(1, 3), *size), **params).shape[1:]
    x = d.floats(shape=[d.integer(1, 2)] * d.integer(0, 1) + list(shape), special=False)
    return Case([x], listed(dict(params, output_size=size)), lambda t: F.fold(t, size, **params))


def antialiased(t, sizes, factors, mode, **more):
    """As products with the matrices of both dimensions: PyTorch's own is wrong in other orders of dimensions."""
    def matrix(dim):
        n = t.shape[2 + dim]
        return F.interpolate(torch.eye(n, dtype=t.dtype)[None, None], sizes and (sizes[dim], n),
                             factors and (factors[dim], 1.0), mode, **more)[0, 0]
    return matrix(0) @ t @ matrix(1).T


@cases("interpolate")
def interpolate(d):
    n = d.integer(1, 3)
    modes = ["nearest", "nearest-exact", "area"] + [["linear"], ["bilinear", "bicubic"], ["trilinear"]][n - 1]
    mode = d.one_of(*modes)
    x = d.floats(shape=[d.integer(1, 2), d.integer(1, 3)] + [d.integer(1, 9) for _ in range(n)], special=False)
    more = {}
    if "linear" in mode or mode == "bicubic":
        more["align_corners"] = d.chance(0.4)
    if mode in ("bilinear", "bicubic"):
        more["antialias"] = x.dtype not in HALVES and d.chance(0.3)
    if d.chance(0.6):
        sizes, factors = [d.integer(1, 13) for _ in range(n)], None
    else:
        sizes, factors = None, [d.one_of(1.0, 1.3, 2.0, 3.7) for _ in range(n)]
        if mode == "bicubic" or "nearest" in mode:  # PyTorch's gradient for equal sizes is that of a copy
            factors = [d.one_of(2.0, 3.7) for _ in range(n)]
    params = {"sizes": sizes} if sizes else {"scale_factors": factors}
    return Case([x], dict(params, mode=mode, **more),
                lambda t: (antialiased if more.get("antialias") else F.interpolate)(t, sizes, factors, mode, **more),
                tolerance=1e-5)


@cases("grid_sample")
def grid_sample(d):
    n = d.integer(2, 3)
    params = {"mode": d.one_of("bilinear", "nearest", "bicubic") if n == 2 else "bilinear",
              "padding_mode": d.one_of("zeros", "border", "reflection"), "align_corners": d.chance(0.5)}
    d.dtype = d.one_of(torch.float32, torch.float64)
    x = d.tensor([d.integer(1, 2), d.one_of(1, 2, 3, 8, 16)] + [d.integer(1, 5) for _ in range(n)], special=False)
    # Multiples of 1/8 plus a bit: not at the steps of the nearest element and of the gradient.
    grid = d.like(x, [x.shape[0]] + [d.integer(1, 4) for _ in range(n)] + [n], low=-1.6, high=1.6, special=False,
                  layout=False)
    grid.base.mul_(8).round_().div_(8).add_(0.0117)
    return Case([x, grid], params, lambda t, g: F.grid_sample(t, g, **params), tolerance=1e-4)


@cases("max_unpool1d", "max_unpool2d", "max_unpool3d")
def max_unpool(d):
    n = int(d.name[-2])
    kernel, stride = d.integer(2, 3), d.integer(2, 3)
    lead = [d.integer(1, 2), d.integer(1, 2)]
    whole = torch.rand(lead + [d.integer(5, 8) for _ in range(n)])
    pooled, places = getattr(F, f"max_pool{n}d")(whole, kernel, max(stride, kernel), return_indices=True)
    x = d.floats(shape=pooled.shape)
    indices = d.indices(1, pooled.shape)
    indices = type(indices)(places.flatten().clone(), pooled.shape, places.stride(), 0)
    params = {"kernel_size": kernel, "stride": max(stride, kernel)}
    size = [(m - 1) * params["stride"] + kernel for m in pooled.shape[2:]]
    params["output_sizes"] = sizes = [max(a, min(b, a + params["stride"] - 1)) for a, b in zip(size, whole.shape[2:])]
    # The places are those of the larger image.
    if list(whole.shape[2:]) != sizes:
        indices.base.remainder_(int(torch.tensor(sizes).prod()))
        if any(len(set(plane.tolist())) < plane.numel() for plane in indices.base.view(lead[0] * lead[1], -1)):
            indices.base.copy_(torch.arange(places[0, 0].numel()).repeat(lead[0] * lead[1]))
    function = getattr(F, d.name)
    return Case([x, indices], params, lambda t, i: function(t, i, kernel, params["stride"], output_size=sizes))


@cases("fractional_max_pool2d", "fractional_max_pool3d")
def fractional(d):
    n = int(d.name[-2])
    kernel = [d.integer(1, 3) for _ in range(n)]
    size = [d.integer(k + 2, k + 5) for k in kernel]
    output = [d.integer(1, s - k) for s, k in zip(size, kernel)]
    d.dtype = d.one_of(torch.float32, torch.float64)
    x = d.tensor([d.integer(1, 2), d.integer(1, 2)] + size, special=False)
    samples = d.tensor(list(x.shape[:2]) + [n], x.dtype, low=0.003, high=0.49, special=False, grad=False)
    function = getattr(F, d.name)
    return Case([x, samples], {"kernel_size": kernel, "output_size": output},
                lambda t, s: function(t, kernel, output, return_indices=True, _random_samples=s))
