"""Backward passes called by name: NAME_backward with the arguments of a case of NAME, against PyTorch's gradients;
those that PyTorch has by name, too."""

import torch

from cases import CASES, cases
from draw import Case, Draw

TRIES = 60

# Which of equal elements has the gradient is arbitrary in PyTorch.
OF_DISTINCT = ("topk", "kthvalue", "median_dim", "nanmedian_dim", "mode")

# PyTorch's gradient is wrong in some orders of the dimensions.
CONTIGUOUS = ("batch_norm",)

# Where Koine's operator is made of others, and has no backward pass of its own.
COMPOSED = {"interpolate": lambda case: case.params["mode"] == "area",
            "cross_entropy": lambda case: case.inputs[1].dtype.is_floating_point}


def forward_name(operators, name):
    """The operator whose backward pass this is, if that has a case."""
    forward = name[:-len("_backward")]
    return forward if name.endswith("_backward") and forward in CASES and forward in operators else None


def first_output(case):
    """PyTorch's, or None."""
    try:
        y = case.function(*[None if x is None else x.view() for x in case.inputs])
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        return None
    return y[0] if isinstance(y, (tuple, list)) else y


def are_distinct(x):
    return 0 not in x.strides and 0 not in x.shape and not x.base.isnan().any() and len(x.base.unique()) == len(x.base)


def usable(name, case):
    """Has it a gradient that can be compared?"""
    if name in COMPOSED and COMPOSED[name](case):
        return None
    if name in OF_DISTINCT:
        case.inputs[0].wants_grad = are_distinct(case.inputs[0])
    if not any(x is not None and x.wants_grad for x in case.inputs):
        return None
    y = first_output(case)
    return y if y is not None and y.dtype.is_floating_point else None


def gradients_of(case, wanted):
    def function(gradient, *tensors):
        leaves = [t.detach().requires_grad_() if i in wanted else t for i, t in enumerate(tensors)]
        y = case.function(*leaves)
        y = y[0] if isinstance(y, (tuple, list)) else y
        found = torch.autograd.grad(y, [leaves[i] for i in wanted], gradient, create_graph=gradient.requires_grad,
                                    allow_unused=True)
        return [g if g is not None else torch.zeros_like(leaves[i]) for i, g in zip(wanted, found)]
    return function


def backward_case(rng, operators, name):
    forward, backward = operators[forward_name(operators, name)], operators[name]
    for _ in range(TRIES):
        draw = Draw(rng, forward)
        case = CASES[forward.name](draw)
        y = usable(forward.name, case)
        if y is not None:
            break
    else:
        raise RuntimeError(f"{name}: no case in {TRIES} has a gradient")
    names = forward.input_names
    at = {name[len("grad_"):]: i for i, name in enumerate(backward.output_names)}
    wanted = [i for i, x in enumerate(case.inputs) if x is not None and x.wants_grad and names[i] in at]
    if not wanted:
        return backward_case(rng, operators, name)
    # With an activation Koine's have no gradient.
    twice = backward.is_differentiable and case.params.get("activation", "none") == "none"
    gradient = draw.tensor(y.shape, y.dtype, special=False, grad=twice, layout=forward.name not in CONTIGUOUS)
    for x in case.inputs:
        if x is not None:
            x.wants_grad = False
    skipped = [i for i in range(len(backward.output_names)) if i not in [at[names[w]] for w in wanted]]

    def arguments(k, views):
        gradient, *inputs = views
        by_name = dict(zip(names, inputs))
        results = k.apply(forward.name, inputs, case.params)
        by_name.update(zip(forward.output_names, results), result=results[0], grad=gradient)
        return [by_name.get(name) for name in backward.input_names]
    function = gradients_of(case, wanted)

    def in_order(*tensors):
        results = dict(zip([at[names[w]] for w in wanted], function(*tensors)))
        return [results.get(i) for i in range(len(backward.output_names))]
    return Case([gradient] + case.inputs, case.params, in_order, case.tolerance, scale=case.scale, arguments=arguments,
                skipped=skipped)


# --- by PyTorch's names -----------------------------------------------------------------------------------------------

aten = torch.ops.aten


@cases("sigmoid_backward", "tanh_backward")
def of_the_result(d):
    g = d.tensor()
    return Case([g, d.like(g)], function=getattr(aten, d.name))


@cases("threshold_backward")
def threshold(d):
    g, threshold = d.tensor(), d.integer(-2, 2)
    return Case([g, d.like(g)], {"threshold": threshold}, lambda g, x: aten.threshold_backward(g, x, threshold))


@cases("hardtanh_backward")
def hardtanh(d):
    g, low, high = d.tensor(), d.integer(-2, 0), d.integer(0, 2)
    return Case([g, d.like(g, special=False)], {"min_val": low, "max_val": high},
                lambda g, x: aten.hardtanh_backward(g, x, low, high))


@cases("narrow_backward")
def narrow(d):
    g = d.tensor(least=1)
    dim, start, step = d.dim(g), d.integer(0, 3), d.integer(1, 3)
    count = g.shape[dim]
    size = start + max(count - 1, 0) * step + d.integer(1, 4)
    shape = [size if i == dim % g.ndim else n for i, n in enumerate(g.shape)]
    stop = start + (count - 1) * step + 1 if count else start
    return Case([g], {"dim": dim, "start": start, "size": size, "step": step},
                lambda g: aten.slice_backward(g, shape, dim, start, stop, step))


@cases("as_strided_backward")
def as_strided(d):
    shape, strides, offset = d.one_of(((3, 4), (4, 1), 2), ((2, 3), (1, 2), 0), ((4, 4), (1, 1), 5),
                                      ((2, 2), (0, 3), 1))

    def function(g):
        x = g.new_zeros(24, requires_grad=True)
        return torch.autograd.grad(x.as_strided(shape, strides, offset), x, g, create_graph=g.requires_grad)[0]
    return Case([d.floats(shape=shape)], {"size": 24, "strides": strides, "offset": offset}, function)
