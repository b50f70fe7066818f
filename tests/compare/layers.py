"""Products, convolutions, pooling and losses."""

import torch
import torch.nn.functional as F

from cases import cases
from draw import Case
from pointwise import ACTIVATIONS


@cases("matmul")
def matmul(d):
    k, left, right = d.size(), d.shape(0, 2), ()
    if d.chance(0.5):
        right = d.broadcasting(left)
    a = d.floats(shape=left + (d.size(), k) if d.chance(0.8) or left else (k,), special=False)
    b = d.like(a, right + (k, d.size()) if d.chance(0.8) or right else (k,), special=False)
    return Case([a, b], function=torch.matmul)


@cases("linear")
def linear(d):
    k, n = d.size(), d.size()
    x = d.floats(shape=d.shape(0, 3) + (k,), special=False)
    bias = d.like(x, (n,), special=False) if d.chance(0.7) else None
    activation = d.one_of("none", *ACTIVATIONS)
    return Case([x, d.like(x, (n, k), special=False), bias], {"activation": activation},
                lambda t, w, b: ACTIVATIONS[activation](F.linear(t, w, b)))


def batch(d):
    """The sizes before an image's channels."""
    return d.one_of((), (1,), (2,), (2,))


@cases("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def convolution(d):
    n = int(d.name[-2])
    transposed = "transpose" in d.name
    groups = d.one_of(1, 1, 2)
    c, k = groups * d.integer(1, 3), groups * d.integer(1, 3)
    kernel = tuple(d.integer(1, 3) for _ in range(n))
    stride = tuple(d.integer(1, 2) for _ in range(n))
    dilation = tuple(d.integer(1, 2) for _ in range(n))
    padding = tuple(d.integer(0, 1 if transposed else 2) for _ in range(n))
    x = d.floats(shape=batch(d) + (c,) + tuple(d.integer(4, 7) for _ in range(n)), special=False)
    weight = d.like(x, ((c, k // groups) if transposed else (k, c // groups)) + kernel, special=False)
    bias = d.like(x, (k,), special=False) if d.chance(0.6) else None
    function = getattr(F, d.name)
    pad3 = tuple(list(v) + [0] * (3 - n) for v in (stride, padding, dilation))
    params = {"strides": pad3[0], "paddings": pad3[1], "dilations": pad3[2], "groups": groups}
    params["activation"] = activation = d.one_of("none", *ACTIVATIONS)
    more = {}
    if transposed:
        more["output_padding"] = tuple(d.integer(0, max(a, b) - 1) for a, b in zip(stride, dilation))
        params["output_paddings"] = more["output_padding"] + (0,) * (3 - n)
    return Case([x, weight, bias], params, lambda t, w, b: ACTIVATIONS[activation](
        function(t, w, b, stride=stride, padding=padding, dilation=dilation, groups=groups, **more)))


@cases(*[f"{kind}_pool{n}d{more}"
         for n in (1, 2, 3) for kind, more in (("max", ""), ("max", "_with_indices"), ("avg", ""))])
def pooling(d):
    n = int(d.name.split("pool")[1][0])
    kernel = d.integer(1, 3)
    stride, padding, ceil_mode = d.integer(1, 3), d.integer(0, kernel // 2), d.chance(0.3)
    x = d.floats(shape=batch(d) + (d.integer(1, 3),) + tuple(d.integer(4, 8) for _ in range(n)), special=False)
    params = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil_mode}
    if d.name.startswith("avg"):
        params["count_include_pad"] = include = d.chance(0.5)
        return Case([x], params, lambda t: getattr(F, d.name)(t, kernel, stride, padding, ceil_mode, include))
    params["dilation"] = dilation = d.integer(1, 2)
    function = getattr(F, d.name)
    return Case([x], params, lambda t: function(t, kernel, stride, padding, dilation, ceil_mode))


@cases(*[f"adaptive_{kind}_pool{n}d{more}" for n in (1, 2, 3)
         for kind, more in (("max", ""), ("max", "_with_indices"), ("avg", ""))])
def adaptive_pooling(d):
    n = int(d.name.split("pool")[1][0])
    size = tuple(d.integer(1, 5) for _ in range(n))
    x = d.floats(shape=batch(d) + (d.integer(1, 3),) + tuple(d.integer(1, 8) for _ in range(n)), special=False)
    return Case([x], {"output_size": size}, lambda t: getattr(F, d.name)(t, size if n > 1 else size[0]))


REDUCTIONS = ("mean", "sum", "none")


@cases("cross_entropy", "nll_loss")
def classes(d):
    c = d.integer(1, 7)
    shape = (d.size(),) + d.shape(0, 2) if d.chance(0.9) else ()
    x = d.floats(shape=shape[:1] + (c,) + shape[1:], special=False)
    if d.name == "cross_entropy" and d.chance(0.3):
        return of_probabilities(d, x, c)
    target = d.indices(c, shape)
    weight = d.like(x, (c,), low=0.2, high=2, grad=False, special=False) if d.chance(0.4) else None
    reduction, ignored = d.one_of(*REDUCTIONS), d.one_of(-100, 0)
    params = {"reduction": reduction, "ignore_index": ignored}
    # Where all are ignored, the mean is NaN and its gradient 0; in PyTorch, that of the gradient is NaN.
    some = reduction != "mean" or bool((target.view() != ignored).any())
    if d.name == "nll_loss":
        return Case([x, target, weight], params,
                    # PyTorch has no gradient of permuted images.
                    lambda t, y, w: F.nll_loss(t.contiguous(), y, w, ignore_index=ignored, reduction=reduction),
                    twice=some)
    params["label_smoothing"] = smoothing = d.one_of(0.0, 0.1)
    return Case([x, target, weight], params,
                lambda t, y, w: F.cross_entropy(t, y, w, ignore_index=ignored, reduction=reduction,
                                                label_smoothing=smoothing), twice=some)


def of_probabilities(d, x, c):
    target = d.like(x, low=0, high=1, special=False)
    weight = d.like(x, (c,), low=0.2, high=2, grad=False, special=False) if d.chance(0.4) else None
    params = {"reduction": d.one_of(*REDUCTIONS), "label_smoothing": d.one_of(0.0, 0.1)}
    return Case([x, target, weight], params, lambda t, y, w: F.cross_entropy(t, y, w, **params))


@cases("linear_cross_entropy")
def classes_of_layer(d):
    """The reference is PyTorch's without chunks, which knows second gradients; Koine's chunks have none."""
    c, within, batch_shape = d.integer(1, 7), d.integer(1, 9), (d.size(),) if d.chance(0.9) else ()
    outer = d.shape(0, 1) if batch_shape else ()
    x = d.floats(shape=(*batch_shape, within), special=False)
    layer = d.like(x, (c, *outer, within), special=False)
    bias = d.like(x, layer.shape[:-1], special=False) if d.chance(0.5) else None
    weight = d.like(x, (c,), low=0.2, high=2, grad=False, special=False) if d.chance(0.4) else None
    params = {"reduction": d.one_of(*REDUCTIONS), "label_smoothing": d.one_of(0.0, 0.1)}
    if d.chance(0.3):
        target, some = d.like(x, (*batch_shape, c, *outer), low=0, high=1, special=False), True
    else:
        target = d.indices(c, (*batch_shape, *outer))
        params["ignore_index"] = ignored = d.one_of(-100, 0)
        some = params["reduction"] != "mean" or bool((target.view() != ignored).any())
    chunk = d.one_of(0, 0, -1, 1, 2, 3)
    return Case([x, layer, target, bias, weight], dict(params, chunk_size=chunk),
                lambda t, l, y, b, w: F.linear_cross_entropy(t, l, y, linear_bias=b, weight=w, **params),
                twice=some and chunk == 0, scale=9)


@cases("mse_loss")
def element_loss(d):
    x = d.floats()
    reduction = d.one_of(*REDUCTIONS)
    return Case([x, d.like(x)], {"reduction": reduction}, lambda t, y: getattr(F, d.name)(t, y, reduction=reduction))


@cases("binary_cross_entropy_with_logits")
def with_logits(d):
    x = d.floats()
    reduction = d.one_of(*REDUCTIONS)
    target = d.like(x, low=0, high=1, special=False)
    weight = d.like(x, d.broadcasting(x.shape), low=0.1, high=2, grad=False, special=False) if d.chance(0.4) else None
    positive = d.like(x, x.shape[-1:], low=0.1, high=2, grad=False, special=False) if d.chance(0.4) else None
    return Case([x, target, weight, positive], {"reduction": reduction},
                lambda t, y, w, p: F.binary_cross_entropy_with_logits(t, y, w, reduction=reduction, pos_weight=p))


@cases("conv_tbc")
def conv_tbc(d):
    c, k, pad = d.integer(1, 4), d.integer(1, 4), d.integer(0, 2)
    x = d.tensor((d.integer(3, 7), d.integer(1, 3), c), d.one_of(torch.float32, torch.float64), special=False,
                 layout=False)
    bias = d.like(x, (k,), special=False, layout=False)
    return Case([x, d.like(x, (d.integer(1, 3), c, k), special=False, layout=False), bias], {"pad": pad},
                lambda t, w, b: torch.conv_tbc(t, w, b, pad))
