"""The operations of tests/compare_graphs.py: their PyTorch and Koine functions, and random arguments."""

import ctypes

import numpy
import torch
import torch.nn.functional as F

from koine_ctypes import (BatchNormParams, BOOL, ClampParams, ConvParams, DOUBLE, DropoutParams, DTYPES, F64, I64T,
                          LayerNormParams, PoolParams, REDUCTIONS, Scalar, VOID, dims, sizes)

OPS = {}


class Unary:
    """torch.NAME(x) and kn_NAME(x)."""
    weight = 1.0

    def __init__(self, name):
        self.name = name

    def draw(self, rng, values):
        return [pick(rng, values)], ()

    def torch(self, x):
        return getattr(torch, self.name)(x)

    def koine(self, k, x):
        return k.call("kn_" + self.name, VOID(x))


class Binary(Unary):
    def draw(self, rng, values):
        a = pick(rng, values)
        fitting = [v for v in values if broadcasts(values[a].shape, values[v].shape)]
        return [a, rng.choice(fitting)], ()

    def torch(self, a, b):
        return getattr(torch, self.name)(a, b)

    def koine(self, k, a, b):
        return k.call("kn_" + self.name, VOID(a), VOID(b))


class InPlace(Unary):
    """x.NAME_(b); b broadcasts to x."""

    def draw(self, rng, values):
        a = pick(rng, values)
        fitting = [v for v in values if broadcasts_to(values[v].shape, values[a].shape)]
        return [a, rng.choice(fitting)], ()

    def torch(self, a, b):
        if same_memory(a, b) and a is not b:  # PyTorch rejects some overlaps and miscomputes others
            b = b.clone()
        return getattr(renewed(a), self.name)(b)

    def koine(self, k, a, b):
        return k.call("kn_" + self.name, VOID(a), VOID(b))


class WithNumber(Unary):
    """An operation with a number: kn_NAME_with(x, number); PyTorch's name and the numbers are given."""

    def __init__(self, name, of_torch, numbers):
        super().__init__(name)
        self.of_torch, self.numbers = of_torch, numbers

    def draw(self, rng, values):
        return [pick(rng, values)], (rng.choice(self.numbers),)

    def torch(self, x, number):
        return self.of_torch(x, number)

    def koine(self, k, x, number):
        name = self.name.rstrip("_")
        return k.call(f"kn_{name}_with{self.name[len(name):]}", VOID(x), Scalar(False, 0, number))


class Custom(Unary):
    """Three functions."""

    def __init__(self, draw, of_torch, of_koine):
        super().__init__("")
        self.draw, self.torch, self.koine = draw, of_torch, of_koine


def renewed(tensor):
    """PyTorch checks whether a view is a leaf before it regenerates its history, unless the view was accessed."""
    if torch.is_grad_enabled():
        tensor.grad_fn
    return tensor


def pick(rng, values, condition=lambda t: True):
    """A suitable value, preferably a recent one, or None."""
    fitting = [v for v in values if condition(values[v])]
    if not fitting:
        raise LookupError
    return fitting[max(rng.randrange(len(fitting)) for _ in range(rng.choice((1, 2))))]


def broadcasts(a, b):
    return all(x == y or x == 1 or y == 1 for x, y in zip(a[::-1], b[::-1]))


def broadcasts_to(b, a):
    return len(b) <= len(a) and all(y == x or y == 1 for x, y in zip(a[::-1], b[::-1]))


def a_dim(rng, t):
    return rng.randrange(-t.dim(), t.dim())


def draw_dim(condition=lambda t: t.dim() > 0):
    def draw(rng, values):
        x = pick(rng, values, condition)
        return [x], (a_dim(rng, values[x]),)
    return draw


def draw_dtype(rng, values):
    """There and back: rounded, and its gradient too. Fractions cut off would turn on the last bit."""
    return [pick(rng, values)], (rng.choice(("float32", "float16", "bfloat16")),)


def draw_narrow(rng, values):
    x = pick(rng, values, lambda t: t.dim() > 0 and t.numel() > 0)
    dim = a_dim(rng, values[x])
    size = values[x].shape[dim]
    start = rng.randrange(size)
    return [x], (dim, start, rng.randint(1, size - start))


def draw_select(rng, values):
    x = pick(rng, values, lambda t: t.dim() > 0 and t.numel() > 0)
    dim = a_dim(rng, values[x])
    return [x], (dim, rng.randrange(-values[x].shape[dim], values[x].shape[dim]))


def draw_reshape(rng, values):
    x = pick(rng, values)
    left, shape = values[x].numel(), []
    while left > 1 and len(shape) < 3:
        factor = rng.choice([d for d in range(1, left + 1) if left % d == 0])
        shape.append(factor)
        left //= factor
    return [x], (tuple(shape + [left]),)


def draw_expand(rng, values):
    x = pick(rng, values, lambda t: t.dim() < 4 and t.numel() < 60)
    shape = [rng.randint(2, 3) if s == 1 and rng.random() < 0.7 else s for s in values[x].shape]
    return [x], (tuple(([rng.randint(1, 3)] if rng.random() < 0.6 else []) + shape),)


def draw_permute(rng, values):
    x = pick(rng, values)
    order = list(range(values[x].dim()))
    rng.shuffle(order)
    return [x], (tuple(order),)


def draw_flatten(rng, values):
    x = pick(rng, values)
    last = max(values[x].dim() - 1, 0)
    start = rng.randint(0, last)
    return [x], (start, rng.randint(start, last))


def draw_two_dims(rng, values):
    x = pick(rng, values, lambda t: t.dim() > 0)
    return [x], (a_dim(rng, values[x]), a_dim(rng, values[x]))


def draw_reduction(rng, values):
    x = pick(rng, values, lambda t: t.dim() > 0)
    n = values[x].dim()
    return [x], (tuple(rng.sample(range(n), rng.randint(1, n))), rng.random() < 0.5)


def draw_clamp(rng, values):
    """Avoids bounds that values are likely to equal: there the gradient differs between versions of PyTorch."""
    low = round(rng.uniform(-0.6, 0.6), 6)
    return [pick(rng, values)], (low, low + rng.choice((0.0, 0.5, 1.0)))


def draw_hardtanh(rng, values):
    """Whether a NaN passes on its gradient depends on PyTorch's vectorisation."""
    arguments, params = draw_clamp(rng, {v: t for v, t in values.items() if not t.isnan().any()})
    return arguments, params


def draw_matmul(rng, values):
    a = pick(rng, values, lambda t: t.dim() > 0)
    rows = values[a].shape[-1]
    b = pick(rng, values, lambda t: t.dim() in (1, 2) and t.shape[0] == rows)
    return [a, b], ()


def draw_linear(rng, values):
    x = pick(rng, values, lambda t: t.dim() > 0)
    w = pick(rng, values, lambda t: t.dim() == 2 and t.shape[1] == values[x].shape[-1])
    biases = [v for v in values if values[v].shape == values[w].shape[:1]]
    return [x, w] + ([rng.choice(biases)] if biases and rng.random() < 0.5 else []), ()


def same_memory(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def draw_batch_norm(rng, values):
    # Not strided: PyTorch 2.15's backward reads the weight as if it were contiguous, and its gradients are wrong for
    # an input whose strides are both permuted and channels-last ([1, 2, 2, 1] with strides 4, 1, 2, 1). Not the memory
    # of another argument: each library has its own order of reading the arguments and changing the running estimates.
    x = pick(rng, values, lambda t: t.dim() >= 2 and t.numel() > t.shape[1] and t.is_contiguous())
    fitting = [v for v in values if values[v].shape == values[x].shape[1:2] and values[v].is_contiguous()
               and values[v].isfinite().all()]
    affine = [rng.choice(fitting)] + [rng.choice(fitting)] if fitting and rng.random() < 0.7 else []
    running = []
    for v in rng.sample(fitting, len(fitting)) if rng.random() < 0.5 else []:
        if not values[v].requires_grad and not any(same_memory(values[v], values[o]) for o in [x] + affine + running):
            running.append(v)
    running = running[:2] if len(running) >= 2 else []
    return [x] + affine + running, (len(affine), not running or rng.random() < 0.6)


def batch_norm_of_torch(x, *rest):
    *tensors, affine, training = rest
    weight, bias = tensors[:2] if affine else (None, None)
    mean, var = tensors[affine:] or (None, None)
    return F.batch_norm(x, mean, var, weight, bias, training)


def batch_norm_of_koine(k, x, *rest):
    *tensors, affine, training = rest
    weight, bias = tensors[:2] if affine else (None, None)
    mean, var = tensors[affine:] or (None, None)
    params = BatchNormParams(running_mean=mean, running_var=var, weight=weight, bias=bias, training=training,
                             momentum=0.1, eps=1e-5)
    return k.call("kn_batch_norm_with", VOID(x), ctypes.byref(params))


def draw_layer_norm(rng, values):
    x = pick(rng, values, lambda t: t.dim() > 0 and t.shape[-1] > 1)
    fitting = [v for v in values if values[v].shape == values[x].shape[-1:]]
    return [x] + ([rng.choice(fitting), rng.choice(fitting)] if fitting and rng.random() < 0.6 else []), ()


def layer_norm_of_koine(k, x, weight=None, bias=None):
    last = k.lib.kn_shape(VOID(x))[k.lib.kn_ndim(VOID(x)) - 1]
    params = LayerNormParams(weight=weight, bias=bias, eps=1e-5)
    return k.call("kn_layer_norm_with", VOID(x), 1, sizes([last]), ctypes.byref(params))


def some(rng, count, *choices):
    return tuple(rng.choice(choices) for _ in range(count))


def draw_conv(count, transposed):
    """A matching input and weight; zero padding times infinity is avoided."""
    def draw(rng, values):
        def is_usable(t):
            return t.numel() > 0 and bool(t.isfinite().all())
        w = pick(rng, values, lambda t: t.dim() == count + 2 and is_usable(t))
        weight = values[w].shape
        divides = (lambda c: c == weight[0]) if transposed else (lambda c: c % weight[1] == 0)
        x = pick(rng, values, lambda t: t.dim() in (count + 1, count + 2) and is_usable(t) and
                 divides(t.shape[-count - 1]))
        groups = rng.choice([g for g in (1, 2, 3) if weight[0] % g == 0]) if transposed else \
            values[x].shape[-count - 1] // weight[1]
        biases = [v for v in values if values[v].shape == (weight[1] * groups if transposed else weight[0],)]
        params = dict(stride=some(rng, count, 1, 1, 2), padding=some(rng, count, 0, 0, 1, 2),
                      dilation=some(rng, count, 1, 1, 2), groups=groups)
        if transposed:
            params["output_padding"] = some(rng, count, 0, 0, 1)
        return [x, w] + ([rng.choice(biases)] if biases and rng.random() < 0.5 else []), tuple(params.items())
    return draw


def conv_of_torch(name):
    def conv(x, w, *rest):
        tensors = [t for t in rest if isinstance(t, torch.Tensor)]
        return getattr(F, name)(x, w, *tensors, **dict(p for p in rest if isinstance(p, tuple)))
    return conv


def by_direction(numbers):
    return (I64T * 3)(*numbers)


def conv_of_koine(name):
    def conv(k, x, w, *rest):
        bias = next((t for t in rest if not isinstance(t, tuple)), None)
        p = dict(r for r in rest if isinstance(r, tuple))
        params = ConvParams(stride=1, dilation=1, strides=by_direction(p["stride"]), groups=p["groups"],
                            paddings=by_direction(p["padding"]), dilations=by_direction(p["dilation"]),
                            output_paddings=by_direction(p.get("output_padding", ())),
                            paddings_after=(I64T * 3)(-2, -2, -2))
        return k.call(f"kn_{name}_with", VOID(x), VOID(w), VOID(bias), ctypes.byref(params))
    return conv


def draw_pool(count, average):
    def draw(rng, values):
        x = pick(rng, values, lambda t: t.dim() in (count + 1, count + 2) and t.numel() > 0)
        params = dict(kernel_size=some(rng, count, 1, 2, 3), stride=some(rng, count, 1, 2),
                      padding=some(rng, count, 0, 0, 1), ceil_mode=rng.random() < 0.4)
        if average:
            params["count_include_pad"] = rng.random() < 0.5
            if count == 3:  # PyTorch requires the unpadded input to be larger than the kernel
                params["kernel_size"] = tuple(map(min, params["kernel_size"], values[x].shape[-3:]))
                params["padding"] = tuple(min(p, k // 2) for p, k in zip(params["padding"], params["kernel_size"]))
        else:
            params["dilation"] = some(rng, count, 1, 1, 2)
        return [x], tuple(params.items())
    return draw


def pool_of_koine(name):
    def pool(k, x, *items):
        p = dict(items)
        params = PoolParams(dilation=1, kernel_sizes=by_direction(p["kernel_size"]), strides=by_direction(p["stride"]),
                            paddings=by_direction(p["padding"]), dilations=by_direction(p.get("dilation", ())),
                            paddings_after=(I64T * 3)(-2, -2, -2), ceil_mode=p["ceil_mode"],
                            count_include_pad=p.get("count_include_pad", True))
        return k.call(f"kn_{name}_with", VOID(x), ctypes.byref(params))
    return pool


def draw_adaptive(count):
    return lambda rng, values: ([pick(rng, values, lambda t: t.dim() in (count + 1, count + 2) and t.numel() > 0)],
                                some(rng, count, 1, 2, 3))


def add_windows(count):
    """Convolutions and poolings of `count` dimensions."""
    for name, transposed in ((f"conv{count}d", False), (f"conv_transpose{count}d", True)):
        OPS[name] = Custom(draw_conv(count, transposed), conv_of_torch(name), conv_of_koine(name))
    for name, average in ((f"max_pool{count}d", False), (f"avg_pool{count}d", True)):
        function = getattr(F, name)
        OPS[name] = Custom(draw_pool(count, average), lambda x, *p, function=function: function(x, **dict(p)),
                           pool_of_koine(name))
    for name in (f"adaptive_max_pool{count}d", f"adaptive_avg_pool{count}d"):
        OPS[name] = Custom(draw_adaptive(count), lambda x, *size, function=getattr(F, name): function(x, size),
                           lambda k, x, *size, name=name: k.call("kn_" + name, VOID(x), *map(I64T, size)))


def draw_mse(rng, values):
    a = pick(rng, values)
    fitting = [v for v in values if values[v].shape == values[a].shape]
    return [a, rng.choice(fitting)], (rng.choice(("mean", "sum", "none")),)


def draw_index_select(rng, values):
    x = pick(rng, values, lambda t: t.dim() > 0 and t.numel() > 0)
    dim = a_dim(rng, values[x])
    return [x], (dim, tuple(rng.randrange(values[x].shape[dim]) for _ in range(rng.randint(1, 3))))


def one(draw_condition=lambda t: True):
    return lambda rng, values: ([pick(rng, values, draw_condition)], ())


for unary in ("neg", "exp", "log", "sqrt", "abs", "relu", "sigmoid", "tanh", "sum", "mean", "max"):
    OPS[unary] = Unary(unary)
for binary in ("add", "sub", "mul", "div", "maximum"):
    OPS[binary] = Binary(binary)
OPS["pow"] = Binary("pow")
for change in ("add_", "sub_", "mul_"):
    OPS[change] = InPlace(change)
    OPS[change].weight = 4.0
OPS["add_scalar"] = WithNumber("add_scalar", torch.add, (0.0, 0.5, -1.0))
OPS["mul_scalar"] = WithNumber("mul_scalar", torch.mul, (0.0, 0.5, -2.0))
OPS["pow_scalar"] = WithNumber("pow_scalar", torch.pow, (0.0, 1.0, 2.0, 3.0, 0.5))
OPS["mul_scalar_"] = WithNumber("mul_scalar_", lambda x, n: renewed(x).mul_(n), (0.5, -2.0, 0.0))
OPS["fill_"] = WithNumber("fill_", lambda x, n: renewed(x).fill_(n), (0.0, 1.0, 0.25))
OPS["mul_scalar_"].weight = 3.0
OPS["to_dtype"] = Custom(draw_dtype, lambda x, d: x.to(getattr(torch, d)).to(x.dtype),
                         lambda k, x, d: k.call("kn_to_dtype", VOID(k.call("kn_to_dtype", VOID(x), DTYPES[d])), F64))
OPS["zero_"] = Custom(one(), lambda x: renewed(x).zero_(), lambda k, x: k.call("kn_zero_", VOID(x)))
OPS["clamp"] = Custom(draw_clamp, torch.clamp,
                      lambda k, x, low, high: k.call("kn_clamp_with", VOID(x), ctypes.byref(ClampParams(low, high))))
OPS["hardtanh"] = Custom(draw_hardtanh, F.hardtanh,
                         lambda k, x, low, high: k.call("kn_hardtanh", VOID(x), DOUBLE(low), DOUBLE(high)))
OPS["sum_dims"] = Custom(draw_reduction, torch.sum,
                         lambda k, x, d, keep: k.call("kn_sum_dims", VOID(x), dims(d), len(d), BOOL(keep)))
OPS["mean_dims"] = Custom(draw_reduction, torch.mean,
                          lambda k, x, d, keep: k.call("kn_mean_dims", VOID(x), dims(d), len(d), BOOL(keep)))
OPS["max_dim"] = Custom(draw_dim(), lambda x, d: torch.max(x, d).values,
                        lambda k, x, d: k.call("kn_max_dim", VOID(x), d, BOOL(False), None))
OPS["softmax"] = Custom(draw_dim(), torch.softmax, lambda k, x, d: k.call("kn_softmax", VOID(x), d))
OPS["log_softmax"] = Custom(draw_dim(), torch.log_softmax, lambda k, x, d: k.call("kn_log_softmax", VOID(x), d))
OPS["matmul"] = Custom(draw_matmul, torch.matmul, lambda k, a, b: k.call("kn_matmul", VOID(a), VOID(b)))
OPS["linear"] = Custom(draw_linear, F.linear,
                       lambda k, x, w, b=None: k.call("kn_linear", VOID(x), VOID(w), VOID(b)))
OPS["batch_norm"] = Custom(draw_batch_norm, batch_norm_of_torch, batch_norm_of_koine)
OPS["layer_norm"] = Custom(draw_layer_norm, lambda x, w=None, b=None: F.layer_norm(x, x.shape[-1:], w, b),
                           layer_norm_of_koine)
OPS["mse_loss"] = Custom(draw_mse, lambda a, b, r: F.mse_loss(a, b, reduction=r),
                         lambda k, a, b, r: k.call("kn_mse_loss", VOID(a), VOID(b), REDUCTIONS[r]))
OPS["index_select"] = Custom(draw_index_select, lambda x, d, i: torch.index_select(x, d, torch.tensor(i)),
                             lambda k, x, d, i: k.call("kn_index_select", VOID(x), d,
                                                       VOID(k.tensor(numpy.array(i, dtype=numpy.int64)))))
OPS["dropout"] = Custom(one(), lambda x: F.dropout(x, 0.5, False),
                        lambda k, x: k.call("kn_dropout_with", VOID(x), ctypes.byref(DropoutParams(0.5, False))))
for directions in (1, 2, 3):
    add_windows(directions)
OPS["batch_norm"].weight = OPS["mse_loss"].weight = 2.0

VIEWS = {
    "reshape": Custom(draw_reshape, torch.reshape,
                      lambda k, x, s: k.call("kn_reshape", VOID(x), len(s), sizes(s))),
    "flatten": Custom(draw_flatten, torch.flatten, lambda k, x, a, b: k.call("kn_flatten", VOID(x), a, b)),
    "transpose": Custom(draw_two_dims, torch.transpose, lambda k, x, a, b: k.call("kn_transpose", VOID(x), a, b)),
    "t": Custom(one(lambda t: t.dim() <= 2), torch.t, lambda k, x: k.call("kn_t", VOID(x))),
    "permute": Custom(draw_permute, torch.permute, lambda k, x, d: k.call("kn_permute", VOID(x), dims(d))),
    "unsqueeze": Custom(lambda rng, values: (lambda x: ([x], (rng.randrange(values[x].dim() + 1),)))(
        pick(rng, values, lambda t: t.dim() < 5)), torch.unsqueeze, lambda k, x, d: k.call("kn_unsqueeze", VOID(x), d)),
    "squeeze": Custom(draw_dim(), torch.squeeze, lambda k, x, d: k.call("kn_squeeze", VOID(x), d)),
    "expand": Custom(draw_expand, torch.Tensor.expand,
                     lambda k, x, s: k.call("kn_expand", VOID(x), len(s), sizes(s))),
    "narrow": Custom(draw_narrow, torch.narrow,
                     lambda k, x, d, a, n: k.call("kn_narrow", VOID(x), d, I64T(a), I64T(n))),
    "select": Custom(draw_select, torch.select, lambda k, x, d, i: k.call("kn_select", VOID(x), d, I64T(i))),
    "contiguous": Custom(one(), torch.Tensor.contiguous, lambda k, x: k.call("kn_contiguous", VOID(x))),
    "clone": Custom(one(), lambda x: x.clone(memory_format=torch.contiguous_format),
                    lambda k, x: k.call("kn_clone", VOID(x))),
    "detach": Custom(one(), torch.Tensor.detach, lambda k, x: k.call("kn_detach", VOID(x))),
}
for view in VIEWS.values():
    view.weight = 2.0
VIEWS["detach"].weight = 0.7
OPS.update(VIEWS)
NAMES = list(OPS)
WEIGHTS = [OPS[name].weight for name in NAMES]
# Either of 0 and -0 may be the maximum.
MAXIMA = ("max", "max_dim", "maximum") + tuple(name for name in OPS if "max_pool" in name)
# PyTorch copies arguments that are not contiguous.
COPYING = ("linear", "matmul")
# Operations that round, possibly in another order than PyTorch.
ROUNDED = ("exp", "log", "sigmoid", "tanh", "sum", "mean", "div", "pow", "pow_scalar", "sum_dims", "mean_dims",
           "softmax", "log_softmax", "matmul", "linear", "batch_norm", "layer_norm",
           "mse_loss") + tuple(name for name in OPS if "conv" in name or "avg_pool" in name)


def is_new(name):
    """Is the result neither a view nor the argument?"""
    return name not in VIEWS and name != "dropout" and not name.endswith("_")
