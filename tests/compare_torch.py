#!/usr/bin/env python3
"""Random graphs of operations, views and changes in place, computed by PyTorch and by Koine in float64.

    python3 tests/compare_torch.py --seconds 3600 --seed 1
    python3 tests/compare_torch.py --seed 1 --case 4711          # one case again, with its program

A case is 3 to 10 operations on a few leaves, some of them inside no_grad. Compared are the errors of each operation,
all values at the end, and the gradients of all leaves and whether each value requires them. A difference prints one
line that repeats it and the smallest program that still differs. Where only PyTorch refuses a backward pass, because it
keeps a reference where Koine keeps a copy, it is run again with copies.
It is run by hand; it needs PyTorch and build/lib/libkoine.so."""

import argparse
import ctypes
import os
import random
import sys
import time

import numpy
import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from koine import (BatchNormParams, BOOL, ClampParams, DOUBLE, DropoutParams, I64T, INT, Koine, LayerNormParams,  # noqa: E402
                   REDUCTIONS, Refused, VOID, dims, library_path, sizes)

TOLERANCE = 1e-9
LARGEST = 1e3 # a step whose result is larger is not taken: rounding would drown what is looked for

# --- operations: how PyTorch and Koine compute them, and how their arguments are drawn -------------------------------

OPS = {}


def op(name, weight=1.0):
    def add(definition):
        OPS[name] = definition()
        OPS[name].weight = weight
        return definition
    return add


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
        if same_memory(a, b) and a is not b: # PyTorch notices some overlaps and computes something with others
            b = b.clone()
        return getattr(renewed(a), self.name)(b)

    def koine(self, k, a, b):
        return k.call("kn_" + self.name, VOID(a), VOID(b))


class WithNumber(Unary):
    """An operation with a number: kn_NAME(x, number); PyTorch's name and the numbers are given."""

    def __init__(self, name, of_torch, numbers):
        super().__init__(name)
        self.of_torch, self.numbers = of_torch, numbers

    def draw(self, rng, values):
        return [pick(rng, values)], (rng.choice(self.numbers),)

    def torch(self, x, number):
        return self.of_torch(x, number)

    def koine(self, k, x, number):
        return k.call("kn_" + self.name, VOID(x), DOUBLE(number))


class Custom(Unary):
    """Three functions."""

    def __init__(self, draw, of_torch, of_koine):
        super().__init__("")
        self.draw, self.torch, self.koine = draw, of_torch, of_koine


def renewed(tensor):
    """PyTorch asks whether a view is a leaf before it has given it the history of its base, unless it was looked at."""
    if torch.is_grad_enabled():
        tensor.grad_fn
    return tensor


def pick(rng, values, condition=lambda t: True):
    """A value that fits, the later ones rather than the earlier; None where there is none."""
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
    """Not at bounds that values are likely to be: there the gradient differs between versions of PyTorch."""
    low = round(rng.uniform(-0.6, 0.6), 6)
    return [pick(rng, values)], (low, low + rng.choice((0.0, 0.5, 1.0)))


def draw_hardtanh(rng, values):
    """Whether NaN passes its gradient depends on where PyTorch uses vectors."""
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
    x = pick(rng, values, lambda t: t.dim() >= 2 and t.numel() > t.shape[1])
    # Not strided: PyTorch 2.15's backward reads the weight as if it were contiguous. Not the memory of another argument:
    # each library has its own order of reading the arguments and changing the running estimates.
    fitting = [v for v in values if values[v].shape == values[x].shape[1:2] and values[v].is_contiguous()
               and values[v].isfinite().all()]
    affine = [rng.choice(fitting)] + [rng.choice(fitting)] if fitting and rng.random() < 0.7 else []
    plain = [v for v in fitting if not values[v].requires_grad
             and not any(same_memory(values[v], values[other]) for other in [x] + affine)]
    running = rng.sample(plain, 2) if len(plain) >= 2 and not same_memory(values[plain[0]], values[plain[-1]]) and rng.random() < 0.5 else []
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

# --- cases -----------------------------------------------------------------------------------------------------------


class Step:
    """A leaf (op None, its values in `params`) or an operation on the results of earlier steps."""

    def __init__(self, name, arguments=(), params=(), no_grad=False, data=None, requires_grad=False):
        self.name, self.arguments, self.params, self.no_grad = name, tuple(arguments), tuple(params), no_grad
        self.data, self.requires_grad = data, requires_grad
        self.copied = False # what PyTorch's backward needs is a copy

    def __str__(self):
        if self.name is None:
            return f"leaf {list(self.data.shape)}" + (" requires grad" if self.requires_grad else "")
        words = [f"v{a}" for a in self.arguments] + [str(p) for p in self.params]
        return f"{self.name}({', '.join(words)})" + (" in no_grad" if self.no_grad else "")


def draw_leaf(rng):
    shape = rng.choice(((), (3,), (1,), (4,), (2, 3), (3, 3), (4, 3), (1, 3), (3, 1), (3, 2), (2, 3, 2), (2, 3, 2, 2)))
    numbers = [round(rng.uniform(0.2, 1.8), rng.choice((1, 6))) * rng.choice((1, 1, 1, -1))
               for _ in range(int(numpy.prod(shape)))]
    return Step(None, data=numpy.array(numbers, dtype=numpy.float64).reshape(shape), requires_grad=rng.random() < 0.6)


MAXIMA = ("max", "max_dim", "maximum")  # of 0 and -0 either
COPY = ("linear", "matmul")  # of arguments that are not contiguous


def is_new(name):
    return name not in VIEWS and name != "dropout" and not name.endswith("_")


# What is rounded, and perhaps in another order than PyTorch does it.
ROUNDED = ("exp", "log", "sigmoid", "tanh", "sum", "mean", "div", "pow", "pow_scalar", "sum_dims", "mean_dims", "softmax",
           "log_softmax", "matmul", "linear", "batch_norm", "layer_norm", "mse_loss")


def run_torch_step(step, values, noise=None):
    """`noise`: what moves the result of a rounded operation."""
    if step.name is None:
        return torch.tensor(step.data, requires_grad=step.requires_grad)
    with torch.set_grad_enabled(not step.no_grad):
        try:
            result = OPS[step.name].torch(*[values[a] for a in step.arguments], *step.params)
            # PyTorch's results may have their arguments' strides, which decides what a later view or copy is.
            relaid = is_new(step.name) and not result.is_contiguous()
            step.copied = relaid or step.name in COPY and any(not values[a].is_contiguous() for a in step.arguments)
            result = result.contiguous() if relaid else result
            if noise is not None and step.name in ROUNDED + MAXIMA:
                result = result + noise(result.detach(), 1e-13 if step.name in ROUNDED else 1e-300)
            return result
        except (RuntimeError, IndexError, ValueError) as error:
            raise Refused(str(error)) from None


def draw_case(rng):
    """Steps as PyTorch can take them: each is run as it is drawn, so that the next may choose by shape."""
    steps, values = [], {}
    for _ in range(rng.randint(2, 4)):
        steps.append(draw_leaf(rng))
        values[len(steps) - 1] = run_torch_step(steps[-1], values)
    wanted = len(steps) + rng.randint(3, 10)
    with_no_grad = rng.random() < 0.3
    while len(steps) < wanted:
        name = rng.choices(NAMES, WEIGHTS)[0]
        try:
            with torch.no_grad():
                arguments, params = OPS[name].draw(rng, values)
        except LookupError:
            continue
        step = Step(name, arguments, params, with_no_grad and rng.random() < 0.25)
        before = {a: values[a].detach().clone() for a in set(arguments)}
        try:
            result = run_torch_step(step, values)
        except Refused:
            result = None
        if result is not None and (result.numel() > 400 or too_large(result)):
            if name.endswith("_"):
                with torch.no_grad():
                    return steps, list(values)  # what was changed stays changed: the case ends before it
            del before
            continue
        steps.append(step)
        if result is not None:
            values[len(steps) - 1] = result
    return steps, list(values)


def too_large(tensor):
    finite = tensor.detach()[torch.isfinite(tensor.detach())]
    return finite.numel() > 0 and finite.abs().max() > LARGEST


class Outcome:
    """What a library made of a program."""

    def __init__(self):
        self.errors, self.values, self.wants, self.gradients = {}, {}, {}, {}
        self.backward_error = None
        self.has_loss = False


def weights(step, shape):
    return numpy.random.RandomState(step).uniform(0.5, 1.5, shape)


def with_torch(steps, outputs, noise=None):
    outcome, values = Outcome(), {}
    for i, step in enumerate(steps):
        try:
            values[i] = run_torch_step(step, values, noise)
        except Refused as error:
            outcome.errors[i] = str(error)
    try:
        loss = None
        for i in outputs:
            if i in values and values[i].requires_grad:
                part = torch.sum(values[i] * torch.tensor(weights(i, tuple(values[i].shape))))
                loss = part if loss is None else loss + part
        outcome.has_loss = loss is not None and loss.grad_fn is not None
        if outcome.has_loss:
            loss.backward()
    except RuntimeError as error:
        outcome.backward_error = str(error)
    for i, value in values.items():
        outcome.values[i] = value.detach().numpy()
        if steps[i].name is None and steps[i].requires_grad:
            outcome.gradients[i] = None if value.grad is None else value.grad.numpy()
    for i, value in values.items():
        try:
            outcome.wants[i] = value.requires_grad, value.is_leaf
        except RuntimeError:
            outcome.wants[i] = None
    return outcome


def with_koine(k, steps, outputs):
    outcome, values = Outcome(), {}
    k.begin()
    for i, step in enumerate(steps):
        before = k.set_grad_enabled(not step.no_grad)
        try:
            if step.name is None:
                values[i] = k.tensor(step.data, step.requires_grad)
            else:
                values[i] = OPS[step.name].koine(k, *[values[a] for a in step.arguments], *step.params)
        except Refused as error:
            outcome.errors[i] = str(error)
        except KeyError:
            outcome.errors[i] = "its argument was refused"
        k.set_grad_enabled(before)
    try:
        loss = None
        for i in outputs:
            if i in values and k.requires_grad(values[i]):
                shape = k.array(values[i]).shape
                part = k.call("kn_sum", VOID(k.call("kn_mul", VOID(values[i]), VOID(k.tensor(weights(i, shape))))))
                loss = part if loss is None else k.call("kn_add", VOID(loss), VOID(part))
        outcome.has_loss = loss is not None
        if outcome.has_loss:
            k.backward(loss)
    except Refused as error:
        outcome.backward_error = str(error)
    for i, value in values.items():
        outcome.values[i] = k.array(value)
        outcome.wants[i] = k.requires_grad(value), k.is_leaf(value)
        if steps[i].name is None and steps[i].requires_grad:
            outcome.gradients[i] = k.gradient(value)
    k.end()
    return outcome


# --- comparing -------------------------------------------------------------------------------------------------------

# PyTorch refuses; Koine fills expanded views, and a view made in no_grad is a constant until its base's history changes.
MORE_THAN_TORCH = ("a single memory location", "A view was created in no_grad mode")
KEEPS_ITS_RESULT = ("backward of hardtanh",)  # PyTorch's keeps the argument, and its result may be changed in place
CHANGED = "changed in place after it was used"
NO_DIFFERENCE = (None, "skip", "unstable")
MUTATED = "modified by an inplace operation"


def close(a, b, tolerance):
    if a is None or b is None:
        return a is b
    if a.shape != b.shape:
        return False
    scale = max([1.0] + [abs(x) for x in a.flat if numpy.isfinite(x)])
    with numpy.errstate(invalid="ignore"):
        return bool(numpy.all((a == b) | (numpy.isnan(a) & numpy.isnan(b)) | (abs(a - b) <= tolerance * scale)))


def compare_arrays(what, of_torch, of_koine, tolerance=TOLERANCE):
    for i in of_torch:
        if i in of_koine and not close(of_torch[i], of_koine[i], tolerance):
            return f"{what} of v{i}: PyTorch {of_torch[i]}, Koine {of_koine[i]}".replace("\n", " ")
    return None


def looks_away(step):
    """PyTorch does not notice a change in place: of what it keeps a copy of, or of running estimates."""
    return step.copied or step.name == "batch_norm" and len(step.arguments) >= 3 + step.params[0]


def difference(k, steps, outputs):
    """What differs, or None; "skip" where there is nothing to compare."""
    t, o = with_torch(steps, outputs), with_koine(k, steps, outputs)
    for i in range(len(steps)):
        if i in t.errors and i not in o.errors and any(word in t.errors[i] for word in MORE_THAN_TORCH):
            return "skip"
        if (i in t.errors) != (i in o.errors):
            return f"v{i} = {steps[i]}: PyTorch {t.errors.get(i, 'takes it')!r}, Koine {o.errors.get(i, 'takes it')!r}"
    if t.backward_error and not o.backward_error and MUTATED in t.backward_error:
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x):
            t = with_torch(steps, outputs)
    if o.backward_error and CHANGED in o.backward_error:
        if any(word in o.backward_error for word in KEEPS_ITS_RESULT) or any(map(looks_away, steps)):
            return "skip"
    if t.backward_error and not o.backward_error and any(word in t.backward_error for word in MORE_THAN_TORCH):
        return "skip"
    if bool(t.backward_error) != bool(o.backward_error):
        return f"backward: PyTorch {t.backward_error!r}, Koine {o.backward_error!r}".replace("\n", " ")
    found = compare_arrays("values", t.values, o.values)
    if found or t.backward_error:
        return found
    found = compare_arrays("gradient", t.gradients, o.gradients)
    if found or any(step.no_grad for step in steps):
        return found
    for i, wants in t.wants.items():
        if wants != o.wants.get(i):
            return f"(requires_grad, is_leaf) of v{i}: PyTorch {wants}, Koine {o.wants.get(i)}"
    return None


def random_noise(seed):
    state = numpy.random.RandomState(seed)
    return lambda result, size: torch.tensor(state.uniform(-size, size, tuple(result.shape)))


def to_zero(result, size):
    return torch.where(result.abs() < size, -result, 0.0)


def judge(k, steps, outputs):
    """difference, but "unstable" where PyTorch's own results leap when they are moved by a rounding error: the
    logarithm of what should be 0, say."""
    found = difference(k, steps, outputs)
    if found in (None, "skip"):
        return found
    exact = with_torch(steps, outputs)
    for noise in [random_noise(seed) for seed in range(8)] + [to_zero]:
        moved = with_torch(steps, outputs, noise)
        if (compare_arrays("", exact.values, moved.values, 1e-7) or
                compare_arrays("", exact.gradients, moved.gradients, 1e-7)):
            return "unstable"
    return found


def is_difference(k, steps, outputs):
    return judge(k, steps, outputs) not in NO_DIFFERENCE


def without(steps, outputs, gone):
    """The program less one step that nothing needs any more, or None."""
    if any(gone in step.arguments for step in steps):
        return None
    number = [i - (i > gone) for i in range(len(steps))]
    kept = [Step(s.name, [number[a] for a in s.arguments], s.params, s.no_grad, s.data, s.requires_grad)
            for i, s in enumerate(steps) if i != gone]
    return kept, [number[i] for i in outputs if i != gone]


def shrink(k, steps, outputs):
    at = len(steps) - 1
    while at >= 0:
        for fewer in ([i for i in outputs if i != at],):
            if at in outputs and is_difference(k, steps, fewer):
                outputs = fewer
        smaller = without(steps, outputs, at)
        if smaller and is_difference(k, *smaller):
            steps, outputs = smaller
            at = len(steps)
        at -= 1
    return steps, outputs


def report(k, seed, case, steps, outputs, found):
    print(f"python3 tests/compare_torch.py --seed {seed} --case {case}   # {found}"[:400])
    try:
        steps, outputs = shrink(k, steps, outputs)
        found = difference(k, steps, outputs)
    except Exception as error:  # the whole program is still there
        print("    (not made smaller:", error, ")")
    for i, step in enumerate(steps):
        print(f"    v{i} = {step}")
    print(f"    backward of the sum of {', '.join(f'v{i}' for i in outputs)}")
    print(f"    {found}", flush=True)


def run_case(k, seed, case):
    rng = random.Random(f"{seed}:{case}")
    steps, values = draw_case(rng)
    outputs = sorted(rng.sample(values, min(len(values), rng.randint(1, 3))) + values[-1:])
    found = judge(k, steps, sorted(set(outputs)))
    if found not in NO_DIFFERENCE:
        report(k, seed, case, steps, sorted(set(outputs)), found)
    return found


def main():
    parser = argparse.ArgumentParser(description="Random graphs, PyTorch against Koine.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--library", default=library_path())
    options = parser.parse_args()
    torch.set_num_threads(1)
    k = Koine(options.library)
    numpy.seterr(all="ignore")
    if options.case is not None:
        return 0 if run_case(k, options.seed, options.case) in NO_DIFFERENCE else 1
    end, cases, skipped, unstable, differing = time.monotonic() + options.seconds, 0, 0, 0, 0
    while time.monotonic() < end:
        found = run_case(k, options.seed, cases)
        cases += 1
        skipped += found == "skip"
        unstable += found == "unstable"
        differing += found not in NO_DIFFERENCE
    print(f"{cases} cases, {skipped} skipped, {unstable} unstable, {differing} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
