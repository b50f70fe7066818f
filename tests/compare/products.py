"""Matrix products of certain ranks, with a further term, and attention."""

import torch
import torch.nn.functional as F

from cases import cases
from draw import Case


@cases("mm", "bmm", "mv", "dot", "vdot", "outer", "ger", "inner")
def products(d):
    n, k, m, batch = d.size(), d.size(), d.size(), d.size()
    shapes = {"mm": ((n, k), (k, m)), "bmm": ((batch, n, k), (batch, k, m)), "mv": ((n, k), (k,)), "dot": ((k,), (k,)),
              "vdot": ((k,), (k,)), "outer": ((n,), (m,)), "ger": ((n,), (m,)),
              "inner": (d.shape(0, 2) + (k,), d.shape(0, 2) + (k,))}
    first, second = shapes[d.name]
    a = d.floats(shape=first, special=False)
    return Case([a, d.like(a, second, special=False)], function=getattr(torch, d.name))


@cases("addmm", "addmv", "addr", "baddbmm", "addbmm")
def with_a_term(d):
    n, k, m, batch = d.size(), d.size(), d.size(), d.size()
    shapes = {"addmm": ((n, m), (n, k), (k, m)), "addmv": ((n,), (n, k), (k,)), "addr": ((n, m), (n,), (m,)),
              "baddbmm": ((batch, n, m), (batch, n, k), (batch, k, m)),
              "addbmm": ((n, m), (batch, n, k), (batch, k, m))}
    y, first, second = shapes[d.name]
    a = d.floats(shape=first, special=False)
    # PyTorch's addmv of a matrix without columns has the shape of the term, and that of one without rows no gradient.
    term = d.like(a, y if d.name == "addmv" and 0 in (n, k) else d.broadcasting(y), special=False)
    beta, alpha = d.one_of(1.0, 1.0, 0.5, -2.0, 0.0), d.one_of(1.0, 1.0, 3.0, -0.5)
    function = getattr(torch, d.name)
    return Case([term, a, d.like(a, second, special=False)], {"beta": beta, "alpha": alpha},
                lambda t, x, y: function(t, x, y, beta=beta, alpha=alpha),
                tolerance=4e-3 if a.dtype.itemsize == 2 else 0)


TOLERANCE = {torch.float32: 2e-5, torch.float16: 8e-3, torch.bfloat16: 6e-2}


@cases("scaled_dot_product_attention")
def attention(d):
    """By PyTorch's plain formula: its fused kernels give other results for queries that see nothing, and NaN."""
    batch, heads, group = d.integer(1, 2), d.integer(1, 3), d.one_of(1, 1, 2)
    length, keys = d.one_of(1, 2, 5, 17, 70), d.one_of(1, 3, 7, 33, 131)
    width, value_width = d.one_of(1, 4, 8, 17, 64), d.one_of(1, 4, 8, 19)
    q = d.floats(shape=(batch, heads * group, length, width), special=False)
    k = d.like(q, (batch, heads, keys, width), special=False)
    v = d.like(q, (batch, heads, keys, value_width), special=False)
    causal = d.chance(0.3)
    mask = None
    if not causal and d.chance(0.5):
        shape = d.broadcasting((batch, heads * group, length, keys))
        shape = (1,) * (2 - len(shape)) + shape
        mask = d.tensor(shape, torch.bool) if d.chance(0.5) else d.like(q, shape, special=False)
    scale = d.one_of(None, None, 0.3)
    params = {"is_causal": causal, "enable_gqa": group > 1}
    if scale is not None:
        params["scale"] = scale

    def function(q, k, v, m=None):
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, k, v, m, is_causal=causal, scale=scale, enable_gqa=group > 1)

    # A row with one visible key has gradient 0 exactly in PyTorch; here it is a difference of two sums. So it is where
    # all values are equal, and the gradient of a key is a sum over the queries.
    return Case([q, k, v, mask], params, function, tolerance=TOLERANCE.get(q.dtype, 0), scale=(group * length)**0.5)
