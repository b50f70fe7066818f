"""Losses, distances and normalisations."""

import torch
import torch.nn.functional as F

from cases import cases
from draw import Case
from rows import steepness


def reduction(d):
    return d.one_of("mean", "sum", "none")


def halves(x):
    return 1e-2 if x.dtype.itemsize == 2 else 0


@cases("l1_loss", "huber_loss", "smooth_l1_loss", "soft_margin_loss")
def differences(d):
    d.floating()
    x = d.floats(special=False)
    y = d.like(x, x.shape, special=False, grad=d.name != "soft_margin_loss")
    params = {"reduction": reduction(d)}
    if d.name in ("huber_loss", "smooth_l1_loss"):
        params["delta" if d.name == "huber_loss" else "beta"] = d.one_of(0.5, 1.0, 3.0)
    return Case([x, y], params, lambda a, b: getattr(F, d.name)(a, b, **params), tolerance=halves(x))


@cases("binary_cross_entropy", "kl_div", "poisson_nll_loss", "hinge_embedding_loss", "multilabel_soft_margin_loss")
def of_targets(d):
    d.floating()
    shape = d.shape(1, 2) if d.name == "multilabel_soft_margin_loss" else d.shape()
    if d.name == "multilabel_soft_margin_loss" and shape[-1] == 0:
        shape = shape[:-1] + (3,)
    low, high = (0.05, 0.95) if d.name == "binary_cross_entropy" else (-3, 3)
    # Without ties, of which some are 0 and 1: there PyTorch divides by 1e-12 in float32.
    x = d.floats(shape=shape, low=low, high=high, special=False, ties=d.name != "binary_cross_entropy")
    y = d.like(x, x.shape, low=0.1, high=0.9, grad=False, special=False)
    params = {"reduction": reduction(d)}
    if d.name == "kl_div":
        params["log_target"] = d.chance(0.5)
    if d.name == "poisson_nll_loss":
        params["full"] = d.chance(0.5)
    if d.name == "hinge_embedding_loss":
        params["margin"] = 0.75
    # PyTorch adds 1e-12 to probabilities in the second gradient of binary_cross_entropy.
    return Case([x, y], params, lambda a, b: getattr(F, d.name)(a, b, **params), tolerance=max(halves(x), 1e-9))


@cases("gaussian_nll_loss")
def gauss(d):
    d.floating()
    x = d.floats(special=False)
    y, v = d.like(x, x.shape, special=False), d.like(x, x.shape, low=0.5, high=2, special=False)
    params = {"reduction": reduction(d), "full": d.chance(0.5)}
    return Case([x, y, v], params, lambda a, b, c: F.gaussian_nll_loss(a, b, c, **params), tolerance=halves(x))


@cases("margin_ranking_loss", "triplet_margin_loss", "cosine_embedding_loss")
def of_three(d):
    d.floating()
    shape = d.shape(2, 2)
    x = d.floats(shape=shape, special=False)
    y = d.like(x, shape, special=False)
    params = {"reduction": reduction(d), "margin": d.one_of(0.25, 1.0)}
    if d.name == "cosine_embedding_loss":
        z = d.tensor(shape[:1], torch.int64, low=-1, high=1)
    else:
        z = d.like(x, shape, special=False, grad=d.name != "margin_ranking_loss")
    # The gradient of parallel vectors' cosine is 0, a difference of two terms of the size 1 / length.
    lengths = torch.cat([v.view().double().norm(dim=-1).flatten() for v in (x, y)] + [torch.ones(1)])
    return Case([x, y, z], params, lambda a, b, c: getattr(F, d.name)(a, b, c, **params), tolerance=halves(x),
                scale=1 / (lengths.min().item() + 1e-3) if d.name == "cosine_embedding_loss" else 1)


@cases("multi_margin_loss", "multilabel_margin_loss")
def of_classes(d):
    d.floating()
    rows, classes = d.integer(1, 6), d.integer(1, 8)
    x = d.floats(shape=(rows, classes), special=False)
    several = d.name == "multilabel_margin_loss"
    target = d.tensor((rows, classes) if several else (rows,), torch.int64, low=-1 if several else 0, high=classes - 1)
    params = {"reduction": reduction(d)}
    if not several:
        params["p"] = d.one_of(1, 2)
    return Case([x, target], params, lambda a, t: getattr(F, d.name)(a, t, **params), tolerance=halves(x))


@cases("cosine_similarity", "pairwise_distance")
def similarity(d):
    d.floating()
    x = d.floats(least=1, special=False)
    y = d.like(x, x.shape, special=False)
    params = {"dim": d.dim(x)} if d.name == "cosine_similarity" else \
        {"p": d.one_of(1.0, 2.0, 3.0), "keepdim": d.chance(0.5)}
    return Case([x, y], params, lambda a, b: getattr(F, d.name)(a, b, **params), tolerance=halves(x))


@cases("group_norm", "instance_norm", "rms_norm", "local_response_norm")
def normalisation(d):
    d.floating()
    instances = d.name == "instance_norm"
    shape = d.shape(3 if instances or d.name == "local_response_norm" else 2, 4)
    if instances:
        shape = (max(shape[0], 1), max(shape[1], 1)) + tuple(max(n, 2) for n in shape[2:])
    groups = d.one_of(1, 2, 3)
    if d.name == "group_norm":
        shape = (max(shape[0], 1), groups * max(shape[1], 1)) + tuple(max(n, 2) for n in shape[2:])
        if len(shape) == 2:
            shape += (3,)
    x = d.floats(shape=shape, special=False, layout="distinct")
    if d.name == "local_response_norm":
        size = d.integer(1, 4)
        return Case([x], {"size": size}, lambda t: F.local_response_norm(t, size), tolerance=halves(x))
    rows = d.name == "rms_norm"
    normalized = x.shape[d.integer(0, x.ndim - 1):] if rows else (x.shape[1],)
    weight = d.like(x, normalized, special=False) if d.chance(0.7) else None
    if rows:
        return Case([x, weight], {"shape": normalized, "eps": 1e-5}, lambda t, w: F.rms_norm(t, normalized, w, 1e-5),
                    tolerance=halves(x))
    bias = d.like(x, normalized, special=False) if weight and d.chance(0.7) else None
    if instances:
        return Case([x, weight, bias], {}, lambda t, w, b: F.instance_norm(t, weight=w, bias=b), tolerance=halves(x),
                    scale=steepness(x, tuple(range(2, x.ndim))))
    return Case([x, weight, bias], {"num_groups": groups}, lambda t, w, b: F.group_norm(t, groups, w, b),
                tolerance=halves(x), scale=steepness(x, tuple(range(2, x.ndim))))


@cases("normalize", "softmin")
def of_a_dimension(d):
    d.floating()
    x = d.floats(special=False)
    dim = d.any_dim(x)
    return Case([x], {"dim": dim}, lambda t: getattr(F, d.name)(t, dim=dim), tolerance=halves(x))


@cases("ctc_loss")
def sequences(d):
    """Without gradients: PyTorch's are those of log_softmax's input."""
    d.floating()
    steps, samples, classes, labels = d.integer(1, 9), d.integer(1, 3), d.integer(2, 5), d.integer(1, 4)
    x = d.floats(shape=(steps, samples, classes), special=False, grad=False)
    target = d.tensor((samples, labels), torch.int64, low=1, high=classes - 1, grad=False)
    sizes = [d.tensor((samples,), torch.int64, low=1, high=most, grad=False) for most in (steps, labels)]
    params = {"reduction": reduction(d), "zero_infinity": d.chance(0.5)}

    def function(p, t, inputs, targets):
        wide = p.float() if p.dtype.itemsize == 2 else p
        return F.ctc_loss(wide, t.contiguous(), inputs.contiguous(), targets.contiguous(), **params).to(p.dtype)

    return Case([x, target] + sizes, params, function, tolerance=halves(x))
